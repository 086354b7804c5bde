# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's comings and goings, as seen from outside: pauses, reloads, what is remembered."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.conftest import StartDaemon
from tests.daemon import Daemon, Page, all_ok, wait_until
from tests.fake_nvml import FakeNode
from tests.test_app import MemoryNvml, ready, running, settings
from veo_exporter.app import life
from veo_exporter.config import State

STATES = {"lost", "ok", "hung", "unknown", "hidden", "reset_required"}


def paused(page: Page) -> bool:
    return page.value("veo_exporter_paused") == 1


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    return tmp_path / "veo.sock"


def post(path: Path, asked: str) -> tuple[int, str]:
    """As curl --unix-socket does it."""

    async def ask() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as client,
            client.post(f"http://localhost{asked}") as response,
        ):
            return response.status, await response.text()

    return asyncio.run(ask())


def test_a_pause_lets_the_driver_go_and_comes_back(
    node: FakeNode, start: StartDaemon, socket_path: Path
) -> None:
    daemon = start(f"--web.unix-socket={socket_path}")
    before = daemon.wait_for(all_ok)
    assert before.value("veo_exporter_paused") == 0
    assert before.value("veo_exporter_pause_expiry_timestamp_seconds") == 0
    asked_at = time.time()
    status, said = post(socket_path, "/-/pause?for=10m")
    assert status == 200
    assert said.startswith("paused until ")
    assert said.endswith(", by request; the driver is released\n")

    page = daemon.wait_for(paused)
    expiry = page.value("veo_exporter_pause_expiry_timestamp_seconds")
    assert expiry is not None
    assert 600 <= expiry - asked_at < 600 + 30
    assert set(page.states().values()) == {"unknown"}
    for name in ("veo_gpu_power_watts", "veo_gpu_energy_joules_total", "veo_gpu_nvml_return_code"):
        assert page.values(name) == [], name
    assert page.value("veo_gpus_usable") == 0
    assert (page.value("veo_exporter_last_success_timestamp_seconds", group="gpu_fast") or 0) > 0
    ready_status, text = daemon.get("/-/ready")
    assert (ready_status, text.decode()) == (503, f"withdrawn:\nGPUs: {said}")
    assert "by request; the driver is released" in daemon.get("/")[1].decode()
    assert daemon.get("/-/healthy")[0] == 200

    # Whoever unloads the driver now disturbs nobody; whoever calls would see that it is gone.
    calls = {
        series: value for series, value in page.series.items() if series[0].endswith("calls_total")
    }
    node.unload_driver()
    node.load_driver(order=[7, 6, 5, 4, 3, 2, 1, 0])
    assert set(daemon.scrape().states().values()) == {"unknown"}
    later = daemon.scrape()
    assert {series: later.series[series] for series in calls} == calls

    assert post(socket_path, "/-/resume") == (200, "resumed\n")
    page = daemon.wait_for(all_ok)
    assert page.value("veo_exporter_paused") == 0
    for number, gpu in enumerate(node.gpus):
        assert page.value("veo_gpu_power_watts", uuid=gpu.uuid, gpu=str(7 - number)) is not None
    assert post(socket_path, "/-/resume") == (200, "there was no pause\n")
    wait_until(lambda: daemon.get("/-/ready")[0] == 200)


def test_a_hanging_gpu_keeps_the_driver_and_is_named(
    node: FakeNode, start: StartDaemon, socket_path: Path
) -> None:
    daemon = start(f"--web.unix-socket={socket_path}")
    daemon.wait_for(all_ok)
    node.gpus[3].hang("nvmlDeviceGetPowerUsage")
    daemon.wait_for(lambda page: page.states()["3"] == "hung")
    status, said = post(socket_path, "/-/pause")
    assert status == 202
    assert f"has not returned: nvmlDeviceGetPowerUsage ({node.gpus[3].uuid})" in said
    page = daemon.wait_for(paused)
    assert page.states()["3"] == "hung"
    node.gpus[3].release()
    wait_until(lambda: b"the driver is released" in daemon.get("/-/ready")[1])
    assert set(daemon.scrape().states().values()) == {"unknown"}
    assert daemon.end() < 2
    assert daemon.process.returncode == 0


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ("?for=10", "for: '10' is not a duration: write a number with ms, s, m, h or d"),
        ("?for=", "for: '' is not a duration"),
        ("?for=500ms", "for: must be at least 1s; to end a pause, POST /-/resume"),
        ("?for=1h1s", "for: must be at most 1h (gpu.pause_max); ask again before it ends"),
    ],
)
async def test_a_pause_that_makes_no_sense_is_refused(
    socket_path: Path, asked: str, fault: str
) -> None:
    async with running(settings(socket_path)) as seen:
        await ready(seen)
        status, text = await seen.ask("POST", f"/-/pause{asked}", by_socket=True)
        assert status == 400
        assert text.startswith(fault)
        assert await seen.value("veo_exporter_paused") == 0
        assert (await seen.ask("GET", "/-/ready"))[0] == 200


