# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""prometheus_client's instruments, made to be read fast and never to fail where they are used.

Theirs make an object for each row, and for each bucket of it, at every scrape, and raise where a
value is observed if its exemplar is too long. Folds' rows are mostly as they were at the scrape
before.
"""

from itertools import accumulate
from typing import Final, Self, cast

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.samples import Exemplar

from veo_exporter.exposition.families import Distribution, Labels

MAX_EXEMPLAR_CHARACTERS: Final = 128
"""Of all names and values together: OpenMetrics' own limit."""


def fitting(exemplar: dict[str, str] | None) -> dict[str, str] | None:
    """The exemplar if it may be written; an observation counts without one as well."""
    if not exemplar:
        return None
    length = sum(len(name) + len(value) for name, value in exemplar.items())
    return exemplar if length <= MAX_EXEMPLAR_CHARACTERS else None


class _Rows(MetricWrapperBase):
    """What all of them share: their rows, without an object for each."""

    def rows(self) -> list[tuple[Labels, Self]]:
        """The instrument of each label set, in the order in which they appeared."""
        if not self._labelnames:
            return [((), self)]
        with self._lock:
            return list(cast("dict[Labels, Self]", self._metrics).items())


class FoldedCounter(_Rows, Counter):
    """A counter whose exemplar is left off if it is too long."""

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        super().inc(amount, fitting(exemplar))

    def value(self) -> tuple[float, Exemplar | None]:
        """Of this label set, with the exemplar of the latest increment that had one."""
        return self._value.get(), self._value.get_exemplar()


class FoldedGauge(_Rows, Gauge):
    """A gauge whose rows are read like a counter's."""

    def value(self) -> tuple[float, Exemplar | None]:
        """Of this label set. A gauge has no exemplar."""
        return self._value.get(), None


class FoldedHistogram(_Rows, Histogram):
    """A histogram that makes its row anew only if something was observed since."""

    _observations = 0
    _latest: tuple[int, Distribution] | None = None

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        super().observe(amount, fitting(exemplar))
        # Last, so that whoever reads this number reads the observation too.
        self._observations += 1

    def distribution(self) -> Distribution:
        """The row of this label set; the same object as before if nothing was observed since."""
        observations = self._observations
        latest = self._latest
        if latest is None or latest[0] != observations:
            latest = self._latest = observations, self._read()
        return latest[1]

    def _read(self) -> Distribution:
        return Distribution(
            tuple(accumulate(bucket.get() for bucket in self._buckets)),
            self._sum.get(),
            tuple(bucket.get_exemplar() for bucket in self._buckets),
        )
