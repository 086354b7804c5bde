# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A clock that a test moves, and a library in place of pynvml that does as a test says."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from tests.gpu.board_answers import BOARD_ANSWERS, zero_fields
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.readings import (
    Cadence,
    Device,
    Driver,
    Failure,
    GpuView,
    Reading,
    Signal,
    Snapshot,
    State,
    WhyNot,
    nothing_summed,
)

PATIENCE_SECONDS = 30.0
EVERY = "*"
FIELD_VALUES = "nvmlDeviceGetFieldValues"

# How long an example takes is the machine's affair.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


class FakeClock:
    """Stands still until it is moved. The wall clock is a million seconds ahead."""

    def __init__(self, monotonic_seconds: float = 1000.0) -> None:
        self.now = monotonic_seconds

    def monotonic_seconds(self) -> float:
        return self.now

    def unix_seconds(self) -> float:
        return self.now + 1e6


class ScriptedError(Exception):
    """As the bindings raise it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def _nothing_newer(_: str) -> Any:
    raise ScriptedError(6)


@dataclass(frozen=True)
class ScriptedHandle:
    uuid: str
    session: int


class ScriptedNvml:
    """GPUs by UUID, listed in an order; each call can be given a code, an answer or a gate.

    A handle of an earlier session is INVALID_ARGUMENT, as nothing may use one.
    """

    NVMLError = ScriptedError

    def __init__(self, *uuids: str) -> None:
        self.listed = list(uuids)
        self.codes: dict[tuple[str, str], int] = {}
        self.answers: dict[tuple[str, str], Any] = {}
        self.absent: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.waiting = 0
        self.session = 0
        self.open = False
        self._gates: dict[tuple[str, str], threading.Event] = {}
        self._defaults: dict[str, Callable[[str], Any]] = {
            "nvmlSystemGetDriverVersion": lambda _: "570.1",
            "nvmlSystemGetNVMLVersion": lambda _: "12.570.1",
            "nvmlSystemGetCudaDriverVersion_v2": lambda _: 12080,
            "nvmlDeviceGetCount": lambda _: len(self.listed),
            "nvmlDeviceGetUUID": lambda uuid: uuid,
            "nvmlDeviceGetPciInfo": lambda uuid: SimpleNamespace(busId=nvml_address(uuid)),
            "nvmlDeviceGetName": lambda uuid: f"board of {uuid}",
            "nvmlDeviceGetVbiosVersion": lambda _: "96.00",
            "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=50, memory=25),
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(
                total=1000, used=600, free=300, reserved=100
            ),
            "nvmlDeviceGetPowerUsage": lambda _: 250_000,
            "nvmlDeviceGetClockInfo": lambda _: 1500,
            "nvmlDeviceGetTemperature": lambda _: 60,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda _: 0,
            "nvmlDeviceGetTotalEnergyConsumption": lambda _: 9_000_000,
            "nvmlDeviceGetEncoderUtilization": lambda _: (10, 167_000),
            "nvmlDeviceGetDecoderUtilization": lambda _: (20, 167_000),
            "nvmlDeviceGetMigMode": lambda _: [0, 0],
            "nvmlDeviceGetEnforcedPowerLimit": lambda _: 700_000,
            "nvmlDeviceGetMaxClockInfo": lambda _: 1980,
            **BOARD_ANSWERS,
            # There is a buffer, and never anything newer in it.
            "nvmlDeviceGetSamples": _nothing_newer,
        }

    def __getattr__(self, name: str) -> Any:
        of_their_own = ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex", FIELD_VALUES)
        known = name in {*of_their_own, *self._defaults}
        if not known or name in self.absent:
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, *arguments)

    def hang(self, uuid: str = "", function: str = EVERY) -> None:
        self._gates[function, uuid] = threading.Event()

    def release(self, uuid: str = "", function: str = EVERY) -> None:
        self._gates.pop((function, uuid)).set()

    def release_all(self) -> None:
        for gate in list(self._gates.values()):
            gate.set()
        self._gates.clear()

    def lose(self, uuid: str, code: int = 15) -> None:
        self.codes[EVERY, uuid] = code

    def recover(self, uuid: str) -> None:
        del self.codes[EVERY, uuid]

    def end_session(self) -> None:
        """The driver was unloaded and is there again: whoever had a session has none."""
        self.open = False

    def count_calls(self, function: str = EVERY, uuid: str | None = None) -> int:
        return sum(
            function in (EVERY, called) and uuid in (None, about)
            for called, about in list(self.calls)
        )

    def _answer(self, name: str, *arguments: Any) -> Any:
        uuid = self._subject(name, arguments)
        self.calls.append((name, uuid))
        gate = self._gates.get((name, uuid)) or self._gates.get((EVERY, uuid))
        if gate is not None:
            self.waiting += 1
            gate.wait(PATIENCE_SECONDS * 3)
            self.waiting -= 1
        code = self.codes.get((EVERY, uuid)) or self.codes.get((name, uuid))
        if code:
            raise ScriptedError(code)
        if name == "nvmlInit":
            self.session += 1
            self.open = True
            return None
        if not self.open:
            raise ScriptedError(1)
        if name == "nvmlShutdown":
            self.open = False
            return None
        if name == "nvmlDeviceGetHandleByIndex":
            return ScriptedHandle(uuid, self.session)
        if uuid and arguments[0].session != self.session:
            raise ScriptedError(2)
        if (name, uuid) in self.answers:
            return self.answers[name, uuid]
        if name == FIELD_VALUES:
            return zero_fields(arguments[1])
        return self._defaults[name](uuid)

    def _subject(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name == "nvmlDeviceGetHandleByIndex":
            return self.listed[int(arguments[0])]
        return str(arguments[0].uuid) if arguments else ""


def address_of(uuid: str) -> str:
    """A GPU's PCI address as the kernel writes it; its UUID ends with its slot."""
    return f"0000:{int(uuid[-1]):02x}:00.0"


