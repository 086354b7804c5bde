# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The whole exporter in this process, on a node in memory."""

import asyncio
import io
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from veo_exporter.app import App, Hardware
from veo_exporter.catalog import CATALOG
from veo_exporter.clock import SystemClock
from veo_exporter.config import Settings
from veo_exporter.errors import BadConfig, ListenFailed

PATIENCE_SECONDS = 60.0
REQUESTS = "veo_exporter_http_requests_total"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class MemoryError_(Exception):  # noqa: N801, the bindings name theirs as they like
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class MemoryNvml:
    """A driver with a few GPUs whose figures are their numbers."""

    NVMLError = MemoryError_

    def __init__(self, gpus: int, name: str = "Board") -> None:
        self.gpus = gpus
        self.name = name
        self.sessions = 0
        self.inits = 0
        self.shutdowns = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.inits += 1
        self.sessions += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.shutdowns += 1
        self.sessions -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, gpu: int) -> str:  # noqa: N802
        return f"GPU-{self.name}-{gpu}"

    def nvmlDeviceGetPciInfo(self, gpu: int) -> Any:  # noqa: N802
        return SimpleNamespace(busId=f"00000000:{gpu:02X}:00.0")

    def nvmlDeviceGetName(self, gpu: int) -> str:  # noqa: N802
        return self.name

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> int:  # noqa: N802
        return 100_000 + gpu

    def nvmlDeviceGetTemperature(self, gpu: int, sensor: int) -> int:  # noqa: N802
        return 40 + gpu

    def pci_functions(self) -> frozenset[str]:
        return frozenset(f"0000:{gpu:02x}:00.0" for gpu in range(self.gpus))


def settings(path: Path | None = None, **gpu: Any) -> Settings:
    quick = {"fast_interval": "50ms", "full_interval": "1s", "static_interval": "5s"}
    web = {"listen_address": "127.0.0.1:0", "unix_socket": None if path is None else str(path)}
    return Settings.model_validate({"web": web, "gpu": {**quick, "window": "5s", **gpu}})


class Running:
    """An App that runs, and the ways to it."""

    def __init__(self, app: App, path: Path | None, nvml: MemoryNvml) -> None:
        self.app, self.path, self.nvml = app, path, nvml
        self.next: Settings | BadConfig = app.settings

    async def ask(
        self, method: str, path: str, *, by_socket: bool = False, **headers: str
    ) -> tuple[int, str]:
        connector = aiohttp.UnixConnector(str(self.path)) if by_socket else None
        host = "localhost" if by_socket else f"127.0.0.1:{self.app.server.port}"
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.request(method, f"http://{host}{path}", headers=headers) as response,
        ):
            return response.status, await response.text()

    async def post(self, path: str, content: object, kind: str) -> tuple[int, str]:
        """The answer to a document sent over loopback."""
        body = io.BytesIO(json.dumps(content).encode())
        url = f"http://127.0.0.1:{self.app.server.port}{path}"
        async with (
            aiohttp.ClientSession() as client,
            client.post(url, data=body, headers={"Content-Type": kind}) as response,
        ):
            return response.status, await response.text()

    async def series(self) -> Series:
        status, text = await self.ask(
            "GET", "/metrics", Accept="application/openmetrics-text;version=1.0.0"
        )
        assert status == 200
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
            for sample in family.samples
        }

    async def value(self, name: str, **labels: str) -> float | None:
        return (await self.series()).get((name, frozenset(labels.items())))


