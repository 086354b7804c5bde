# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What to ask of NVML, and what the answers lead to."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import ReturnCode, remedy_for
from veo_exporter.gpu.crew import Tasks
from veo_exporter.gpu.findings import Survey
from veo_exporter.gpu.ledger import DRIVER, Ledger
from veo_exporter.gpu.nodes import Nodes
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Device, Signal
from veo_exporter.gpu.record import Record
from veo_exporter.gpu.roster import subject_of
from veo_exporter.gpu.samples import read_samples
from veo_exporter.gpu.schedule import Schedule
from veo_exporter.gpu.session import (
    Answer,
    Closed,
    ClosingCall,
    Counted,
    Found,
    NodesSeen,
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
LOOK_UP_PATIENCE_SECONDS: Final = 0.5
"""So long the GPUs behind it wait. A GPU that is open already is looked up within microseconds, and the
first data of the others is due two seconds after the start."""


class Plan:
    """Makes tasks from what is due and from what was answered; the ledger is told everything."""

    def __init__(
        self,
        ledger: Ledger,
        timing: Timing,
        clock: Clock,
        look_at_nodes: Callable[[], Nodes] | None = None,
    ) -> None:
        self.awaited: frozenset[str] = frozenset()
        """The subjects of slow calls that are under way: nobody else is to ask about them."""
        self.closing_calls: list[ClosingCall] = []
        self.found_calls: list[Callable[[Device], None]] = []
        self.surveys: dict[Cadence, list[Survey]] = {cadence: [] for cadence in Cadence}
        self.sessions = 0
        """How often the driver was opened and not yet given back."""
        self.reopened = 0
        self.pausing = False
        self._look_at_nodes = look_at_nodes
        self._nodes_seen = False
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

    def pause(self) -> None:
        """Ask nothing until resumed, and follow nothing up."""
        self.pausing = True
        self._ledger.closed(None)

    def resume(self) -> None:
        """Everything is due: a session first of all."""
        self.pausing = False
        self._schedule = Schedule(self._timing.intervals_of_rounds)

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
            tasks += self._node_tasks()
        return tasks

    def follow(self, outcome: Outcome) -> Tasks:
        """Tell the ledger of an answer; gives what to ask next because of it."""
        self._count_sessions(outcome)
        if self.pausing:
            return []
        match outcome:
            case Answer():
                # First, for there are up to four hundred in a second.
                current = self._ledger.answered(outcome)
                if current and ends_session(outcome.reading.code):
                    return self._reopen(outcome.reading.code)
            case Opened():
                self._ledger.opened(outcome)
                self._nodes_seen = False
                if outcome.code == 0:
                    return [self._driver_task(count_gpus, self._timing.start_deadline_seconds)]
                return self._node_tasks()
            case Counted():
                if ends_session(outcome.code):
                    return self._reopen(outcome.code)
                return self._look_up_tasks(outcome)
            case Found():
                if ends_session(outcome.code):
                    return self._reopen(outcome.code)
                return self._first_read_tasks(outcome)
            case NodesSeen():
                self._nodes_seen = True
                self._ledger.nodes_seen(outcome.nodes)
            case Closed():
                pass
        return []

    def _look_up_tasks(self, counted: Counted) -> Tasks:
        indexes = self._ledger.counted(counted, self._clock.monotonic_seconds())
        subject_at = self._ledger.roster.subject_at
        return [self._find_task(one) for one in indexes if subject_at(one) not in self.awaited]

    def _first_read_tasks(self, found: Found) -> Tasks:
        record = self._ledger.found(found)
        if record is None or record.device is None:
            return []
        if record.subject in self._ledger.flights:
            # An earlier call about it is still stuck: a second one would be, too.
            return []
        for tell in self.found_calls:
            tell(record.device)
        return [
            self._read_task(record.device, record, cadence, everything=True) for cadence in Cadence
        ]

    def follow_late(self, outcome: Outcome) -> None:
        """An answer that nobody waited for any more: it is not true now, but what it did to the session is."""
        self._count_sessions(outcome)

    def closing_task(self, deadline_seconds: float) -> Task[Outcome]:
        """Give the session back."""
        close = partial(
            close_session, sessions=max(self.sessions, 1), closing_calls=tuple(self.closing_calls)
        )
        return self._driver_task(close, deadline_seconds)

    def _count_sessions(self, outcome: Outcome) -> None:
        if isinstance(outcome, Opened) and outcome.code == 0:
            self.sessions += 1
        elif isinstance(outcome, Closed):
            self.sessions = max(self.sessions - outcome.sessions, 0)

    def _reopen(self, code: int) -> Tasks:
        if not self._ledger.session_open:
            # Several answers of one round tell of the same end.
            return []
        log.warning("session with the driver ended", remedy=remedy_for(code))
        self._ledger.closed(code)
        self.reopened += 1
        return [self.closing_task(self._timing.call_deadline_seconds), self._open_task()]

    def _readable(self) -> list[Record]:
        # Those that hung before come last: if they do so again, the others have been read.
        answering = [
            record
            for record in self._ledger.records.values()
            if record.answers and not self.awaited & {record.subject, subject_of(record.index)}
        ]
        return sorted(answering, key=lambda record: (record.hangs, record.index or 0))

    def _driver_task(
        self, run: Callable[[Line], Outcome], deadline_seconds: float
    ) -> Task[Outcome]:
        return Task(DRIVER, deadline_seconds, run)

    def _node_tasks(self) -> Tasks:
        """The nodes as they are while all is well, once a session; and again when NVML gives no reason."""
        look = self._look_at_nodes
        if look is None or (self._nodes_seen and not self._ledger.answers_unknown):
            return []
        if not self._ledger.session_open and self._ledger.session_code != ReturnCode.UNKNOWN:
            return []

        def see(line: Line) -> NodesSeen:
            return NodesSeen(nodes=line.wait_for("open", look))

        return [self._driver_task(see, self._timing.call_deadline_seconds)]

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
        return Task(subject, deadline, partial(find_gpu, index=index), LOOK_UP_PATIENCE_SECONDS)

    def _read_task(
        self, device: Device, record: Record, cadence: Cadence, *, everything: bool
    ) -> Task[Outcome]:
        with_samples = self._timing.reads_samples(cadence)

        def read(line: Line) -> Answer:
            skipped: Collection[Signal] = () if everything else record.skipped(cadence)
            if not everything and not skipped:
                # A tick may come before anybody has noted what the sweep has just found to be missing.
                skipped = device.bookmarks.missing.get(cadence, skipped)
            reading = read_gpu(
                line, device, cadence, skipped, self._clock, surveys=self.surveys[cadence]
            )
            if with_samples:
                reading = read_samples(line, device, reading, skipped, self._clock)
            if everything:
                device.bookmarks.missing[cadence] = reading.missing
            return Answer(device=device, reading=reading, everything=everything)

        return Task(record.subject, self._timing.call_deadline_seconds, read)
