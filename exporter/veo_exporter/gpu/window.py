# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A signal's trailing minimum, mean and peak."""

from bisect import bisect_left
from collections.abc import Sequence
from operator import mul
from typing import Final

from veo_exporter.gpu.readings import Statistics

PARTS: Final = 30
"""The window is kept in this many parts, so that a sample costs the same at 1 Hz and at 50 Hz.
It reaches back its length and at most one part more: no peak inside the length is ever left out.
"""


class _Part:
    __slots__ = ("end", "maximum", "minimum", "start", "weight", "weighted")

    def __init__(self, start: float, value: float) -> None:
        self.start = start
        self.end = start
        self.minimum = value
        self.maximum = value
        self.weighted = 0.0
        self.weight = 0.0

    def take(self, other: "_Part") -> None:
        """Fold another one in; the end stays."""
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)
        self.weighted += other.weighted
        self.weight += other.weight


def _copy(part: _Part) -> _Part:
    copy = _Part(part.start, part.minimum)
    copy.end = part.end
    copy.take(part)
    return copy


class TrailingWindow:
    """Folds samples that come in the order of time.

    A sample stands for the time since the one before, but for no longer than `longest_step`: what
    happened in a gap is not known, and is not made up. Nor is what was before the first.
    """

    def __init__(self, length_seconds: float, longest_step_seconds: float) -> None:
        self._length = length_seconds
        self._part = length_seconds / PARTS
        self._longest_step = longest_step_seconds
        # The newest part still changes. Those before it are full: later ones one by one, with their
        # sum; earlier ones each with the sum of itself and all that are younger among them, the oldest
        # last. So the window is three sums, and none is made anew when the oldest part goes.
        self._newest: _Part | None = None
        self._later: list[_Part] = []
        self._later_sum: _Part | None = None
        self._earlier: list[_Part] = []

    def __len__(self) -> int:
        """In how many parts it is kept."""
        return len(self._later) + len(self._earlier) + (self._newest is not None)

    def add(self, at_monotonic_seconds: float, value: float) -> None:
        """Take a sample in."""
        newest = self._newest
        step = 0.0 if newest is None else at_monotonic_seconds - newest.end
        self.add_all((at_monotonic_seconds,), (value,), (min(step, self._longest_step),))

    # Called for each signal of each GPU once a second, with up to some hundred samples: loops in C.
    def add_all(
        self, times: Sequence[float], values: Sequence[float], weights: Sequence[float]
    ) -> None:
        """Take samples in, in the order of time, each with the seconds that it stands for."""
        begin, count = 0, len(times)
        while begin < count:
            newest = self._newest
            if newest is None or times[begin] >= newest.start + self._part:
                newest = self._begin_part(times[begin], values[begin])
            if times[-1] < newest.start + self._part:
                end = count
            else:
                end = bisect_left(times, newest.start + self._part, begin)
            mine, seconds = values[begin:end], weights[begin:end]
            low, high = (mine[0], mine[0]) if len(mine) == 1 else (min(mine), max(mine))
            newest.minimum = min(newest.minimum, low)
            newest.maximum = max(newest.maximum, high)
            newest.weighted += sum(map(mul, mine, seconds))
            newest.weight += sum(seconds)
            newest.end = times[end - 1]
            begin = end
        self._forget_before(times[-1] - self._length)

    def _begin_part(self, at_monotonic_seconds: float, value: float) -> _Part:
        full = self._newest
        if full is not None:
            self._later.append(full)
            if self._later_sum is None:
                self._later_sum = _copy(full)
            else:
                self._later_sum.take(full)
        self._newest = begun = _Part(at_monotonic_seconds, value)
        return begun

    def _forget_before(self, monotonic_seconds: float) -> None:
        earlier = self._earlier
        while True:
            while earlier and earlier[-1].end < monotonic_seconds:
                earlier.pop()
            if earlier or not self._later or self._later[0].end >= monotonic_seconds:
                return
            # The youngest first, so that each can take in the sum of those before it.
            for part in reversed(self._later):
                if earlier:
                    part.take(earlier[-1])
                earlier.append(part)
            self._later.clear()
            self._later_sum = None

    def statistics(self) -> Statistics | None:
        """The window that ends with the newest sample; None before the first."""
        newest = self._newest
        if newest is None:
            return None
        low, high = newest.minimum, newest.maximum
        weighted, weight = newest.weighted, newest.weight
        for others in (self._later_sum, self._earlier[-1] if self._earlier else None):
            if others is not None:
                low, high = min(low, others.minimum), max(high, others.maximum)
                weighted, weight = weighted + others.weighted, weight + others.weight
        # Rounding must not carry the mean past the extremes.
        mean = min(max(weighted / weight, low), high) if weight > 0 else newest.maximum
        return Statistics(minimum=low, mean=mean, peak=high)
