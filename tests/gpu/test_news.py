# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A log line for each change, and none without one."""

from dataclasses import replace
from typing import Any

from structlog.testing import capture_logs

from tests.gpu.conftest import snapshot_of, view_of
from veo_exporter.gpu.news import News
from veo_exporter.gpu.readings import Driver, Snapshot, State


def told(news: News, *snapshots: Snapshot) -> list[dict[str, Any]]:
    with capture_logs() as lines:
        for snapshot in snapshots:
            news.tell(snapshot)
    return [dict(line) for line in lines]


def test_the_first_snapshot_tells_of_session_and_gpus() -> None:
    session, gpu = told(News(), snapshot_of(view_of()))
    assert session["event"] == "session with the driver opened"
    assert (session["gpus"], session["driver_version"]) == (1, "570.1")
    assert gpu["log_level"] == "info"
    assert (gpu["gpu"], gpu["uuid"], gpu["pci_bus_id"]) == (0, "GPU-1", "0000:01:00.0")
    assert (gpu["state"], gpu["was"], gpu["nvml"]) == ("ok", None, "SUCCESS")


def test_nothing_new_is_not_told() -> None:
    news = News()
    told(news, snapshot_of(view_of()))
    assert told(news, *[snapshot_of(view_of(), sequence=n) for n in range(2, 9)]) == []


def test_a_change_of_state_is_told_once_with_its_reason() -> None:
    news = News()
    told(news, snapshot_of(view_of("GPU-1"), view_of("GPU-2", 1)))
    lost = snapshot_of(view_of("GPU-1"), view_of("GPU-2", 1, state=State.LOST, code=15))
    (line,) = told(news, lost, lost)
    assert line["log_level"] == "warning"
    assert (line["uuid"], line["was"], line["state"]) == ("GPU-2", "ok", "lost")
    assert line["nvml"] == "GPU_IS_LOST"
    (line,) = told(news, snapshot_of(view_of("GPU-1"), view_of("GPU-2", 1)))
    assert (line["log_level"], line["was"], line["state"]) == ("info", "lost", "ok")


def test_a_state_that_no_call_decided_has_no_code() -> None:
    (_, line) = told(News(), snapshot_of(view_of(state=State.HUNG, code=None)))
    assert line["nvml"] is None


def test_another_index_is_no_change_of_state() -> None:
    news = News()
    told(news, snapshot_of(view_of("GPU-1", 0)))
    assert told(news, snapshot_of(view_of("GPU-1", 3))) == []


def test_gpus_without_a_uuid_are_told_apart_by_address_or_index() -> None:
    nameless = [
        view_of("GPU-1", None, uuid="", state=State.HIDDEN, code=None),
        view_of("GPU-2", None, uuid="", state=State.HIDDEN, code=None),
        view_of("GPU-3", 2, uuid="", pci_bus_id="", state=State.LOST, code=15),
        view_of("GPU-4", 3, uuid="", pci_bus_id="", state=State.LOST, code=15),
    ]
    news = News()
    assert len(told(news, snapshot_of(*nameless))) == 1 + 4
    assert told(news, snapshot_of(*nameless)) == []


def test_a_fault_of_the_driver_is_told_once_and_so_is_its_end() -> None:
    news, fine = News(), snapshot_of()
    faulty = replace(fine, driver=Driver(fault="the driver is not loaded: load it"))
    told(news, fine)
    (line,) = told(news, faulty, faulty)
    assert line["log_level"] == "warning"
    assert line["remedy"] == "the driver is not loaded: load it"
    (line,) = told(news, fine, fine)
    assert line["event"] == "session with the driver opened"
