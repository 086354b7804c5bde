# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Samples the node's GPUs for ever, and waits for no call that does not return.

Two threads: the sampler's own plans, watches and publishes, and never calls NVML; a worker calls
NVML. A call over its deadline marks its GPU hung; the worker is left behind with it and a fresh one
carries on with the others. If that one gets stuck too, the driver itself holds a lock: all GPUs are
hung, and nothing is called until one call returns.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.ledger import DRIVER, Ledger
from veo_exporter.gpu.news import News
from veo_exporter.gpu.nvml import Flight
from veo_exporter.gpu.plan import Plan, Tasks
from veo_exporter.gpu.readings import Cadence, Snapshot
from veo_exporter.gpu.session import Outcome
from veo_exporter.gpu.timing import Timing
from veo_exporter.gpu.worker import Round, Task, Worker

log = structlog.get_logger(__name__)

PUBLISH_INTERVAL_SECONDS: Final = 1.0
"""Nobody scrapes more often; faster samples go into the windows."""
LONGEST_HANG_BACKOFF_SECONDS: Final = 60.0
STUCK_THREADS_OF_A_LOCKED_DRIVER: Final = 2
CLOSE_DEADLINE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A worker that was left behind."""

    worker: Worker[Outcome]
    subject: str
    flight: Flight


class Sampler:
    """The node's GPUs, sampled. `latest` is replaced as a whole and may be read from any thread."""

    def __init__(
        self,
        *,
        load_library: Callable[[], Any],
        pci_functions: Callable[[], frozenset[str] | None],
        expected: int | None,
        timing: Timing,
        clock: Clock,
    ) -> None:
        self._load_library = load_library
        self._pci_functions = pci_functions
        self._clock = clock
        self._wake = threading.Event()
        self._stop_asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-sampler", daemon=True)
        self._stuck: list[_Stuck] = []
        self._worker: Worker[Outcome] | None = None
        self._leaving: Worker[Outcome] | None = None
        self._workers_made = 0
        self._library: Any = None
        self._news = News()
        self._published_at = float("-inf")
        self._bus: frozenset[str] | None = None
        self._asked = (timing, expected)
        self._timing = timing
        self._expected = expected
        self._ledger = Ledger(timing.folding, timing.stale_after_seconds)
        self._plan = Plan(self._ledger, timing, clock)
        self.latest: Snapshot = self._ledger.snapshot(
            clock.unix_seconds(), clock.monotonic_seconds(), None, expected
        )

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin; the first snapshot with data follows as fast as the driver answers."""
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """End and give the session back, but wait no longer than this; False if it was not given back."""
        self._stop_asked.set()
        self._wake.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive() and not self._ledger.session_open

    def reconfigure(self, timing: Timing, expected: int | None) -> None:
        """Take other settings; they hold from the next tick on."""
        self._asked = (timing, expected)
        self._wake.set()

    def _run(self) -> None:
        try:
            self._sample_until_stopped()
        except Exception:
            # The thread ends with it, which /-/healthy tells; the log must say why.
            log.exception("the sampler has failed")
            raise

    def _sample_until_stopped(self) -> None:
        while True:
            # Cleared before looking: whatever is set later wakes the wait below.
            self._wake.clear()
            if self._stop_asked.is_set():
                break
            self._take_settings()
            self._collect_returned()
            self._carry_out(self._due_tasks())
            self._publish(at_once=False)
            if not self._stop_asked.is_set():
                self._wake.wait(self._plan.seconds_until_next())
        self._close()
        if self._worker is not None:
            self._worker.dismiss()

    def _take_settings(self) -> None:
        timing, self._expected = self._asked
        if timing == self._timing:
            return
        self._timing = timing
        self._plan.retime(self._timing)
        self._ledger.refold(self._timing.folding, self._timing.stale_after_seconds)

    def _due_tasks(self) -> Tasks:
        due = self._plan.due()
        if Cadence.FULL in due:
            self._bus = self._pci_functions()
        driver_stuck = any(stuck.subject == DRIVER for stuck in self._stuck)
        return self._plan.tasks_for(due, driver_stuck=driver_stuck)

    def _carry_out(self, tasks: Tasks) -> None:
        while tasks and not self._stop_asked.is_set():
            round = Round(tuple(tasks))
            worker = self._submit(round)
            absorbed = 0
            following: Tasks = []
            while True:
                self._wake.wait(self._patience(round, worker))
                self._wake.clear()
                finished = round.finished or worker.ended
                for outcome in round.results[absorbed:]:
                    absorbed += 1
                    following += self._plan.follow(outcome)
                if finished:
                    tasks = following
                    break
                if self._stop_asked.is_set():
                    round.abandoned = True
                    self._leaving, self._worker = worker, None
                    return
                self._collect_returned()
                flight, task = worker.line.flight, round.current
                # The same flight once more: only then was it surely this task's.
                if flight and self._overdue(flight, task) and worker.line.flight is flight:
                    rest = self._leave_behind(worker, round, flight)
                    tasks = [] if self._ledger.driver_hung else rest + following
                    break
                self._publish(at_once=False)

    def _submit(self, round: Round[Outcome]) -> Worker[Outcome]:
        if self._library is None:
            self._library = self._load_library()
        if self._worker is None or self._worker.ended:
            self._workers_made += 1
            name = f"gpu-nvml-{self._workers_made}"
            self._worker = Worker(self._library, self._clock, self._wake, name)
        self._worker.submit(round)
        return self._worker

    def _patience(self, round: Round[Outcome], worker: Worker[Outcome]) -> float:
        if round.finished or worker.ended:
            return 0.0
        flight, task = worker.line.flight, round.current
        remaining = task.deadline_seconds
        if flight is not None:
            remaining -= self._clock.monotonic_seconds() - flight.started_monotonic_seconds
        return min(max(remaining, 0.0), PUBLISH_INTERVAL_SECONDS)

    def _overdue(self, flight: Flight, task: Task[Outcome]) -> bool:
        seconds = self._clock.monotonic_seconds() - flight.started_monotonic_seconds
        return seconds >= task.deadline_seconds

    def _leave_behind(
        self, worker: Worker[Outcome], round: Round[Outcome], flight: Flight
    ) -> Tasks:
        """Abandon a worker with its GPU; gives the tasks that a fresh one should go on with."""
        round.abandoned = True
        subject = round.current.subject
        self._worker = None
        self._stuck.append(_Stuck(worker, subject, flight))
        record = self._ledger.records.get(subject)
        hangs = record.hangs if record else 0
        backoff = min(self._timing.full_interval_seconds * 2**hangs, LONGEST_HANG_BACKOFF_SECONDS)
        self._ledger.overdue(subject, flight, self._clock.monotonic_seconds() + backoff)
        self._judge_driver()
        log.warning(
            "NVML call is over its deadline; its thread is left behind",
            function=flight.function,
            subject=subject,
            stuck_threads=len(self._stuck),
        )
        self._publish(at_once=True)
        return [task for task in round.tasks[round.place + 1 :] if task.subject != subject]

    def _collect_returned(self) -> None:
        for stuck in [stuck for stuck in self._stuck if stuck.worker.ended]:
            self._stuck.remove(stuck)
            self._ledger.returned(stuck.flight)
            log.info(
                "NVML call returned late", function=stuck.flight.function, subject=stuck.subject
            )
        self._judge_driver()

    def _judge_driver(self) -> None:
        opening = (
            any(stuck.subject == DRIVER for stuck in self._stuck) and not self._ledger.session_open
        )
        self._ledger.driver_hung = opening or len(self._stuck) >= STUCK_THREADS_OF_A_LOCKED_DRIVER

    def _publish(self, *, at_once: bool) -> None:
        now = self._clock.monotonic_seconds()
        interval = min(PUBLISH_INTERVAL_SECONDS, self._timing.full_interval_seconds)
        # Half a tick of grace, so that 1 s samples are published each second and not every other.
        grace = self._timing.fast_interval_seconds / 2
        if not at_once and now - self._published_at < interval - grace:
            return
        self._published_at = now
        self.latest = self._ledger.snapshot(
            self._clock.unix_seconds(), now, self._bus, self._expected
        )
        self._news.tell(self.latest)

    def _close(self) -> None:
        """Give the session back, unless something is stuck: it would keep this thread as well."""
        if self._stuck or not self._ledger.session_open:
            return
        deadline = self._clock.monotonic_seconds() + CLOSE_DEADLINE_SECONDS
        leaving = self._leaving
        if leaving is not None and not self._wait_until(lambda: leaving.ended, deadline):
            return
        round = Round((self._plan.closing_task(CLOSE_DEADLINE_SECONDS),))
        self._submit(round)
        if self._wait_until(lambda: round.finished, deadline):
            self._ledger.session_code = None

    def _wait_until(self, holds: Callable[[], bool], deadline_monotonic_seconds: float) -> bool:
        while not holds():
            remaining = deadline_monotonic_seconds - self._clock.monotonic_seconds()
            if remaining <= 0:
                return False
            self._wake.wait(remaining)
            self._wake.clear()
        return True
