# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Hears NVML's events for ever, on a thread of its own, within the sampler's session.

The sampler says which GPUs it has found (`attend`) and when its session is about to end (`release`);
the thread has given its event set back by then. A call over its deadline leaves the thread behind,
and a fresh one goes on without the GPU that was being registered.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import Meaning, ReturnCode, code_name, meaning_of
from veo_exporter.gpu.event_set import EventSet, XidEvent, same_gpu
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.readings import Device, WhyNot

log = structlog.get_logger(__name__)

WAIT_MILLISECONDS: Final = 250
"""So long the sampler may have to wait for the set to be given back; four wake-ups a second."""
LEAST_WAIT_SECONDS: Final = WAIT_MILLISECONDS / 1000
"""With a lost GPU in the set a wait may end at once, each time: this far apart they begin at least."""
LOST_ANSWERS: Final = 20
"""So many GPU_IS_LOST in a row, and the set is made anew without whom it is about."""
FIRST_RETRY_SECONDS: Final = 1.0
LONGEST_RETRY_SECONDS: Final = 60.0
CALL_DEADLINE_SECONDS: Final = 10.0
RELEASE_SECONDS: Final = 1.0
MOST_STUCK: Final = 2
_WHY_NOT: Final = {
    Meaning.UNSUPPORTED: WhyNot.NOT_SUPPORTED,
    Meaning.FORBIDDEN: WhyNot.NOT_PERMITTED,
}


def retry_seconds(failures: int) -> float:
    """How long to leave alone what has failed so often: registration may fail at boot, for rights or
    for order, and work seconds later."""
    return float(min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS))


@dataclass(slots=True, eq=False)
class _Registration:
    """A GPU of this session, and whether it is in the set."""

    device: Device
    registered: bool = False
    code: int = 0
    failures: int = 0
    retry_at: float = 0.0


class _Ear:
    """One thread's side: its line, its set, and what it is about to do."""

    def __init__(self, library: Any, clock: Clock) -> None:
        self.line = Line(library, clock)
        self.events = EventSet(self.line)
        self.registering: _Registration | None = None
        self.abandoned = False
        self.ended = False


