# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A signal's trailing minimum, mean and peak."""

from collections import deque
from typing import Final

from veo_exporter.gpu.readings import Statistics

BUCKETS: Final = 30
"""The window is kept in this many parts, so that a sample costs the same at 1 Hz and at 50 Hz.
It reaches back its length and at most one part more: no peak inside the length is ever left out.
"""


class _Bucket:
    __slots__ = ("end", "maximum", "minimum", "start", "weight", "weighted")

    def __init__(self, start: float, value: float) -> None:
        self.start = start
        self.end = start
        self.minimum = value
        self.maximum = value
        self.weighted = 0.0
        self.weight = 0.0


class TrailingWindow:
    """Folds samples that come in the order of time.

    A sample stands for the time since the one before, but for no longer than `longest_step`: what
    happened in a gap is not known, and is not made up. Nor is what was before the first.
    """

    def __init__(self, length_seconds: float, longest_step_seconds: float) -> None:
        self._length = length_seconds
        self._part = length_seconds / BUCKETS
        self._longest_step = longest_step_seconds
        self._buckets: deque[_Bucket] = deque()
        self._sealed: tuple[float, float, float, float] | None = None

    # Called some hundred times a second when samples are fast: no calls, no more than is needed.
    def add(self, at_monotonic_seconds: float, value: float) -> None:
        """Take a sample in."""
        buckets = self._buckets
        if not buckets:
            buckets.append(_Bucket(at_monotonic_seconds, value))
            return
        newest = buckets[-1]
        step = at_monotonic_seconds - newest.end
        if (
            at_monotonic_seconds >= newest.start + self._part
            or buckets[0].end < at_monotonic_seconds - self._length
        ):
            newest = self._turn(at_monotonic_seconds, value)
        newest.end = at_monotonic_seconds
        if value < newest.minimum:
            newest.minimum = value
        elif value > newest.maximum:
            newest.maximum = value
        step = min(step, self._longest_step)
        newest.weighted += value * step
        newest.weight += step

    def _turn(self, at_monotonic_seconds: float, value: float) -> _Bucket:
        """Forget what is too old, and begin a part if the newest one is full."""
        buckets = self._buckets
        while buckets and buckets[0].end < at_monotonic_seconds - self._length:
            buckets.popleft()
        if not buckets or at_monotonic_seconds >= buckets[-1].start + self._part:
            buckets.append(_Bucket(at_monotonic_seconds, value))
        self._seal()
        return buckets[-1]

    def _seal(self) -> None:
        """Fold all buckets but the newest, which alone still changes."""
        buckets = list(self._buckets)[:-1]
        self._sealed = (
            (
                min(bucket.minimum for bucket in buckets),
                max(bucket.maximum for bucket in buckets),
                sum(bucket.weighted for bucket in buckets),
                sum(bucket.weight for bucket in buckets),
            )
            if buckets
            else None
        )

    def statistics(self) -> Statistics | None:
        """The window that ends with the newest sample; None before the first."""
        if not self._buckets:
            return None
        newest = self._buckets[-1]
        low, high = newest.minimum, newest.maximum
        weighted, weight = newest.weighted, newest.weight
        if self._sealed is not None:
            low, high = min(low, self._sealed[0]), max(high, self._sealed[1])
            weighted, weight = weighted + self._sealed[2], weight + self._sealed[3]
        # Rounding must not carry the mean past the extremes.
        mean = min(max(weighted / weight, low), high) if weight > 0 else newest.maximum
        return Statistics(minimum=low, mean=mean, peak=high)
