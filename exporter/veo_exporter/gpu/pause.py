# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A pause by request: nobody calls NVML, and the driver may be unloaded. It ends by itself."""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from veo_exporter.clock import Clock


@dataclass(frozen=True, slots=True)
class Pause:
    """Until when nobody is to call NVML. The monotonic time decides, the other one is told."""

    until_unix_seconds: float
    until_monotonic_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseStatus:
    """What has come of a pause."""

    pause: Pause | None = None
    released: bool = False
    """Whether the driver has its session back, so that it can be unloaded."""
    held_by: tuple[str, ...] = ()
    """The calls that have not returned, and that therefore hold the driver."""

    @property
    def sentence(self) -> str:
        """The pause in words; empty while there is none."""
        if self.pause is None:
            return ""
        until = datetime.fromtimestamp(self.pause.until_unix_seconds, UTC)
        words = f"paused until {until:%Y-%m-%dT%H:%M:%SZ}, by request"
        if self.released:
            return f"{words}; the driver is released"
        if self.held_by:
            calls = ", ".join(self.held_by)
            return f"{words}; the driver cannot be released, for a call has not returned: {calls}"
        return f"{words}; the driver is being released"


NOT_PAUSED: Final = PauseStatus()


class Pauses:
    """Between those who ask for pauses and the sampler, which sees to them. For any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told = threading.Condition()
        self._asked: Pause | None = None
        self._status = NOT_PAUSED

    @property
    def status(self) -> PauseStatus:
        return self._status

    def ask(self, seconds: float) -> Pause:
        """Pause for so long from now, whether or not there is a pause already."""
        pause = Pause(
            self._clock.unix_seconds() + seconds, self._clock.monotonic_seconds() + seconds
        )
        with self._told:
            self._asked = pause
        return pause

    def end(self) -> bool:
        """No pause any more; gives whether there was one."""
        with self._told:
            was = self._current() is not None
            self._asked = None
        return was

    def current(self) -> Pause | None:
        """The pause that holds now."""
        with self._told:
            return self._current()

    def _current(self) -> Pause | None:
        pause = self._asked
        if pause is not None and self._clock.monotonic_seconds() >= pause.until_monotonic_seconds:
            pause = self._asked = None
        return pause

    def seconds_left(self) -> float:
        """How long the pause still lasts; infinite without one, as nothing ends then."""
        pause = self.current()
        if pause is None:
            return float("inf")
        return max(pause.until_monotonic_seconds - self._clock.monotonic_seconds(), 0.0)

    def tell(self, status: PauseStatus) -> None:
        """The sampler says how far it is."""
        with self._told:
            self._status = status
            self._told.notify_all()

    def wait_until_released(self, pause: Pause, timeout_seconds: float) -> PauseStatus:
        """Wait for this pause to have released the driver, or to be no more; but no longer than this."""
        with self._told:
            self._told.wait_for(
                lambda: (
                    (self._status.pause is pause and self._status.released)
                    or self._asked is not pause
                ),
                timeout_seconds,
            )
            return self._status