async def test_where_gpus_are_not_watched_there_is_nothing_to_pause(socket_path: Path) -> None:
    async with running(settings(socket_path, enabled=False)) as seen:
        assert await seen.ask("POST", "/-/pause", by_socket=True) == (
            409,
            "GPUs are not watched (gpu.enabled is false): there is nothing to pause\n",
        )


async def test_the_default_and_the_bound_are_settings(socket_path: Path) -> None:
    given = settings(socket_path, pause_default="5s", pause_max="5s")
    nvml = MemoryNvml(2)
    async with running(given, nvml) as seen:
        await ready(seen)
        assert (await seen.ask("POST", "/-/pause?for=6s", by_socket=True))[0] == 400
        assert (await seen.ask("POST", "/-/pause", by_socket=True))[0] == 200
        # Five seconds of a busy machine later there may be a session again.
        assert nvml.shutdowns == 1
        # It ends by itself.
        await ready(seen)
        assert (nvml.inits, nvml.shutdowns) == (2, 1)


@contextmanager
def scraping(daemon: Daemon) -> Iterator[list[str]]:
    """Every page as fast as it is answered; what is wrong with a page is found by who reads them."""
    pages: list[str] = []
    done = threading.Event()

    def scrape() -> None:
        while not done.is_set():
            pages.append(daemon.get("/metrics")[1].decode())

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield pages
    finally:
        done.set()
        thread.join()