async def until(ask: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await ask():
        assert time.monotonic() < deadline, "not so in time"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def running(
    given: Settings, nvml: MemoryNvml | None = None, *, simulated: bool = False
) -> AsyncIterator[Running]:
    nvml = nvml or MemoryNvml(2)
    hardware = Hardware(
        load_library=lambda: nvml, pci_functions=nvml.pci_functions, simulated=simulated
    )

    def read_settings() -> Settings:
        if isinstance(seen.next, BadConfig):
            raise seen.next
        return seen.next

    app = App(given, hardware=hardware, read_settings=read_settings, clock=SystemClock())
    seen = Running(app, given.web.unix_socket, nvml)
    stop = asyncio.Event()
    run = asyncio.create_task(app.run(stop))
    try:

        async def listens() -> bool:
            if run.done():
                await run
            path = given.web.unix_socket
            return app.server.port > 0 and (path is None or path.is_socket())

        await until(listens)
        yield seen
    finally:
        stop.set()
        await asyncio.wait_for(run, PATIENCE_SECONDS)


async def counted(seen: Running, name: str, count: int, **labels: str) -> None:
    """What is counted is on the page within a second, and not with each scrape."""

    async def is_counted() -> bool:
        return await seen.value(name, **labels) == count

    await until(is_counted)


async def ready(seen: Running) -> None:
    async def is_ready() -> bool:
        return (await seen.ask("GET", "/-/ready"))[0] == 200

    await until(is_ready)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "veo.sock"


async def test_from_the_driver_to_the_page(path: Path) -> None:
    async with running(settings(path)) as seen:
        await ready(seen)
        assert (await seen.ask("GET", "/-/ready"))[1] == "ready\n"
        assert (await seen.ask("GET", "/-/healthy")) == (200, "healthy\n")
        series = await seen.series()

        def value(name: str, **labels: str) -> float | None:
            return series.get((name, frozenset(labels.items())))

        assert value("veo_gpu_power_watts", gpu="1", uuid="GPU-Board-1") == 100.001
        assert value("veo_gpu_temperature_celsius", gpu="0", uuid="GPU-Board-0") == 40
        assert value("veo_gpu_temperature_peak_celsius", gpu="0", uuid="GPU-Board-0") == 40
        assert (value("veo_gpus_expected"), value("veo_gpus_usable")) == (2, 2)
        assert value("veo_exporter_simulated") == 0
        assert value("veo_exporter_config_last_reload_successful") == 1
        # What this driver lacks is absent, and said to be.
        assert not [name for name, _ in series if name == "veo_gpu_utilization_ratio"]
        assert value("veo_gpu_capability_missing", gpu="0", uuid="GPU-Board-0",
                     signal="veo_gpu_utilization_ratio", why="not_supported") == 1  # fmt: skip
        assert {name for name, _ in series} <= {name for s in CATALOG for name in s.series_names}

        status, page = await seen.ask("GET", "/", by_socket=True)
        assert status == 200
        assert "GPU-Board-1" in page
        assert "Simulated" not in page
        assert "(simulated)" not in page
    assert seen.nvml.sessions == 0
    assert not await asyncio.to_thread(path.exists)


async def test_simulation_is_said_on_every_page() -> None:
    async with running(settings(), simulated=True) as seen:
        assert await seen.value("veo_exporter_simulated") == 1
        page = (await seen.ask("GET", "/"))[1]
        assert "Simulated: every figure here is made up." in page


async def test_two_live_in_one_process(tmp_path: Path) -> None:
    async with AsyncExitStack() as both:
        first = await both.enter_async_context(
            running(settings(tmp_path / "a"), MemoryNvml(1, "First"))
        )
        second = await both.enter_async_context(
            running(settings(tmp_path / "b"), MemoryNvml(3, "Second"))
        )
        for seen in (first, second):
            await ready(seen)
        for _ in range(3):
            await first.ask("GET", "/nothing")
        names = [
            {name for _, labels in await seen.series() for key, name in labels if key == "uuid"}
            for seen in (first, second)
        ]
        assert names[0] >= {"GPU-First-0"}
        assert names[1] >= {"GPU-Second-0", "GPU-Second-1", "GPU-Second-2"}
        assert not any("Second" in name for name in names[0])
        lost = {"path": "other", "code": "404"}
        await counted(first, REQUESTS, 3, **lost)
        assert await second.value(REQUESTS, **lost) is None


async def test_refusals_are_counted_and_start_at_zero() -> None:
    async with running(settings()) as seen:
        for reason in ("not_local", "bad_host", "not_on_socket"):
            labels = {"kind": "http_request", "reason": reason}
            assert await seen.value("veo_exporter_dropped_total", **labels) == 0
        assert (await seen.ask("GET", "/", Host="evil.example"))[0] == 403
        assert (await seen.ask("POST", "/-/reload"))[0] == 403
        for reason in ("bad_host", "not_on_socket"):
            labels = {"kind": "http_request", "reason": reason}
            await counted(seen, "veo_exporter_dropped_total", 1, **labels)
        denied = {"path": "/", "code": "403"}
        await counted(seen, REQUESTS, 1, **denied)


async def test_a_reload_takes_hold(path: Path) -> None:
    async with running(settings(path)) as seen:
        await ready(seen)
        seen.next = settings(path, expected_count=5)
        assert await seen.ask("POST", "/-/reload", by_socket=True) == (200, "reloaded\n")
        assert seen.app.settings == seen.next

        async def expects_five() -> bool:
            return await seen.value("veo_gpus_expected") == 5

        await until(expects_five)
        assert await seen.value("veo_exporter_config_last_reload_successful") == 1


async def test_a_reload_takes_other_thresholds_of_advice() -> None:
    given = settings()
    async with running(given) as seen:
        seen.next = given.model_copy(
            update={"advice": given.advice.model_copy(update={"low_above": 0.7})}
        )
        await seen.app.reload()
        status, text = await seen.ask("GET", "/api/v1/advice")
        assert status == 200
        assert json.loads(text)["thresholds"]["low_above"] == 0.7


async def test_a_bad_reload_leaves_everything_as_it_was(path: Path) -> None:
    given = settings(path, expected_count=5)
    successful = "veo_exporter_config_last_reload_successful"
    at = "veo_exporter_config_last_reload_success_timestamp_seconds"
    async with running(given) as seen:
        await ready(seen)
        before = await seen.value(at)
        seen.next = BadConfig(["veo.yaml: gpu.windoww: no such setting", "log: no"])
        assert await seen.ask("POST", "/-/reload", by_socket=True) == (
            400,
            (
                "refused, the old configuration stays:\n"
                "veo.yaml: gpu.windoww: no such setting\nlog: no\n"
            ),
        )
        assert seen.app.settings is given
        assert await seen.value(successful) == 0
        assert await seen.value(at) == before
        assert await seen.value("veo_gpus_expected") == 5

        seen.next = given
        assert (await seen.ask("POST", "/-/reload", by_socket=True))[0] == 200
        assert await seen.value(successful) == 1
        after = await seen.value(at)
        assert after is not None
        assert before is not None
        assert after > before


async def test_what_needs_a_restart_is_refused_by_name(path: Path, tmp_path: Path) -> None:
    given = settings(path)
    changed = Settings.model_validate(
        {
            "web": {"listen_address": "127.0.0.1:1", "unix_socket": str(tmp_path / "other")},
            "gpu": {
                "enabled": False,
                "sysfs_root": "/host/sys",
                "dcgm_names": "classic",
                "window": "10s",
            },
            "log": {"level": "debug"},
        }
    )
    async with running(given) as seen:
        seen.next = changed
        with pytest.raises(BadConfig) as refused:
            await seen.app.reload()
        assert refused.value.faults == [
            f"{name} cannot change while the exporter runs: restart it"
            for name in (
                "web.listen_address", "web.unix_socket", "gpu.enabled", "gpu.sysfs_root",
                "gpu.dcgm_names", "log.level"
            )
        ]  # fmt: skip
        # Refused whole: the window, which could change, has not.
        assert seen.app.settings is given
        assert await seen.value("veo_exporter_config_last_reload_successful") == 0


async def test_gpus_that_are_not_watched_are_left_alone() -> None:
    nvml = MemoryNvml(2)
    async with running(settings(enabled=False), nvml) as seen:
        assert await seen.ask("GET", "/-/healthy") == (200, "healthy\n")
        assert await seen.ask("GET", "/-/ready") == (200, "ready\n")
        names = {name for name, _ in await seen.series()}
        assert not [name for name in names if name.startswith("veo_gpu")]
        assert "veo_exporter_build_info" in names
        page = (await seen.ask("GET", "/"))[1]
        assert "GPUs are not watched (gpu.enabled is false)." in page
        assert "Nothing is withdrawn." in page
    assert nvml.inits == 0


async def test_a_taken_address_leaves_the_driver_alone() -> None:
    nvml = MemoryNvml(2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        given = Settings.model_validate({"web": {"listen_address": address}})
        with pytest.raises(ListenFailed) as failed:
            async with running(given, nvml):
                raise AssertionError("it cannot have come here")
    assert str(failed.value) == (
        f"web.listen_address {address}: Address already in use: free the port or choose another"
    )
    assert nvml.inits == 0


async def test_a_socket_that_another_serves_is_not_taken_over(path: Path) -> None:
    async with running(settings(path)) as first:
        nvml = MemoryNvml(1)
        hardware = Hardware(
            load_library=lambda: nvml, pci_functions=nvml.pci_functions, simulated=False
        )
        given = settings(path)
        second = App(given, hardware=hardware, read_settings=lambda: given, clock=SystemClock())
        with pytest.raises(ListenFailed) as failed:
            await second.run(asyncio.Event())
        assert str(failed.value) == (
            f"web.unix_socket {path}: another process is serving on it: end it or choose another"
        )
        assert nvml.inits == 0
        assert (await first.ask("GET", "/-/healthy", by_socket=True))[0] == 200


async def test_a_driver_that_is_not_there_is_told_and_costs_nothing_else() -> None:
    class Absent(MemoryNvml):
        def nvmlInit(self) -> None:  # noqa: N802
            raise MemoryError_(9)

    async with running(settings(), Absent(2)) as seen:

        async def asked() -> bool:
            return "not loaded" in (await seen.ask("GET", "/-/ready"))[1]

        await until(asked)
        assert await seen.ask("GET", "/-/ready") == (
            503,
            "withdrawn:\nGPUs: the NVIDIA kernel driver is not loaded: load it (modprobe nvidia)\n",
        )
        assert (await seen.ask("GET", "/-/healthy"))[0] == 200
        assert await seen.value("veo_gpus_visible") == 0
        page = (await seen.ask("GET", "/"))[1]
        assert "the NVIDIA kernel driver is not loaded" in page
