# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What to ask of NVML, and what the answers lead to."""

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import remedy_for
from veo_exporter.gpu.crew import Tasks
from veo_exporter.gpu.ledger import DRIVER, Ledger
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Device
from veo_exporter.gpu.record import Record
from veo_exporter.gpu.schedule import Schedule
from veo_exporter.gpu.session import (
    Answer,
    Closed,
    Counted,
    Found,
    Opened,
    Outcome,
    close_session,
    count_gpus,
    ends_session,
    find_gpu,
    open_session,
)
from veo_exporter.gpu.timing import PUBLISH_INTERVAL_SECONDS, Timing
from veo_exporter.gpu.worker import Standing, Task

log = structlog.get_logger(__name__)

LOOK_UP_SHARE: Final = 3
"""A look-up may take this part of the time that opening the driver may take."""


class Plan:
    """Makes tasks from what is due and from what was answered; the ledger is told everything."""

    def __init__(self, ledger: Ledger, timing: Timing, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._timing = timing
        self._schedule = Schedule(timing.intervals_of_rounds)
        self._standing: Standing[Outcome] = Standing()
        self._standing_for: tuple[Device, ...] = ()

    def retime(self, timing: Timing) -> None:
        """Ask at other times from now on."""
        self._timing = timing
        self._schedule = Schedule(timing.intervals_of_rounds)
        self._standing_for = ()
        self._standing = Standing()

    def standing(self) -> Standing[Outcome]:
        """The fast group of every GPU that answers, for the worker to ask by itself."""
        records = self._readable() if self._ledger.session_open else []
        devices = tuple(record.device for record in records if record.device is not None)
        # Compared by identity: a GPU that was found again has a new handle.
        if list(map(id, devices)) != list(map(id, self._standing_for)):
            self._standing_for = devices
            self._standing = Standing(
                tasks=tuple(
                    self._read_task(device, record, Cadence.FAST, everything=False)
                    for device, record in zip(devices, records, strict=True)
                ),
                interval_seconds=self._timing.fast_interval_seconds,
                tell_seconds=PUBLISH_INTERVAL_SECONDS,
            )
        return self._standing

    def seconds_until_next(self) -> float:
        """How long there is nothing to do."""
        return self._schedule.seconds_until_next(self._clock.monotonic_seconds())

    def due(self) -> tuple[Cadence, ...]:
        """The groups whose time has come."""
        return self._schedule.due(self._clock.monotonic_seconds())

    def tasks_for(self, due: tuple[Cadence, ...], *, driver_stuck: bool) -> Tasks:
        """What to ask for these groups. A call that concerns the driver and has not returned is
        not made once more."""
        if self._ledger.driver_hung:
            return []
        driver_asked = Cadence.FULL in due and not driver_stuck
        if not self._ledger.session_open:
            return [self._open_task()] if driver_asked else []
        # Rights and MIG modes change: with the static sweep, everything is asked for again.
        everything = Cadence.STATIC in due
        readable = self._readable()
        tasks = [
            self._read_task(record.device, record, cadence, everything=everything)
            for cadence in (tuple(Cadence) if everything else due)
            for record in readable
            if record.device is not None
        ]
        if driver_asked:
            tasks.append(self._driver_task(count_gpus, self._timing.call_deadline_seconds))
        return tasks

    def follow(self, outcome: Outcome) -> Tasks:
        """Tell the ledger of an answer; gives what to ask next because of it."""
        match outcome:
            case Opened():
                self._ledger.opened(outcome)
                if outcome.code == 0:
                    return [self._driver_task(count_gpus, self._timing.start_deadline_seconds)]
            case Counted():
                if ends_session(outcome.code):
                    return self._reopen(outcome.code)
                indexes = self._ledger.counted(outcome, self._clock.monotonic_seconds())
                return [self._find_task(index) for index in indexes]
            case Found():
                if ends_session(outcome.code):
                    return self._reopen(outcome.code)
                record = self._ledger.found(outcome)
                if record is not None and record.subject in self._ledger.flights:
                    # An earlier call about it is still stuck: a second one would be, too.
                    return []
                if record is not None and record.device is not None:
                    return [
                        self._read_task(record.device, record, cadence, everything=True)
                        for cadence in Cadence
                    ]
            case Answer():
                current = self._ledger.answered(outcome)
                if current and ends_session(outcome.reading.code):
                    return self._reopen(outcome.reading.code)
            case Closed():
                pass
        return []

    def closing_task(self, deadline_seconds: float) -> Task[Outcome]:
        """Give the session back."""
        return self._driver_task(close_session, deadline_seconds)

    def _reopen(self, code: int) -> Tasks:
        if not self._ledger.session_open:
            # Several answers of one round tell of the same end.
            return []
        log.warning("session with the driver ended", remedy=remedy_for(code))
        self._ledger.closed(code)
        return [self.closing_task(self._timing.call_deadline_seconds), self._open_task()]

    def _readable(self) -> list[Record]:
        # Those that hung before come last: if they do so again, the others have been read.
        answering = [record for record in self._ledger.records.values() if record.answers]
        return sorted(answering, key=lambda record: (record.hangs, record.index or 0))

    def _driver_task(
        self, run: Callable[[Line], Outcome], deadline_seconds: float
    ) -> Task[Outcome]:
        return Task(DRIVER, deadline_seconds, run)

    def _open_task(self) -> Task[Outcome]:
        return self._driver_task(open_session, self._timing.start_deadline_seconds)

    def _find_task(self, index: int) -> Task[Outcome]:
        subject = self._ledger.roster.subject_at(index)
        # Opening a GPU takes seconds without persistence mode; one that this session has opened
        # already has no such excuse. The others wait for it meanwhile, so it gets a part only of
        # the time that opening the driver may take.
        timing = self._timing
        patient = max(timing.call_deadline_seconds, timing.start_deadline_seconds / LOOK_UP_SHARE)
        known = self._ledger.roster.knows_handle_at(index)
        deadline = timing.call_deadline_seconds if known else patient
        return Task(subject, deadline, partial(find_gpu, index=index))

    def _read_task(
        self, device: Device, record: Record, cadence: Cadence, *, everything: bool
    ) -> Task[Outcome]:
        def read(line: Line) -> Answer:
            skipped = () if everything else record.skipped(cadence)
            reading = read_gpu(line, device, cadence, skipped, self._clock)
            return Answer(device=device, reading=reading, everything=everything)

        return Task(record.subject, self._timing.call_deadline_seconds, read)
