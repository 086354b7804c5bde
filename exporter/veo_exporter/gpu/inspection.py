# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One look at the driver and its GPUs, for a person who asks what is wrong.

Watched as the sampler's calls are: a GPU that hangs hides none of the others.
"""

import threading
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from veo_exporter.clock import Clock
from veo_exporter.gpu.capability import capabilities_missing
from veo_exporter.gpu.codes import code_name, remedy_for
from veo_exporter.gpu.crew import Crew, Stuck
from veo_exporter.gpu.ledger import DRIVER
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Device, Reading, WhyNot
from veo_exporter.gpu.roster import subject_of
from veo_exporter.gpu.session import (
    Answer,
    Counted,
    Found,
    Opened,
    Outcome,
    close_session,
    count_gpus,
    find_gpu,
    open_session,
)
from veo_exporter.gpu.worker import Task

STUCK_CALLS_OF_A_LOCKED_DRIVER: Final = 2
_OUR_FAULT: Final = "the exporter could not read it; the log line above says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """One GPU; `fault` is empty if it answers."""

    index: int
    name: str = ""
    pci_bus_id: str = ""
    """Empty if it could not be read."""
    fault: str = ""
    not_supported: tuple[str, ...] = ()
    not_permitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReport:
    """The driver; `fault` is empty if a session could be opened."""

    fault: str = ""
    fault_name: str = ""
    driver_version: str = ""
    gpus: tuple[GpuReport, ...] = ()


def inspect_driver(
    library: Any,
    clock: Clock,
    *,
    call_deadline_seconds: float = 2.0,
    start_deadline_seconds: float = 15.0,
) -> DriverReport:
    """Open a session, ask every GPU everything once, and close it."""
    visit = _Visit(library, clock, call_deadline_seconds, start_deadline_seconds)
    opened = visit.ask(DRIVER, start_deadline_seconds, open_session)
    if not isinstance(opened, Opened) or opened.code:
        return _no_driver(opened)
    try:
        counted = visit.ask(DRIVER, start_deadline_seconds, count_gpus)
        if not isinstance(counted, Counted) or counted.code:
            return _no_driver(counted)
        return DriverReport(
            driver_version=opened.texts.get("driver_version", ""),
            gpus=tuple(visit.inspect_gpu(index) for index in range(counted.count)),
        )
    finally:
        visit.close()


def _no_driver(came: Outcome | Stuck | None) -> DriverReport:
    match came:
        case Opened(code=code) | Counted(code=code):
            return DriverReport(fault=remedy_for(code), fault_name=code_name(code))
        case Stuck():
            return DriverReport(
                fault="the driver hangs: see the kernel log (dmesg) for NVRM lines; "
                "reset the GPU or reboot the node",
                fault_name=f"{came.flight.function} does not return",
            )
        case _:
            return DriverReport(fault=_OUR_FAULT, fault_name="UNREADABLE")


class _Visit:
    """Asks one thing after the other, each within its deadline."""

    def __init__(
        self,
        library: Any,
        clock: Clock,
        call_deadline_seconds: float,
        start_deadline_seconds: float,
    ) -> None:
        self._clock = clock
        self._call_deadline_seconds = call_deadline_seconds
        self._start_deadline_seconds = start_deadline_seconds
        self._wake = threading.Event()
        self._crew = Crew(lambda: library, clock, self._wake)

    def ask(self, subject: str, deadline_seconds: float, run: Any) -> Outcome | Stuck | None:
        """What comes of it; None after a fault of ours, which is logged."""
        self._crew.ask([Task(subject, deadline_seconds, run)])
        while True:
            # Cleared before looking: whatever is set later wakes the wait below.
            self._wake.clear()
            if self._crew.idle:
                return next(self._crew.answers(), None)
            if (left := self._crew.leave_behind_overdue()) is not None:
                return left[0]
            # A call that begins meanwhile is noticed at its deadline.
            self._wake.wait(self._crew.patience_seconds(deadline_seconds))

    def inspect_gpu(self, index: int) -> GpuReport:
        if len(self._crew.stuck) >= STUCK_CALLS_OF_A_LOCKED_DRIVER:
            return GpuReport(
                index=index, fault="not asked: two calls hang, so the driver itself holds a lock"
            )
        found = self.ask(
            subject_of(index), self._start_deadline_seconds, partial(find_gpu, index=index)
        )
        if not isinstance(found, Found):
            return GpuReport(index=index, fault=self._words(found))
        if found.device is None:
            return GpuReport(index=index, fault=f"{found.function}: {code_name(found.code)}")
        readings: list[Reading] = []
        for cadence in Cadence:
            answer = self.ask(
                found.device.uuid, self._call_deadline_seconds, self._reader(found.device, cadence)
            )
            if not isinstance(answer, Answer):
                return _report(found.device, readings, self._words(answer))
            readings.append(answer.reading)
        return _report(found.device, readings)

    def close(self) -> None:
        """Give the session back, unless something is stuck: this would get stuck behind it."""
        if not self._crew.stuck:
            self.ask(DRIVER, self._call_deadline_seconds, close_session)
        self._crew.abandon()

    def _reader(self, device: Device, cadence: Cadence) -> Any:
        def read(line: Line) -> Answer:
            reading = read_gpu(line, device, cadence, (), self._clock)
            return Answer(device=device, reading=reading)

        return read

    def _words(self, came: Outcome | Stuck | None) -> str:
        return f"{came.flight.function} does not return" if isinstance(came, Stuck) else _OUR_FAULT


def _report(device: Device, readings: list[Reading], fault: str = "") -> GpuReport:
    missing = capabilities_missing(reading.missing for reading in readings)
    failures = [failure for reading in readings for failure in reading.failures]
    texts = {label: text for reading in readings for label, text in reading.texts.items()}
    faults = [f"{failure.function}: {code_name(failure.code)}" for failure in failures]

    def named(why: WhyNot) -> tuple[str, ...]:
        return tuple(name for name, reason in missing.items() if reason is why)

    return GpuReport(
        index=device.index,
        name=f"{texts.get('name', 'no name')} ({device.uuid}, {device.pci_bus_id})",
        pci_bus_id=device.pci_bus_id,
        fault=", ".join([*faults, *([fault] if fault else [])]),
        not_supported=named(WhyNot.NOT_SUPPORTED),
        not_permitted=named(WhyNot.NOT_PERMITTED),
    )