def nvml_address(uuid: str) -> str:
    return "0000" + address_of(uuid).upper()


def device_of(uuid: str, index: int) -> Device:
    return Device(index, uuid, address_of(uuid), object())


def reading_of(
    cadence: Cadence = Cadence.FAST,
    at: float = 1000.0,
    *,
    values: Mapping[Signal, float] | None = None,
    texts: Mapping[str, str] | None = None,
    missing: Mapping[Signal, WhyNot] | None = None,
    failures: tuple[Failure, ...] = (),
    implausible: int = 0,
    code: int = 0,
) -> Reading:
    return Reading(
        cadence=cadence,
        finished_unix_seconds=at + 1e6,
        finished_monotonic_seconds=at,
        values=values or {},
        texts=texts or {},
        failures=failures,
        missing=missing or {},
        implausible=implausible,
        code=code,
    )


def wait_until(holds: Callable[[], object], what: str = "") -> None:
    """Poll until a condition holds; fail when it does not in good time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"never came true: {what or holds}"
        time.sleep(0.002)


def view_of(uuid: str = "GPU-1", index: int | None = 0, /, **changes: Any) -> GpuView:
    """A healthy GPU of which nothing was read yet, but for what is changed."""
    healthy = GpuView(
        index=index,
        uuid=uuid,
        pci_bus_id=address_of(uuid),
        state=State.OK,
        code=0,
        texts={},
        readings=(),
        missing={},
        errors={},
        implausible_readings=0,
        overdue_call=None,
    )
    summed = nothing_summed()
    summed = summed._replace(
        **{name: changes.pop(name) for name in summed._fields if name in changes}
    )
    return replace(healthy, summed=lambda: summed, **changes)


def snapshot_of(*gpus: GpuView, **changes: Any) -> Snapshot:
    """A snapshot at a monotonic time of 1000 s, with an open session."""
    texts = {"driver_version": "570.1", "nvml_version": "12.570.1", "cuda_version": "12.8"}
    session = Driver(fault="", texts=texts, visible=len(gpus))
    snapshot = Snapshot(
        sequence=1,
        # Fresh, whatever the time asked about.
        taken_monotonic_seconds=float("inf"),
        driver=session,
        expected=len(gpus),
        gpus=gpus,
        last_success_unix_seconds=dict.fromkeys(Cadence, 0.0),
        stale_after_seconds={Cadence.FAST: 5.0, Cadence.FULL: 15.0, Cadence.STATIC: 180.0},
    )
    return replace(snapshot, **changes)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def nvml() -> ScriptedNvml:
    """Two GPUs, in a session."""
    library = ScriptedNvml("GPU-1", "GPU-2")
    library.nvmlInit()
    library.calls.clear()
    return library


@pytest.fixture
def line(nvml: ScriptedNvml, clock: FakeClock) -> Line:
    return Line(nvml, clock)


@pytest.fixture
def first(nvml: ScriptedNvml) -> Device:
    """The first of the two GPUs, as the session knows it."""
    return Device(0, "GPU-1", address_of("GPU-1"), ScriptedHandle("GPU-1", nvml.session))


@pytest.fixture
def start() -> Iterator[Any]:
    """Starts samplers; each is stopped at the end, and every call that hangs returns."""
    # It stands on what is above.
    from tests.gpu.running import starting

    with starting() as start_sampler:
        yield start_sampler
