# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who talks to NVML: one worker at a time, watched, those set aside and those left behind."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from veo_exporter.clock import Clock
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.nvml import Flight
from veo_exporter.gpu.session import Outcome
from veo_exporter.gpu.worker import Round, Standing, Task, Worker

Tasks = list[Task[Outcome]]

MOST_STALLS: Final = 100
"""As far back as a call can be judged."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A worker that was left behind with a call that does not return."""

    worker: Worker[Outcome]
    subject: str
    flight: Flight


class Crew:
    """Hands tasks to a worker, and leaves it behind when a call of it is over its deadline.

    A worker whose call is slow, but within its deadline, is set aside: another one goes on meanwhile,
    and what the slow one answers counts as if nothing had been. No second one is set aside beside it.

    Everything here is called by the watching thread; `wake` is what it waits for.
    """

    def __init__(
        self,
        load_library: Callable[[], Any],
        clock: Clock,
        wake: threading.Event,
        calls: CallTotals | None = None,
    ) -> None:
        self.stuck: list[Stuck] = []
        self._aside: list[Worker[Outcome]] = []
        self._aside_until = float("-inf")
        self._stalls: deque[tuple[float, float]] = deque(maxlen=MOST_STALLS)
        self._calls = calls or CallTotals()
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

    @property
    def awaited(self) -> frozenset[str]:
        """The subjects of slow calls whose answers are still waited for."""
        tasks = [worker.task for worker in self._aside if not worker.abandoned]
        return frozenset(task.subject for task in tasks if task is not None)

    def busy_elsewhere(self) -> list[tuple[str, str]]:
        """Subject and function of each call that runs beside the present worker's."""
        busy = [(stuck.subject, stuck.flight.function) for stuck in self.stuck]
        for worker in self._aside:
            flight, task = worker.line.flight, worker.task
            if flight is not None and task is not None:
                busy.append((task.subject, flight.function))
        return busy

    @property
    def alone(self) -> bool:
        """Whether nobody but the present worker may be calling NVML."""
        return not self.stuck and not self._aside

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

    @property
    def keeps_asking(self) -> bool:
        """Whether anything is asked again and again."""
        return bool(self._standing.tasks)

    def answers(self) -> Iterator[Outcome]:
        """What has been answered since, in order."""
        for worker in (*self._aside, self._worker):
            while worker is not None and not worker.abandoned and worker.answers:
                yield worker.answers.popleft()

    def patience_seconds(self, longest: float) -> float:
        """How long it is certain that no call gets over its deadline, nor over its patience."""
        patience = longest
        for worker in (*self._aside, self._worker):
            if worker is None:
                continue
            flight, task = worker.line.flight, worker.task
            if flight is None or task is None:
                continue
            limits = [self._judged_from(worker, flight) + task.deadline_seconds]
            if task.patience_seconds is not None and worker is self._worker and not self._aside:
                limits.append(flight.started_monotonic_seconds + task.patience_seconds)
            now = self._clock.monotonic_seconds()
            patience = min([patience, *(max(limit - now, 0.0) for limit in limits)])
        return patience

    def excuse(self, seconds: float) -> None:
        """Nobody could do anything for so long until now: it is not held against the calls under way."""
        self._stalls.append((self._clock.monotonic_seconds(), seconds))

    def set_aside_slow(self) -> Tasks:
        """If the call that runs now tries the patience of the others, let another worker go on.

        Gives the tasks that it shall carry out. Opening a GPU without persistence mode takes seconds.
        """
        worker = self._worker
        if worker is None or self._aside:
            return []
        flight, task = worker.line.flight, worker.task
        if flight is None or task is None or task.patience_seconds is None:
            return []
        age = self._clock.monotonic_seconds() - flight.started_monotonic_seconds
        if age < task.patience_seconds or worker.line.flight is not flight:
            return []
        round, self._round = self._round, Round(())
        round.cut = True
        rest = self._not_begun(round, task)
        self._worker = None
        worker.keep_asking(Standing())
        worker.dismiss()
        self._aside.append(worker)
        return rest

    def leave_behind_overdue(self) -> tuple[Stuck, Tasks] | None:
        """If a call that runs now is over its deadline, leave its worker behind with it.

        Gives who is stuck, and the tasks of the round that somebody else should carry out: all that
        were not begun, less those about the same GPU.
        """
        for worker in (*self._aside, self._worker):
            if worker is None:
                continue
            flight, task = worker.line.flight, worker.task
            if flight is None or task is None:
                continue
            age = self._clock.monotonic_seconds() - self._judged_from(worker, flight)
            # The same flight once more: only then was it surely this task's.
            if age < task.deadline_seconds or worker.line.flight is not flight:
                continue
            rest: Tasks = []
            if worker is self._worker:
                rest = self._not_begun(self._round, task)
                self.abandon()
            else:
                self._forget_aside(worker)
                worker.abandoned = True
            stuck = Stuck(worker, task.subject, flight)
            self.stuck.append(stuck)
            return stuck, rest
        return None

    def _judged_from(self, worker: Worker[Outcome], flight: Flight) -> float:
        """From when on a call has no excuse. Whoever opens a GPU may hold a lock of the driver's: as
        long as that is within its time, those who wait behind it are not to blame."""
        began = flight.started_monotonic_seconds
        if worker is self._worker:
            if any(not slow.abandoned for slow in self._aside):
                return float("inf")
            began = max(began, self._aside_until)
        return began + sum(seconds for ended, seconds in self._stalls if ended > began)

    def _not_begun(self, round: Round[Outcome], task: Task[Outcome]) -> Tasks:
        waiting = round.tasks[round.done :]
        return [one for one in waiting if one is not task and one.subject != task.subject]

    def retreat(self) -> None:
        """Begin nothing more. What runs now is watched until it returns; its answer counts no more."""
        worker = self._worker
        if self.abandon() is not None and worker is not None:
            self._aside.append(worker)
        self.disown_aside()

    def disown_aside(self) -> None:
        """The session of those set aside is over: their answers count no more."""
        for worker in self._aside:
            worker.abandoned = True

    def abandon(self) -> Worker[Outcome] | None:
        """Expect nothing more of the present worker; it ends when its call returns."""
        worker, self._worker = self._worker, None
        self._round = Round(())
        if worker is not None:
            worker.abandoned = True
            worker.dismiss()
        return worker

    def collect_returned(self) -> tuple[list[Stuck], list[Outcome]]:
        """Those whose call has returned after all; they are forgotten. With what was answered too late
        to count."""
        returned = [stuck for stuck in self.stuck if stuck.worker.ended]
        aside = [worker for worker in self._aside if worker.ended and not worker.answers]
        aside += [worker for worker in self._aside if worker.ended and worker.abandoned]
        late: list[Outcome] = []
        for worker in dict.fromkeys((*(stuck.worker for stuck in returned), *aside)):
            late += worker.late
            self._calls.retire(worker.line)
        for stuck in returned:
            self.stuck.remove(stuck)
        for worker in dict.fromkeys(aside):
            self._forget_aside(worker)
        return returned, late

    def _forget_aside(self, worker: Worker[Outcome]) -> None:
        self._aside.remove(worker)
        if not worker.abandoned:
            self._aside_until = self._clock.monotonic_seconds()

    def _at_work(self) -> Worker[Outcome]:
        if self._library is None:
            self._library = self._load_library()
        if self._worker is None or self._worker.ended:
            if self._worker is not None:
                self._calls.retire(self._worker.line)
            self._made += 1
            name = f"gpu-nvml-{self._made}"
            self._worker = Worker(self._library, self._clock, self._wake, name)
            self._calls.watch(self._worker.line)
            self._worker.keep_asking(self._standing)
        return self._worker
