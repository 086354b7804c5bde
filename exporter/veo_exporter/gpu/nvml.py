# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The one gate to NVML. Every call of it goes through a line, so that it can be watched."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import UNREADABLE, ReturnCode, code_name

Result = TypeVar("Result")

Handle = Any
"""What NVML calls a device: opaque, and dead once the session that gave it has ended."""


class NvmlError(Exception):
    """A call that did not succeed."""

    def __init__(self, function: str, code: int, detail: str = "") -> None:
        super().__init__(f"{function}: {code_name(code)}" + (f" ({detail})" if detail else ""))
        self.function = function
        self.code = code


# Compared by identity alone: there is one for a call, however often it is looked at.
@dataclass(slots=True, eq=False)
class Flight:
    """A call that has not returned yet."""

    function: str
    started_monotonic_seconds: float


@dataclass(slots=True, eq=False)
class Tally:
    """Calls of one function that returned, and the time spent in them."""

    calls: int = 0
    seconds: float = 0.0


class Line:
    """One thread's line to NVML; one other thread watches in `flight` what is being waited for.

    Only the line's own thread adds to `tallies`; whoever reads them finds each a call old at most.
    """

    def __init__(self, library: Any, clock: Clock) -> None:
        self.library: Final = library
        self.function = ""
        """The function called last."""
        self.tallies: dict[str, Tally] = {}
        self._now = clock.monotonic_seconds
        self._started = 0.0
        # Odd while a call is under way. What a call is, is written before it changes, so that whoever
        # reads the same number before and after has read of one call. Nothing is made for each call:
        # there are some hundred in a second, and few are ever looked at.
        self._turn = 0
        self._seen: tuple[int, Flight] | None = None
        self._functions: dict[str, tuple[Callable[..., Any], Tally]] = {}

    @property
    def flight(self) -> Flight | None:
        """The call under way, the same object for as long as it is; for the watching thread alone."""
        turn = self._turn
        if turn % 2 == 0:
            return None
        if self._seen is None or self._seen[0] != turn:
            flight = Flight(self.function, self._started)
            if self._turn != turn:
                return None
            self._seen = turn, flight
        return self._seen[1]

    def call(self, function: str, *arguments: Any) -> Any:
        """Call an NVML function by its name. Raises NvmlError, and nothing else."""
        ask, tally = self._functions.get(function) or self._find(function)
        self.function = function
        self._started = began = self._now()
        self._turn += 1
        try:
            return ask(*arguments)
        except self.library.NVMLError as error:
            raise NvmlError(function, int(error.value)) from None
        except Exception as error:
            # The bindings decode text and build structures: what a broken driver answers can
            # make them raise anything. It costs this value and no other.
            raise NvmlError(function, UNREADABLE, repr(error)) from error
        finally:
            self._turn += 1
            tally.calls += 1
            tally.seconds += self._now() - began

    def wait_for(self, what: str, work: Callable[[], Result]) -> Result:
        """Do something else that may hang, and that calls nothing on this line, watched as calls are.
        Raises what it raises."""
        self.function = what
        self._started = self._now()
        self._turn += 1
        try:
            return work()
        finally:
            self._turn += 1

    def _find(self, function: str) -> tuple[Callable[..., Any], Tally]:
        found: Callable[..., Any] | None = getattr(self.library, function, None)
        if found is None:
            raise NvmlError(function, ReturnCode.FUNCTION_NOT_FOUND)
        self.tallies[function] = tally = Tally()
        self._functions[function] = found, tally
        return found, tally


def load_library() -> Any:
    """The bindings of nvidia-ml-py. They find libnvidia-ml.so.1 when the driver is opened."""
    import pynvml

    from veo_exporter.gpu.bindings import Bindings

    return Bindings(pynvml)
