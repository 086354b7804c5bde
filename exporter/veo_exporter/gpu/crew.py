# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who talks to NVML: one worker at a time, watched, and those that were left behind."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from veo_exporter.clock import Clock
from veo_exporter.gpu.nvml import Flight
from veo_exporter.gpu.session import Outcome
from veo_exporter.gpu.worker import Round, Standing, Task, Worker

Tasks = list[Task[Outcome]]


@dataclass(frozen=True, slots=True)
class Stuck:
    """A worker that was left behind with a call that does not return."""

    worker: Worker[Outcome]
    subject: str
    flight: Flight


class Crew:
    """Hands tasks to a worker, and leaves it behind when a call of it is over its deadline.

    Everything here is called by the watching thread; `wake` is what it waits for.
    """

    def __init__(
        self, load_library: Callable[[], Any], clock: Clock, wake: threading.Event
    ) -> None:
        self.stuck: list[Stuck] = []
        self._load_library = load_library
        self._library: Any = None
        self._clock = clock
        self._wake = wake
        self._worker: Worker[Outcome] | None = None
        self._round: Round[Outcome] = Round(())
        self._standing: Standing[Outcome] = Standing()
        self._made = 0

    @property
    def idle(self) -> bool:
        """Whether the last round has ended."""
        return self._round.finished or self._worker is None or self._worker.ended

    def ask(self, tasks: Tasks) -> None:
        """Carry these out once, in order; only while idle."""
        self._round = Round(tuple(tasks))
        if tasks:
            self._at_work().submit(self._round)

    def keep_asking(self, standing: Standing[Outcome]) -> None:
        """Carry these out again and again."""
        self._standing = standing
        if self._worker is not None or standing.tasks:
            self._at_work().keep_asking(standing)

    def answers(self) -> Iterator[Outcome]:
        """What has been answered since, in order."""
        while self._worker is not None and self._worker.answers:
            yield self._worker.answers.popleft()

    def patience_seconds(self, longest: float) -> float:
        """How long it is certain that no call gets over its deadline."""
        worker = self._worker
        if worker is None:
            return longest
        flight, task = worker.line.flight, worker.task
        if flight is None or task is None:
            return longest
        age = self._clock.monotonic_seconds() - flight.started_monotonic_seconds
        return min(max(task.deadline_seconds - age, 0.0), longest)

    def leave_behind_overdue(self) -> tuple[Stuck, Tasks] | None:
        """If the call that runs now is over its deadline, leave its worker behind with it.

        Gives who is stuck, and the tasks of the round that somebody else should carry out: all that
        were not begun, less those about the same GPU.
        """
        worker = self._worker
        if worker is None:
            return None
        flight, task = worker.line.flight, worker.task
        if flight is None or task is None:
            return None
        age = self._clock.monotonic_seconds() - flight.started_monotonic_seconds
        # The same flight once more: only then was it surely this task's.
        if age < task.deadline_seconds or worker.line.flight is not flight:
            return None
        rest = [
            waiting
            for waiting in self._round.tasks[self._round.done :]
            if waiting.subject != task.subject
        ]
        self.abandon()
        stuck = Stuck(worker, task.subject, flight)
        self.stuck.append(stuck)
        return stuck, rest

    def abandon(self) -> Worker[Outcome] | None:
        """Expect nothing more of the present worker; it ends when its call returns."""
        worker, self._worker = self._worker, None
        self._round = Round(())
        if worker is not None:
            worker.abandoned = True
            worker.dismiss()
        return worker

    def collect_returned(self) -> list[Stuck]:
        """Those whose call has returned after all; they are forgotten."""
        returned = [stuck for stuck in self.stuck if stuck.worker.ended]
        for stuck in returned:
            self.stuck.remove(stuck)
        return returned

    def _at_work(self) -> Worker[Outcome]:
        if self._library is None:
            self._library = self._load_library()
        if self._worker is None or self._worker.ended:
            self._made += 1
            name = f"gpu-nvml-{self._made}"
            self._worker = Worker(self._library, self._clock, self._wake, name)
            self._worker.keep_asking(self._standing)
        return self._worker
