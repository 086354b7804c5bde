# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a subject hands over to be written: a metric with its rows."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client.samples import Exemplar

from veo_exporter.catalog import MetricSpec

Labels = tuple[str, ...]
"""Label values, in the order in which the spec declares the labels."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram's row: what was observed so far."""

    counts: tuple[float, ...]
    """Of observations up to each bucket's bound, and of all of them last."""
    sum: float
    exemplars: tuple[Exemplar | None, ...]
    """Each bucket's own, in the order of the counts."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and its rows. Gauges and counters have values, histograms distributions.

    A value is never NaN.
    """

    spec: MetricSpec
    rows: list[tuple[Labels, float]] = field(default_factory=list)
    distributions: list[tuple[Labels, Distribution]] = field(default_factory=list)
    exemplars: dict[Labels, Exemplar] = field(default_factory=dict)
    """Of those rows of a counter that have one."""

    def add(self, labels: Labels, value: float) -> None:
        self.rows.append((labels, value))


class Source(Protocol):
    """A subject's side of the page."""

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        """Changes whenever `families` would give something else; None asks to be read each time."""
        ...

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        """What is true now. Families without rows are left out of the page."""
        ...
