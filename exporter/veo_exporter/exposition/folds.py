# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where things that happen once are counted: prometheus_client's instruments, made from specs."""

from collections.abc import Hashable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from veo_exporter.catalog import Kind, MetricSpec
from veo_exporter.exposition.families import Family
from veo_exporter.exposition.instruments import FoldedCounter, FoldedGauge, FoldedHistogram

Seeds = Iterable[tuple[str, ...]]
"""Label sets known beforehand. They start at zero, so that `increase` sees the first event."""


class Folds:
    """A registry of its own for each App, so that two can live in one process.

    What changes with every scrape is given a `refresh_seconds`, lest each scrape make the page anew;
    everything else is on the page at once.
    """

    def __init__(self, refresh_seconds: float | None = None) -> None:
        self._refresh_seconds = refresh_seconds
        self._registry = CollectorRegistry()
        self._instruments: list[
            tuple[MetricSpec, FoldedCounter | FoldedGauge | FoldedHistogram]
        ] = []

    def counter(self, spec: MetricSpec, seeds: Seeds = ()) -> Counter:
        """A counter made from its spec."""
        _expect(spec, Kind.COUNTER)
        counter = FoldedCounter(spec.name, spec.help, spec.label_names, registry=self._registry)
        for seed in seeds:
            counter.labels(*seed)
        self._instruments.append((spec, counter))
        return counter

    def gauge(self, spec: MetricSpec, seeds: Seeds = ()) -> Gauge:
        """A gauge made from its spec, for what is known when it happens, not when it is asked."""
        _expect(spec, Kind.GAUGE)
        gauge = FoldedGauge(spec.name, spec.help, spec.label_names, registry=self._registry)
        for seed in seeds:
            gauge.labels(*seed)
        self._instruments.append((spec, gauge))
        return gauge

    def histogram(self, spec: MetricSpec, seeds: Seeds = ()) -> Histogram:
        """A histogram made from its spec, with the spec's buckets."""
        _expect(spec, Kind.HISTOGRAM)
        histogram = FoldedHistogram(
            spec.name, spec.help, spec.label_names, buckets=spec.buckets, registry=self._registry
        )
        for seed in seeds:
            histogram.labels(*seed)
        self._instruments.append((spec, histogram))
        return histogram

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        if self._refresh_seconds is None:
            return None
        return now_monotonic_seconds // self._refresh_seconds

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        for spec, instrument in self._instruments:
            if isinstance(instrument, FoldedHistogram):
                rows = [(labels, row.distribution()) for labels, row in instrument.rows()]
                yield Family(spec, distributions=rows)
            else:
                yield _plain_family(spec, instrument)


def _plain_family(spec: MetricSpec, instrument: FoldedCounter | FoldedGauge) -> Family:
    family = Family(spec)
    for labels, row in instrument.rows():
        value, exemplar = row.value()
        family.rows.append((labels, value))
        if exemplar is not None:
            family.exemplars[labels] = exemplar
    return family


def _expect(spec: MetricSpec, kind: Kind) -> None:
    if spec.kind is not kind:
        raise ValueError(f"{spec.name} is no {kind.value}")