class EventListener:
    """NVML's events, heard. `heard` is told on the thread that hears; everything else is for any."""

    def __init__(
        self,
        load_library: Callable[[], Any],
        clock: Clock,
        heard: Callable[[Device | None, XidEvent], None],
    ) -> None:
        self._load_library = load_library
        self._clock = clock
        self._heard = heard
        self._changed = threading.Condition()
        self._registrations: dict[str, _Registration] = {}
        self._ever: set[str] = set()
        self._ear: _Ear | None = None
        self._thread: threading.Thread | None = None
        self._stuck: list[tuple[_Ear, _Registration | None]] = []
        self._releasing = False
        self._stopping = False
        self._hearing = False
        self._lost_in_a_row = 0
        self._failed_waits = 0
        self._rest_until = 0.0

    @property
    def up(self) -> bool:
        """Whether Xids of any GPU are heard."""
        with self._changed:
            return self._hearing and any(r.registered for r in self._registrations.values())

    def has_heard_of(self, pci_bus_id: str) -> bool:
        """Whether this GPU's Xids were ever listened for."""
        return pci_bus_id in self._ever

    def missing(self) -> Mapping[str, WhyNot]:
        """By UUID, the GPUs whose Xids NVML does not tell, for as long as nothing changes."""
        with self._changed:
            return {
                registration.device.uuid: why
                for registration in self._registrations.values()
                if (why := _WHY_NOT.get(meaning_of(registration.code))) is not None
            }

    def attend(self, device: Device) -> None:
        """The sampler found a GPU in its session."""
        with self._changed:
            known = self._registrations.get(device.uuid)
            if known is not None and same_gpu(known.device.handle, device.handle):
                known.device = device
                # It answers again: what failed before is worth another attempt.
                known.retry_at = min(known.retry_at, self._clock.monotonic_seconds())
            else:
                self._registrations[device.uuid] = _Registration(device)
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
            if (
                flight is not None
                and now - flight.started_monotonic_seconds > CALL_DEADLINE_SECONDS
            ):
                self._leave_behind(f"{flight.function} has not returned")
                self._ensure_ear()
            for stuck in [stuck for stuck in self._stuck if stuck[0].ended]:
                self._stuck.remove(stuck)
                if stuck[1] is not None:
                    stuck[1].retry_at = now
                self._ensure_ear()
                self._changed.notify_all()

    def _forget_session(self) -> None:
        self._registrations.clear()
        self._hearing = False
        self._rest_until = 0.0
        self._failed_waits = self._lost_in_a_row = 0

    def _ensure_ear(self) -> None:
        gone = self._ear is None or self._ear.ended
        if self._stopping or not gone or len(self._stuck) >= MOST_STUCK or not self._registrations:
            return
        self._ear = _Ear(self._load_library(), self._clock)
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
        for registration in self._registrations.values():
            registration.registered = False
        if blamed is not None:
            blamed.retry_at = float("inf")
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
            with self._changed:
                ear.ended = True
                if self._ear is ear:
                    self._hearing = self._releasing = False
                self._changed.notify_all()

    def _next(self, ear: _Ear) -> list[_Registration] | None:
        """Wait for something to do: the GPUs to be registered now. None: end."""
        while True:
            with self._changed:
                if ear.abandoned or self._stopping:
                    return None
                if not (self._releasing and ear.events.open):
                    if self._releasing:
                        self._releasing = False
                        self._changed.notify_all()
                    waiting = [r for r in self._registrations.values() if not r.registered]
                    now = self._clock.monotonic_seconds()
                    due = [r for r in waiting if r.retry_at <= now]
                    if now >= self._rest_until and (due or self._listens(ear)):
                        return due
                    until = min((max(r.retry_at, self._rest_until) for r in waiting), default=None)
                    patience = None if until is None else min(until - now, LONGEST_RETRY_SECONDS)
                    self._changed.wait(patience)
                    continue
            # Outside the lock: this calls NVML, and the sampler must not wait for more than its turn.
            ear.events.free()

    def _listens(self, ear: _Ear) -> bool:
        return ear.events.open and any(r.registered for r in self._registrations.values())

    def _interrupted(self, ear: _Ear) -> bool:
        return ear.abandoned or self._stopping or self._releasing

    def _register(self, ear: _Ear, due: list[_Registration]) -> None:
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

    def _registered(self, ear: _Ear, registration: _Registration) -> None:
        with self._changed:
            if ear.abandoned:
                return
            registration.registered = True
            registration.code = registration.failures = 0
            self._hearing = True
            self._ever.add(registration.device.pci_bus_id)

    def _failed(self, ear: _Ear, registration: _Registration, error: NvmlError) -> None:
        with self._changed:
            if ear.abandoned:
                return
            news = registration.code != error.code
            registration.code = error.code
            registration.failures += 1
            registration.retry_at = self._clock.monotonic_seconds() + retry_seconds(
                registration.failures
            )
        if news:
            log.info(
                "NVML does not tell this GPU's Xids; the kernel log may",
                uuid=registration.device.uuid,
                function=error.function,
                nvml=code_name(error.code),
            )

    def _wait(self, ear: _Ear) -> None:
        if self._interrupted(ear) or not self._listens(ear):
            return
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
                self._heard(self._device_of(event), event)
                return
        with self._changed:
            left = began + LEAST_WAIT_SECONDS - self._clock.monotonic_seconds()
            if left > 0:
                self._changed.wait_for(lambda: self._interrupted(ear), left)

    def _device_of(self, event: XidEvent) -> Device | None:
        with self._changed:
            devices = [r.device for r in self._registrations.values()]
        return next((d for d in devices if same_gpu(d.handle, event.handle)), None)

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
            for registration in self._registrations.values():
                registration.registered = False
