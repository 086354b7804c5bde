# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Whoever is told of each snapshot may fail, and costs nobody else anything."""

from structlog.testing import capture_logs

from tests.gpu.conftest import wait_until
from tests.gpu.running import ALL_OK, Start
from veo_exporter.gpu.readings import Snapshot


def test_each_snapshot_is_told_in_order(start: Start) -> None:
    running = start()
    told: list[int] = []
    running.sampler.when_published(lambda snapshot: told.append(snapshot.sequence))
    running.wait_for(ALL_OK)
    running.wait_for_snapshots(3)
    wait_until(lambda: len(told) >= 3)
    assert told[:3] == list(range(told[0], told[0] + 3))


def test_a_reader_that_fails_is_told_of_no_more_and_the_sampler_goes_on(start: Start) -> None:
    asked: list[int] = []
    told: list[int] = []

    def fail(snapshot: Snapshot) -> None:
        asked.append(snapshot.sequence)
        raise RuntimeError("a fault of ours")

    running = start()
    with capture_logs() as logs:
        running.sampler.when_published(fail)
        running.sampler.when_published(lambda snapshot: told.append(snapshot.sequence))
        wait_until(lambda: len(told) >= 2)
    assert len(asked) == 1
    assert running.sampler.alive
    assert not running.sampler.failed
    assert [line["log_level"] for line in logs if "reader of snapshots" in line["event"]] == [
        "error"
    ]
