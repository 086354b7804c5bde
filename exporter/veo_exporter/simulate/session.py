# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The session with a simulated driver: where the story is, and who may ask about which GPU."""

import time
from typing import Final

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.node import Activity, activity_of, condition_of, driver_loaded
from veo_exporter.simulate.scenario import Scenario

_POLL_SECONDS: Final = 0.05
_CLOCK_STEP_SECONDS: Final = 0.05
"""Two clocks that are read one after the other differ by less, however busy the machine."""


class SimulatedNvmlError(Exception):
    """A return code, as the bindings raise it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class Session:
    """All functions of the library stand behind it."""

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        self.scenario: Final = scenario
        self._clock = clock
        self._started = clock.monotonic_seconds()
        self._started_unix = clock.unix_seconds()
        self._open = False

    @property
    def elapsed(self) -> float:
        """Seconds since the node was made."""
        return self._clock.monotonic_seconds() - self._started

    def unix_microseconds(self, elapsed_seconds: float) -> int:
        """The wall clock's time of then; the same whenever it is asked for, but for a step of that clock."""
        started = self._clock.unix_seconds() - self.elapsed
        if abs(started - self._started_unix) > _CLOCK_STEP_SECONDS:
            self._started_unix = started
        return round((self._started_unix + elapsed_seconds) * 1e6)

    def open(self) -> None:
        if not self.driver_loaded:
            raise SimulatedNvmlError(ReturnCode.DRIVER_NOT_LOADED)
        self._open = True

    def close(self) -> None:
        self.require()
        self._open = False

    @property
    def driver_loaded(self) -> bool:
        return driver_loaded(self.scenario, self.elapsed)

    def require(self) -> None:
        """Whoever asks without a session, or after its driver is gone, is told so."""
        if not self._open or not self.driver_loaded:
            raise SimulatedNvmlError(ReturnCode.UNINITIALIZED)

    def ask(self, gpu: int, function: str) -> None:
        """Return if this GPU answers that function now."""
        self.require()
        while condition_of(self.scenario, gpu, self.elapsed).hangs(function):
            # This is the call that does not return; the sampler leaves this thread behind.
            time.sleep(_POLL_SECONDS)
        if code := condition_of(self.scenario, gpu, self.elapsed).code(function):
            raise SimulatedNvmlError(code)

    def doing(self, gpu: int, function: str) -> Activity:
        """Likewise, and what the GPU is doing."""
        self.ask(gpu, function)
        return activity_of(self.scenario, gpu, self.elapsed)
