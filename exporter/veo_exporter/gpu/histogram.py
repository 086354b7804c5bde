# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""For how long a signal had which values."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Final

from veo_exporter.exposition import Distribution
from veo_exporter.gpu.readings import Spread

COUNTS_PER_SECOND: Final = 1000
"""OpenMetrics wants whole counts, so what is counted is the milliseconds that samples stand for."""


class TimeHistogram:
    """Samples weighted by the time that each stands for."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._seconds = [0.0] * (len(bounds) + 1)
        self.integral = 0.0
        """The sum of each value by its seconds."""

    def add(self, values: Sequence[float], weights: Sequence[float]) -> None:
        """Take samples in, each with the seconds that it stands for."""
        seconds, bounds = self._seconds, self._bounds
        # A bound belongs to the bucket below it, as Prometheus has it.
        bucket = bisect_left(bounds, min(values))
        if bucket == bisect_left(bounds, max(values)):
            seconds[bucket] += sum(weights)
        else:
            for value, weight in zip(values, weights, strict=True):
                seconds[bisect_left(bounds, value)] += weight
        self.integral += sum(map(mul, values, weights))

    def spread(self) -> Spread:
        """As it is now, fit to be handed to other threads."""
        return Spread(tuple(self._seconds), self.integral)


def distribution_of(spread: Spread) -> Distribution:
    """A histogram's row of the page."""
    counts = tuple(
        float(int(seconds * COUNTS_PER_SECOND)) for seconds in accumulate(spread.seconds)
    )
    return Distribution(counts, spread.integral * COUNTS_PER_SECOND, (None,) * len(counts))