def series_of(page: str) -> list[str]:
    return [line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")]


def test_through_a_driver_reload_uuids_keep_their_counters_and_no_row_stands_twice(
    node: FakeNode, start: StartDaemon
) -> None:
    throttled = node.gpus[2]
    throttled.set(clock_event_reasons=0x4, power_usage_milliwatts=650_000)
    daemon = start()

    def seconds(page: Page) -> float:
        return (
            page.value("veo_gpu_throttle_seconds_total", uuid=throttled.uuid, reason="sw_power_cap")
            or 0.0
        )

    daemon.wait_for(lambda page: all_ok(page) and seconds(page) > 1)
    throttled.set(clock_event_reasons=0, power_usage_milliwatts=100_000)
    before = seconds(
        daemon.wait_for(lambda page: page.value("veo_gpu_power_watts", uuid=throttled.uuid) == 100)
    )
    with scraping(daemon) as pages:
        node.unload_driver()
        daemon.wait_for(lambda page: set(page.states().values()) == {"unknown"})
        node.load_driver(order=[7, 6, 5, 4, 3, 2, 1, 0])
        page = daemon.wait_for(all_ok)
    # GPU 2 of eight is the sixth now, counted from 0: 7 - 2.
    after = page.value(
        "veo_gpu_throttle_seconds_total", uuid=throttled.uuid, gpu="5", reason="sw_power_cap"
    )
    assert after is not None
    # Not from zero again, and no time in which nobody looked.
    assert before <= after < before + 1
    # The window knows the peak of before: it is five seconds long, and as young as that.
    assert (page.value("veo_gpu_power_peak_watts", uuid=throttled.uuid) or 0) >= 100
    assert len(pages) > 3
    for text in pages:
        series = series_of(text)
        assert len(series) == len(set(series))
        named = Page(text)
        for gpu in node.gpus:
            states = [
                labels for (name, labels) in named.series
                if name == "veo_gpu_state" and ("uuid", gpu.uuid) in labels
            ]  # fmt: skip
            # One row for each state, under one index.
            assert len(states) == len(STATES), text


def test_a_gpu_lost_before_the_start_has_the_uuid_it_had(
    node: FakeNode, start: StartDaemon, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    first = start(f"--state.directory={folder}")
    first.wait_for(all_ok)
    kept = folder / "gpus.json"
    wait_until(kept.is_file)
    assert json.loads(kept.read_text())["gpus"] == {
        gpu.sysfs_address: gpu.uuid for gpu in node.gpus
    }
    first.end()
    gone = node.gpus[3]
    gone.lose()
    second = start(f"--state.directory={folder}")
    page = second.wait_for(lambda page: page.value("veo_gpus_usable") == 7)
    assert (
        page.value(
            "veo_gpu_state", gpu="3", uuid=gone.uuid, pci_bus_id=gone.sysfs_address, state="lost"
        )
        == 1
    )
    assert not [
        labels for (name, labels) in page.series
        if ("uuid", gone.uuid) in labels and not name.startswith(("veo_gpu_state", "veo_gpu_nvml_"))
        and page.series[name, labels] != 0
    ]  # fmt: skip
    gone.recover()
    page = second.wait_for(all_ok)
    assert page.value("veo_gpu_power_watts", uuid=gone.uuid, gpu="3") is not None
    assert len(page.states()) == 8


def test_a_corrupt_state_file_is_counted_and_costs_nothing_else(
    node: FakeNode, start: StartDaemon, tmp_path: Path
) -> None:
    (tmp_path / "gpus.json").write_text("{")
    daemon = start(f"--state.directory={tmp_path}")
    page = daemon.wait_for(all_ok)
    reason = {"kind": "state_file", "reason": "corrupt_or_unusable"}
    assert page.value("veo_exporter_dropped_total", **reason) == 1
    assert (tmp_path / "gpus.corrupt").read_text() == "{"
    wait_until((tmp_path / "gpus.json").is_file)


def test_systemd_says_where(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    assert life.state_directory(State(), {"STATE_DIRECTORY": f"{folder}:/elsewhere"}) == folder
    assert folder.is_dir()
    named = State(directory=tmp_path / "named")
    assert life.state_directory(named, {"STATE_DIRECTORY": str(folder)}) == tmp_path / "named"
    assert life.state_directory(State(enabled=False), {"STATE_DIRECTORY": str(folder)}) is None


def test_without_a_folder_nothing_is_kept_and_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "DEFAULT_DIRECTORY", tmp_path / "absent")
    with capture_logs() as lines:
        assert life.state_directory(State(), {}) is None
    [line] = lines
    assert (line["log_level"], line["reason"]) == ("info", "it does not exist")
    assert not (tmp_path / "absent").exists()
    (tmp_path / "file").touch()
    with capture_logs() as lines:
        assert life.state_directory(State(directory=tmp_path / "file" / "state"), {}) is None
    # Somebody asked for this one.
    assert [line["log_level"] for line in lines] == ["warning"]


def test_999_with_vanished_nodes_says_that_only_a_restart_helps(
    node: FakeNode, start: StartDaemon, tmp_path: Path
) -> None:
    dev = tmp_path / "dev"
    dev.mkdir()
    for name in ("nvidiactl", *(f"nvidia{number}" for number in range(8))):
        (dev / name).touch()
    daemon = start(f"--gpu.device-root={dev}")
    daemon.wait_for(all_ok)
    # Twice, so that the nodes were seen while all was well.
    daemon.wait_for(
        lambda page: (
            (page.value("veo_gpu_nvml_calls_total", function="nvmlDeviceGetCount") or 0) > 2
        )
    )
    node.fail("*", 999)
    daemon.wait_for(lambda page: set(page.states().values()) == {"unknown"})
    wait_until(lambda: b"GPU 0" in daemon.get("/-/ready")[1])
    assert b"restart" not in daemon.get("/-/ready")[1]
    (dev / "nvidiactl").unlink()
    wait_until(lambda: b"only a restart of the exporter" in daemon.get("/-/ready")[1])
    assert f"{dev}/nvidiactl" in daemon.get("/")[1].decode()
    wait_until(lambda: daemon.events("only a restart helps"))


def test_a_library_that_no_longer_fits_says_that_only_a_restart_helps(
    node: FakeNode, start: StartDaemon
) -> None:
    daemon = start()
    daemon.wait_for(all_ok)
    node.fail("*", 18)
    wait_until(lambda: b"only a restart helps" in daemon.get("/-/ready")[1])
    assert "only a restart helps" in daemon.get("/")[1].decode()
    wait_until(
        lambda: any(
            "only a restart helps" in line["remedy"]
            for line in daemon.events("no session with the driver")
        )
    )


def test_calls_are_counted_by_function(node: FakeNode, start: StartDaemon) -> None:
    page = start().wait_for(
        lambda page: (
            (page.value("veo_gpu_nvml_calls_total", function="nvmlInit") or 0) == 1 and all_ok(page)
        )
    )
    assert (page.value("veo_gpu_nvml_calls_total", function="nvmlDeviceGetPowerUsage") or 0) >= 8
    assert (
        page.value("veo_gpu_nvml_call_seconds_total", function="nvmlDeviceGetPowerUsage") or 0
    ) > 0
