# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Samples the node's GPUs for ever, and waits for no call that does not return.

The sampler's own thread plans, watches and publishes, and never calls NVML; a worker of the crew
calls NVML, the fast group by itself from tick to tick and everything else when asked. A call over
its deadline marks its GPU hung; the worker is left behind with it and a fresh one carries on with
the others. If that one gets stuck too, the driver itself holds a lock: all GPUs are hung, and
nothing is called until one call returns.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.crew import Crew, Tasks
from veo_exporter.gpu.findings import Survey
from veo_exporter.gpu.ledger import DRIVER, Ledger
from veo_exporter.gpu.memory import AddressMemory
from veo_exporter.gpu.news import News
from veo_exporter.gpu.nodes import Nodes
from veo_exporter.gpu.pause import NOT_PAUSED, Pauses, PauseStatus
from veo_exporter.gpu.plan import LOOK_UP_PATIENCE_SECONDS, Plan
from veo_exporter.gpu.readings import Cadence, CallsElsewhere, Device, Snapshot
from veo_exporter.gpu.session import ClosingCall, Opened
from veo_exporter.gpu.timing import PUBLISH_INTERVAL_SECONDS, Timing
from veo_exporter.gpu.worker import Standing

log = structlog.get_logger(__name__)

LONGEST_HANG_BACKOFF_SECONDS: Final = 60.0
STUCK_THREADS_OF_A_LOCKED_DRIVER: Final = 2
CLOSE_DEADLINE_SECONDS: Final = 0.75
STALL_SECONDS: Final = 0.5
"""Waking up so much later than asked is no fault of the driver's, and no GPU is to blame for it."""
STALL_NEWS_SECONDS: Final = 60.0
"""A machine that is too busy stalls again and again; the log says so each minute."""
NEWS_GRACE_SECONDS: Final = 0.2
"""So much later than it has news each second, the worker has not wakened us, and we look by ourselves:
without it both would come at the same time, and everything be looked at twice."""


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
        look_at_nodes: Callable[[], Nodes] | None = None,
        memory: AddressMemory | None = None,
    ) -> None:
        self.calls = CallTotals()
        self.pauses = Pauses(clock)
        self._holders: list[Callable[[], Iterable[str]]] = []
        self._calls_elsewhere: Callable[[], CallsElsewhere] = CallsElsewhere
        self._readers: list[Callable[[Snapshot], None]] = []
        self._memory = memory
        self._pci_functions = pci_functions
        self._clock = clock
        self._wake = threading.Event()
        self._stop_asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-sampler", daemon=True)
        self._crew = Crew(load_library, clock, self._wake, self.calls)
        self._news = News()
        self._published_at = clock.monotonic_seconds()
        self._found_something = False
        self._told_of_stall_at = float("-inf")
        self._bus: frozenset[str] | None = None
        self._asked = (timing, expected)
        self._timing = timing
        self._expected = expected
        self._ledger = Ledger(timing.folding, timing.stale_after_seconds)
        self._plan = Plan(self._ledger, timing, clock, look_at_nodes)
        if memory is not None:
            self._ledger.remembered = memory.gpus
        self.failed = False
        self.latest: Snapshot = self._ledger.snapshot(clock.monotonic_seconds(), None, expected)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin; the first snapshot with data follows as fast as the driver answers."""
        self._thread.start()

    def before_closing(self, call: ClosingCall) -> None:
        """Have something freed whenever a session is about to end; before it starts."""
        self._plan.closing_calls.append(call)

    def ask_who_holds(self, calls: Callable[[], Iterable[str]]) -> None:
        """Have somebody asked which of its calls are stuck in the driver, which therefore cannot be
        given back; on the sampler's thread, before it starts."""
        self._holders.append(calls)

    def also_tell(self, calls: Callable[[], CallsElsewhere]) -> None:
        """Have each snapshot tell of calls that are made elsewhere; before it starts."""
        self._calls_elsewhere = calls

    def also_ask(self, cadence: Cadence, survey: Survey) -> None:
        """Have every GPU asked this with a group of signals; before it starts."""
        self._plan.surveys[cadence].append(survey)

    def when_found(self, call: Callable[[Device], None]) -> None:
        """Have somebody told of each GPU that a session finds, on the sampler's thread; before it
        starts."""
        self._plan.found_calls.append(call)

    def when_published(self, call: Callable[[Snapshot], None]) -> None:
        """Have somebody told of each snapshot, on the sampler's thread; before it starts."""
        self._readers.append(call)

    def pause(self, seconds: float, patience_seconds: float) -> PauseStatus:
        """Give the driver back for so long, unless resumed; from any thread. Waits for that, but no
        longer than this."""
        pause = self.pauses.ask(seconds)
        self._wake.set()
        return self.pauses.wait_until_released(pause, patience_seconds)

    def resume(self) -> bool:
        """Go on at once; gives whether there was a pause."""
        was = self.pauses.end()
        self._wake.set()
        return was

    def stop(self, timeout_seconds: float) -> bool:
        """End and give the session back, but wait no longer than this; False if it was not given back."""
        self._stop_asked.set()
        self._wake.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive() and not self._plan.sessions

    def reconfigure(self, timing: Timing, expected: int | None) -> None:
        """Take other settings; they hold from the next tick on."""
        self._asked = (timing, expected)
        self._wake.set()

    def _run(self) -> None:
        try:
            self._sample_until_stopped()
        except Exception:
            # The thread ends with it, which /-/healthy tells; the log must say why.
            self.failed = True
            log.exception("the sampler has failed")
            raise

    def _sample_until_stopped(self) -> None:
        waiting: Tasks = []
        while True:
            # Cleared before looking: whatever is set later wakes the wait below.
            self._wake.clear()
            if self._stop_asked.is_set():
                break
            self._take_settings()
            self._begin_or_end_pause()
            self._collect_returned()
            waiting += self._follow_answers()
            waiting += self._leave_behind_overdue()
            waiting += self._crew.set_aside_slow()
            self._plan.awaited = self._crew.awaited
            if self._ledger.driver_hung or self._plan.pausing:
                waiting = []
            self._crew.keep_asking(self._standing())
            self._tell_of_pause()
            if self._found_something and self._crew.idle and not waiting:
                # A session was opened or a GPU found, and all that followed from it was asked.
                self._publish()
            if self._crew.idle:
                tasks, waiting = waiting or self._due_tasks(), []
                self._crew.ask(tasks)
            self._publish_if_due()
            if not self._stop_asked.is_set():
                self._wait()
        self._close()

    def _wait(self) -> None:
        patience, asleep_at = self._patience_seconds(), self._clock.monotonic_seconds()
        self._wake.wait(patience)
        late = self._clock.monotonic_seconds() - asleep_at - patience
        if late > STALL_SECONDS:
            # The process was stopped, or had no processor: so were those who called NVML.
            self._crew.excuse(late)
            if asleep_at - self._told_of_stall_at >= STALL_NEWS_SECONDS:
                self._told_of_stall_at = asleep_at
                log.warning("stood still; no call is blamed for that", seconds=round(late, 1))

    def _take_settings(self) -> None:
        timing, self._expected = self._asked
        if timing == self._timing:
            return
        self._timing = timing
        self._plan.retime(self._timing)
        self._ledger.refold(self._timing.folding, self._timing.stale_after_seconds)

    def _follow_answers(self) -> Tasks:
        tasks: Tasks = []
        reopened = self._plan.reopened
        for outcome in self._crew.answers():
            following = self._plan.follow(outcome)
            self._found_something |= bool(following) or isinstance(outcome, Opened)
            tasks += following
        if self._plan.reopened != reopened:
            # What they find is a handle of the session that has ended.
            self._crew.disown_aside()
        return tasks

    def _begin_or_end_pause(self) -> None:
        paused = self.pauses.current() is not None
        if paused == self._plan.pausing:
            return
        if paused:
            # The standing tasks of the present worker too: no tick may come in between.
            self._crew.keep_asking(Standing())
            self._crew.retreat()
            self._plan.pause()
            log.info("paused by request")
        else:
            self._plan.resume()
            self._ledger.paused = ""
            self.pauses.tell(NOT_PAUSED)
            log.info("the pause is over")

    def _tell_of_pause(self) -> None:
        """How far the release of the driver is, wherever it has to be told."""
        pause = self.pauses.current() if self._plan.pausing else None
        if pause is None:
            return
        calls = [f"{call} ({about})" for about, call in self._crew.busy_elsewhere()]
        calls += self._calls_of_others()
        held = self._plan.sessions or calls or not self._crew.alone or not self._crew.idle
        status = PauseStatus(pause=pause, released=not held, held_by=tuple(calls))
        if status != self.pauses.status or not self._ledger.paused:
            self._ledger.paused = status.sentence
            self._publish()
            # Told after it is published: whoever waits for it may read the page at once.
            self.pauses.tell(status)

    def _calls_of_others(self) -> list[str]:
        return [call for holder in self._holders for call in holder()]

    def _standing(self) -> Standing[Any]:
        # While a session is being closed and opened, no tick may come in between.
        held = self._ledger.driver_hung or self._plan.pausing
        return Standing() if held else self._plan.standing()

    def _due_tasks(self) -> Tasks:
        due = self._plan.due()
        if Cadence.FULL in due:
            self._bus = self._pci_functions()
        if self._plan.pausing:
            # While a call is stuck in the driver, closing would get stuck behind it.
            closes = self._plan.sessions and self._crew.alone and not self._calls_of_others()
            return [self._plan.closing_task(self._timing.call_deadline_seconds)] if closes else []
        driver_stuck = any(stuck.subject == DRIVER for stuck in self._crew.stuck)
        return self._plan.tasks_for(due, driver_stuck=driver_stuck)

    def _patience_seconds(self) -> float:
        # A call that begins while this waits is noticed at its deadline all the same: the wait is
        # no longer than that.
        longest = min(
            self._timing.call_deadline_seconds, PUBLISH_INTERVAL_SECONDS + NEWS_GRACE_SECONDS
        )
        if self._crew.idle and not self._crew.keeps_asking:
            longest = PUBLISH_INTERVAL_SECONDS
        elif not self._crew.idle:
            # Likewise a look-up that tries the patience of the others.
            longest = min(longest, LOOK_UP_PATIENCE_SECONDS)
        patience = self._crew.patience_seconds(min(longest, self.pauses.seconds_left()))
        return min(patience, self._plan.seconds_until_next()) if self._crew.idle else patience

    def _leave_behind_overdue(self) -> Tasks:
        left = self._crew.leave_behind_overdue()
        if left is None:
            return []
        stuck, rest = left
        record = self._ledger.records.get(stuck.subject)
        hangs = record.hangs if record else 0
        backoff = min(self._timing.full_interval_seconds * 2**hangs, LONGEST_HANG_BACKOFF_SECONDS)
        now = self._clock.monotonic_seconds()
        self._ledger.overdue(stuck.subject, stuck.flight, now + backoff)
        self._judge_driver()
        log.warning(
            "NVML call is over its deadline; its thread is left behind",
            function=stuck.flight.function,
            subject=stuck.subject,
            stuck_threads=len(self._crew.stuck),
        )
        self._publish()
        return rest

    def _collect_returned(self) -> None:
        returned, late = self._crew.collect_returned()
        for outcome in late:
            self._plan.follow_late(outcome)
        for stuck in returned:
            self._ledger.returned(stuck.flight)
            log.info(
                "NVML call returned late", function=stuck.flight.function, subject=stuck.subject
            )
        self._judge_driver()

    def _judge_driver(self) -> None:
        stuck = self._crew.stuck
        opening = any(one.subject == DRIVER for one in stuck) and not self._ledger.session_open
        hung = opening or len(stuck) >= STUCK_THREADS_OF_A_LOCKED_DRIVER
        self._ledger.judge_driver(hung=hung)

    def _publish_if_due(self) -> None:
        # Half a tick of grace, so that 1 s samples are published each second and not every other.
        grace = min(self._timing.fast_interval_seconds, PUBLISH_INTERVAL_SECONDS) / 2
        age = self._clock.monotonic_seconds() - self._published_at
        if age >= PUBLISH_INTERVAL_SECONDS - (grace if self._crew.idle else 0.0):
            self._publish()

    def _publish(self) -> None:
        now = self._clock.monotonic_seconds()
        self._published_at = now
        self._found_something = False
        self.latest = self._ledger.snapshot(now, self._bus, self._expected, self._calls_elsewhere())
        self._news.tell(self.latest)
        self._tell_readers()
        if self._memory is not None:
            self._memory.learn(self._ledger.addresses())
            self._ledger.remembered = self._memory.gpus

    def _tell_readers(self) -> None:
        for read in list(self._readers):
            try:
                read(self.latest)
            except Exception:
                # It must not end the sampling; what it has to say grows old, and is withdrawn.
                self._readers.remove(read)
                log.exception("a reader of snapshots has failed and is told of no more")

    def _close(self) -> None:
        """Give the session back, unless something is stuck: it would keep this thread as well."""
        leaving = self._crew.abandon()
        if not self._crew.alone or not self._plan.sessions:
            return
        deadline = self._clock.monotonic_seconds() + CLOSE_DEADLINE_SECONDS
        if leaving is not None and not self._wait_until(lambda: leaving.ended, deadline):
            return
        self._crew.keep_asking(Standing())
        self._crew.ask([self._plan.closing_task(CLOSE_DEADLINE_SECONDS)])
        if self._wait_until(lambda: self._crew.idle, deadline):
            for outcome in self._crew.answers():
                self._plan.follow(outcome)
        self._crew.abandon()

    def _wait_until(self, holds: Callable[[], bool], deadline_monotonic_seconds: float) -> bool:
        while not holds():
            remaining = deadline_monotonic_seconds - self._clock.monotonic_seconds()
            if remaining <= 0:
                return False
            self._wake.wait(remaining)
            self._wake.clear()
        return True
