# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Hears NVML's events for ever, on a thread of its own, within the sampler's session.

The sampler says which GPUs it has found (`attend`) and when its session is about to end (`release`);
the thread has given its event set back by then. A call over its deadline leaves the thread behind,
and a fresh one goes on without the GPU that was being registered.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.codes import Meaning, ReturnCode, code_name, meaning_of
from veo_exporter.gpu.event_calls import WAIT_MILLISECONDS, EventCalls, is_overdue
from veo_exporter.gpu.event_registrations import (
    LONGEST_RETRY_SECONDS,
    NEVER,
    Registration,
    Registrations,
    device_of,
    retry_seconds,
)
from veo_exporter.gpu.event_set import EventSet, XidEvent
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.readings import CallsElsewhere, Device, WhyNot

log = structlog.get_logger(__name__)

LEAST_WAIT_SECONDS: Final = WAIT_MILLISECONDS / 1000
"""With a lost GPU in the set a wait may end at once, each time: this far apart they begin at least."""
LOST_ANSWERS: Final = 20
"""So many GPU_IS_LOST in a row, and the set is made anew without whom it is about."""
RELEASE_SECONDS: Final = 1.0
MOST_STUCK: Final = 2


class _Ear:
    """One thread's side: its line, its set, and what it is about to do."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.events = EventSet(self.line)
        self.registering: Registration | None = None
        self.abandoned = False
        self.ended = False


class EventListener:
    """NVML's events, heard. `heard` is told on the thread that hears; everything else is for any."""

    def __init__(
        self,
        load_library: Callable[[], Any],
        clock: Clock,
        heard: Callable[[Device | None, XidEvent], None],
        calls: CallTotals | None = None,
    ) -> None:
        self._calls = EventCalls(calls or CallTotals())
        self._load_library = load_library
        self._clock = clock
        self._heard = heard
        self._changed = threading.Condition()
        self._registrations = Registrations()
        self._ever: set[str] = set()
        self._ear: _Ear | None = None
        self._thread: threading.Thread | None = None
        self._stuck: list[tuple[_Ear, Registration | None]] = []
        self._releasing = False
        self._stopping = False
        self._hearing = False
        self._lost_in_a_row = 0
        self._failed_waits = 0
        self._rest_until = 0.0
        # Once for all GPUs: which they are, a metric says.
        self._told: set[tuple[str, int]] = set()

    @property
    def up(self) -> bool:
        """Whether Xids are heard, of every GPU that lets itself be heard."""
        with self._changed:
            registrations = self._registrations
            heard = registrations.any_registered and not registrations.any_untried
            return self._hearing and heard

    def has_heard_of(self, pci_bus_id: str) -> bool:
        """Whether this GPU's Xids were ever listened for."""
        return pci_bus_id in self._ever

    def missing(self) -> Mapping[str, WhyNot]:
        """By UUID, the GPUs whose Xids NVML does not tell, for as long as nothing changes."""
        with self._changed:
            return self._registrations.missing()

    def stuck_calls(self) -> list[str]:
        """The calls that were left behind and have not returned: they hold the driver."""
        with self._changed:
            flights = [ear.line.flight for ear, _ in self._stuck]
        return [f"{flight.function} (events)" for flight in flights if flight is not None]

    def calls_told(self) -> CallsElsewhere:
        """What became of its calls: the failures of all, and those that should have returned."""
        with self._changed:
            ears = [ear for ear, _ in self._stuck]
            ears += [self._ear] if self._ear is not None else []
            flights = [flight for ear in ears if (flight := ear.line.flight) is not None]
        return self._calls.told(flights, self._clock.monotonic_seconds())

    def attend(self, device: Device) -> None:
        """The sampler found a GPU in its session."""
        with self._changed:
            self._registrations.attend(device, self._clock.monotonic_seconds())
            self._ensure_ear()
            self._changed.notify_all()

    def release(self, _line: Line | None = None) -> None:
        """The sampler's session ends: give the set back and forget its GPUs. Waits for that, but not
        for a thread that does not return."""
        with self._changed:
            self._forget_session()
            if self._ear is None or self._ear.ended:
                return
            self._releasing = True
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: not self._releasing, RELEASE_SECONDS):
                self._releasing = False
                self._leave_behind("the event set was not given back before the session ended")

    def stop(self, timeout_seconds: float) -> None:
        """End the thread, but wait no longer than this."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_seconds)

    def watch(self) -> None:
        """Leave the thread behind if its call is over its deadline; take back those that returned."""
        now = self._clock.monotonic_seconds()
        with self._changed:
            ear = self._ear
            flight = ear.line.flight if ear is not None else None
            if flight is not None and is_overdue(flight, now):
                self._calls.count_overdue(flight)
                self._leave_behind(f"{flight.function} has not returned")
                self._ensure_ear()
            for stuck in [stuck for stuck in self._stuck if stuck[0].ended]:
                self._stuck.remove(stuck)
                if stuck[1] is not None:
                    stuck[1].retry_at = now
                self._ensure_ear()
                self._changed.notify_all()

    def _forget_session(self) -> None:
        self._registrations.forget()
        self._hearing = False
        self._rest_until = 0.0
        self._failed_waits = self._lost_in_a_row = 0

    def _ensure_ear(self) -> None:
        gone = self._ear is None or self._ear.ended
        if self._stopping or not gone or len(self._stuck) >= MOST_STUCK or not self._registrations:
            return
        self._ear = _Ear(self._calls.line(self._load_library(), self._clock))
        # A daemon: a thread that the driver does not give back must not keep the process.
        self._thread = threading.Thread(
            target=self._run, args=(self._ear,), name="gpu-events", daemon=True
        )
        self._thread.start()

    def _leave_behind(self, fault: str) -> None:
        ear, self._ear = self._ear, None
        if ear is None:
            return
        ear.abandoned = True
        blamed = ear.registering
        self._stuck.append((ear, blamed))
        self._hearing = False
        self._registrations.take_out()
        if blamed is not None:
            blamed.retry_at = NEVER
        log.warning(
            "the thread that hears NVML's events is left behind",
            fault=fault,
            uuid=blamed.device.uuid if blamed else "",
            stuck_threads=len(self._stuck),
        )

    def _run(self, ear: _Ear) -> None:
        try:
            while (due := self._next(ear)) is not None:
                self._register(ear, due)
                self._wait(ear)
        except Exception:
            log.exception("the thread that hears NVML's events has failed")
        finally:
            if not ear.abandoned:
                ear.events.free()
            self._calls.retire(ear.line)
            with self._changed:
                ear.ended = True
                if self._ear is ear:
                    self._hearing = self._releasing = False
                self._changed.notify_all()

    def _next(self, ear: _Ear) -> list[Registration] | None:
        """Wait for something to do: the GPUs to be registered now. None: end."""
        while True:
            with self._changed:
                if ear.abandoned or self._stopping:
                    return None
                if not (self._releasing and ear.events.open):
                    if self._releasing:
                        self._releasing = False
                        self._changed.notify_all()
                    now = self._clock.monotonic_seconds()
                    due = self._registrations.due(now)
                    if now >= self._rest_until and (due or self._listens(ear)):
                        return due
                    patience = self._patience_seconds(now)
                    self._changed.wait(patience)
                    continue
            # Outside the lock: this calls NVML, and the sampler must not wait for more than its turn.
            ear.events.free()

    def _patience_seconds(self, now: float) -> float | None:
        attempt = self._registrations.next_attempt_monotonic_seconds()
        if attempt is None:
            return None
        return min(max(attempt, self._rest_until) - now, LONGEST_RETRY_SECONDS)

    def _listens(self, ear: _Ear) -> bool:
        return ear.events.open and self._registrations.any_registered

    def _interrupted(self, ear: _Ear) -> bool:
        return ear.abandoned or self._stopping or self._releasing

    def _register(self, ear: _Ear, due: list[Registration]) -> None:
        for registration in due:
            if self._interrupted(ear):
                return
            if not ear.events.open:
                try:
                    ear.events.create()
                except NvmlError as error:
                    for waiting in due:
                        self._failed(ear, waiting, error)
                    return
            ear.registering = registration
            try:
                ear.events.register(registration.device.handle)
            except NvmlError as error:
                self._failed(ear, registration, error)
                unusable = meaning_of(error.code) is Meaning.FAILED
                if unusable and error.function == "nvmlDeviceRegisterEvents":
                    # After such a failure the set is not to be used any more.
                    self._begin_anew(ear, rest_seconds=0.0)
                    return
            else:
                self._registered(ear, registration)
            finally:
                ear.registering = None

    def _registered(self, ear: _Ear, registration: Registration) -> None:
        with self._changed:
            if ear.abandoned:
                return
            registration.succeeded()
            self._ever.add(registration.device.pci_bus_id)

    def _failed(self, ear: _Ear, registration: Registration, error: NvmlError) -> None:
        with self._changed:
            if ear.abandoned:
                return
            registration.failed(error.code, self._clock.monotonic_seconds())
            news = (error.function, error.code) not in self._told
            self._told.add((error.function, error.code))
        if news:
            log.info(
                "NVML does not tell the Xids of every GPU; the kernel log may",
                uuid=registration.device.uuid,
                function=error.function,
                nvml=code_name(error.code),
            )

    def _wait(self, ear: _Ear) -> None:
        if self._interrupted(ear) or not self._listens(ear):
            return
        with self._changed:
            # Now: if the session ends meanwhile, an event that came before still has its GPU.
            devices = self._registrations.devices()
        began = self._clock.monotonic_seconds()
        try:
            event = ear.events.wait(WAIT_MILLISECONDS)
        except NvmlError as error:
            self._wait_failed(ear, error)
        else:
            with self._changed:
                if ear.abandoned:
                    return
                self._hearing = True
                self._failed_waits = self._lost_in_a_row = 0
            if event is not None:
                self._heard(device_of(devices, event.handle), event)
                return
        with self._changed:
            left = began + LEAST_WAIT_SECONDS - self._clock.monotonic_seconds()
            if left > 0:
                self._changed.wait_for(lambda: self._interrupted(ear), left)

    def _wait_failed(self, ear: _Ear, error: NvmlError) -> None:
        with self._changed:
            if ear.abandoned:
                return
            if self._hearing:
                log.warning("NVML's events are not heard", nvml=code_name(error.code))
            self._hearing = False
            self._lost_in_a_row += 1
            if error.code == ReturnCode.GPU_IS_LOST and self._lost_in_a_row < LOST_ANSWERS:
                return
            self._failed_waits += 1
            self._lost_in_a_row = 0
            rest_seconds = retry_seconds(self._failed_waits)
        self._begin_anew(ear, rest_seconds)

    def _begin_anew(self, ear: _Ear, rest_seconds: float) -> None:
        """Free the set; whoever still can is registered with the next one."""
        ear.events.free()
        with self._changed:
            if ear.abandoned:
                return
            self._rest_until = self._clock.monotonic_seconds() + rest_seconds
            self._registrations.take_out()
