# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that talks to NVML, and that is left behind when NVML does not answer."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
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


@dataclass(slots=True)
class Round(Generic[Result]):
    """Tasks in order, and the results so far. Only the worker appends, only the watcher reads."""

    tasks: tuple[Task[Result], ...]
    results: list[Result] = field(default_factory=list)
    place: int = 0
    finished: bool = False
    abandoned: bool = False

    @property
    def current(self) -> Task[Result]:
        """The task at which the worker is."""
        return self.tasks[self.place]


class Worker(Generic[Result]):
    """Runs rounds on a daemon thread. `wake` is set when a round ends and when the thread does."""

    def __init__(self, library: Any, clock: Clock, wake: threading.Event, name: str) -> None:
        self.line = Line(library, clock)
        self._wake = wake
        self.ended = False
        self._rounds: SimpleQueue[Round[Result] | None] = SimpleQueue()
        self._reported: set[str] = set()
        # A daemon: a thread that the driver does not give back must not keep the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, round: Round[Result]) -> None:
        self._rounds.put(round)

    def dismiss(self) -> None:
        """Let the thread end once it has nothing to do."""
        self._rounds.put(None)

    def _run(self) -> None:
        try:
            while (round := self._rounds.get()) is not None:
                for place, task in enumerate(round.tasks):
                    round.place = place
                    self._carry_out(task, round)
                    if round.abandoned:
                        # Others have taken over; what came so late is no longer true.
                        return
                round.finished = True
                self._wake.set()
        finally:
            self.ended = True
            self._wake.set()

    def _carry_out(self, task: Task[Result], round: Round[Result]) -> None:
        try:
            result = task.run(self.line)
        except Exception as error:
            # A fault of ours. It costs this reading, which then grows stale, and no other.
            if (known := f"{task.subject}: {type(error).__name__}") not in self._reported:
                self._reported.add(known)
                log.exception("reading failed", subject=task.subject)
            return
        if not round.abandoned:
            round.results.append(result)
