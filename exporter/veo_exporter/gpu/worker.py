# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that talks to NVML, and that is left behind when NVML does not answer."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.nvml import Line

log = structlog.get_logger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Task(Generic[Result]):
    """Something to ask. `subject` is the GPU that is blamed if no answer comes, or the driver."""

    subject: str
    deadline_seconds: float
    run: Callable[[Line], Result]
    patience_seconds: float | None = None
    """If it takes longer, what comes behind it goes on without it; it is still waited for."""


@dataclass(slots=True)
class Round(Generic[Result]):
    """Tasks to be carried out once, in order."""

    tasks: tuple[Task[Result], ...]
    done: int = 0
    cut: bool = False
    """Somebody else carries out what was not begun."""

    @property
    def finished(self) -> bool:
        return self.done == len(self.tasks)


@dataclass(frozen=True, slots=True)
class Standing(Generic[Result]):
    """Tasks to be carried out again and again; `tell` is how often the watcher hears of it."""

    tasks: tuple[Task[Result], ...] = ()
    interval_seconds: float = 1.0
    tell_seconds: float = 1.0


class Worker(Generic[Result]):
    """Carries out rounds, and standing tasks between their tasks, on a daemon thread.

    Only the worker appends to `answers` and `late`, only the watcher takes from them. `wake` is set when a round
    ends, when there is news of standing tasks, and when the thread ends.
    """

    def __init__(self, library: Any, clock: Clock, wake: threading.Event, name: str) -> None:
        self.line = Line(library, clock)
        self.answers: deque[Result] = deque()
        self.late: deque[Result] = deque()
        """What was answered after it was abandoned; complete once it has ended."""
        self.task: Task[Result] | None = None
        self.standing: Standing[Result] = Standing()
        self.abandoned = False
        self.ended = False
        self._clock = clock
        self._wake = wake
        self._rounds: SimpleQueue[Round[Result] | None] = SimpleQueue()
        self._told_at = 0.0
        self._tick_at = 0.0
        self._interval_seconds = 0.0
        self._reported: set[str] = set()
        # A daemon: a thread that the driver does not give back must not keep the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, round: Round[Result]) -> None:
        """Carry out a round as soon as what runs now has returned."""
        self._rounds.put(round)

    def keep_asking(self, standing: Standing[Result]) -> None:
        """Carry these out from now on, in place of other standing tasks."""
        if standing is not self.standing:
            self.standing = standing
            # The thread may be waiting for a tick of the old ones.
            self._rounds.put(Round(()))

    def dismiss(self) -> None:
        """Let the thread end once it has nothing to do."""
        self._rounds.put(None)

    def _run(self) -> None:
        try:
            while not self.abandoned:
                wait_seconds = self._tick_if_due()
                if wait_seconds == 0.0:
                    continue
                try:
                    round = self._rounds.get(timeout=wait_seconds)
                except Empty:
                    continue
                if round is None:
                    return
                self._carry_out_round(round)
        finally:
            self.ended = True
            self._wake.set()

    def _tick_if_due(self) -> float | None:
        """Carry out the standing tasks if it is time to. 0: it was; else how long there is until then."""
        now = self._clock.monotonic_seconds()
        standing = self.standing
        interval = standing.interval_seconds
        if interval != self._interval_seconds:
            self._tick_at, self._interval_seconds = now, interval
        if not standing.tasks:
            return None
        if now < self._tick_at:
            return self._tick_at - now
        self._carry_out_standing(standing)
        # From the last scheduled tick, so that they do not drift; missed ones are skipped.
        missed = (self._clock.monotonic_seconds() - self._tick_at) // interval
        self._tick_at += (max(missed, 0) + 1) * interval
        return 0.0

    def _carry_out_standing(self, standing: Standing[Result]) -> None:
        for task in standing.tasks:
            if self.standing is not standing:
                # A session was closed, or a GPU has gone: its handles are dead.
                return
            self._carry_out(task)
            if self.abandoned:
                return
        now = self._clock.monotonic_seconds()
        # Half a tick of grace, so that 1 s samples are told of each second and not every other.
        if now - self._told_at >= standing.tell_seconds - standing.interval_seconds / 2:
            self._told_at = now
            self._wake.set()

    def _carry_out_round(self, round: Round[Result]) -> None:
        for place, task in enumerate(round.tasks):
            if place:
                # However long all of them take, the standing ones come when they are due.
                self._tick_if_due()
                if self._is_taken_from(round):
                    return
            self._carry_out(task)
            if self.abandoned:
                return
            round.done += 1
            if self._is_taken_from(round):
                return
        if round.tasks:
            self._wake.set()

    def _is_taken_from(self, round: Round[Result]) -> bool:
        """Whether somebody else carries out the rest."""
        return self.abandoned or round.cut

    def _carry_out(self, task: Task[Result]) -> None:
        self.task = task
        try:
            result = task.run(self.line)
        except Exception as error:
            # A fault of ours. It costs this reading, which then grows stale, and no other.
            if (known := f"{task.subject}: {type(error).__name__}") not in self._reported:
                self._reported.add(known)
                log.exception("reading failed", subject=task.subject)
            return
        # If it was abandoned, others have taken over; what comes so late is no longer true.
        (self.late if self.abandoned else self.answers).append(result)
