# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where things that happen once are counted: prometheus_client's instruments, made from specs."""

from collections.abc import Hashable, Iterable

from prometheus_client import CollectorRegistry, Counter

from veo_exporter.catalog import Kind, MetricSpec
from veo_exporter.exposition.families import Family


class Folds:
    """A registry of its own for each App, so that two can live in one process.

    What changes with every scrape is given a `refresh_seconds`, lest each scrape make the page anew;
    everything else is on the page at once.
    """

    def __init__(self, refresh_seconds: float | None = None) -> None:
        self._refresh_seconds = refresh_seconds
        self._registry = CollectorRegistry()
        self._specs: dict[str, MetricSpec] = {}

    def counter(self, spec: MetricSpec, seeds: Iterable[tuple[str, ...]] = ()) -> Counter:
        """A counter made from its spec; `seeds` are the label sets known beforehand.

        They start at zero, so that `increase` sees the first event.
        """
        if spec.kind is not Kind.COUNTER:
            raise ValueError(f"{spec.name} is no counter")
        counter = Counter(spec.name, spec.help, spec.label_names, registry=self._registry)
        for seed in seeds:
            counter.labels(*seed)
        self._specs[spec.name.removesuffix("_total")] = spec
        return counter

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        if self._refresh_seconds is None:
            return None
        return now_monotonic_seconds // self._refresh_seconds

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        for metric in self._registry.collect():
            spec = self._specs[metric.name]
            # The client adds a _created series to each; Prometheus has no use for it.
            yield Family(
                spec,
                [
                    (tuple(sample.labels[name] for name in spec.label_names), sample.value)
                    for sample in metric.samples
                    if sample.name == spec.name
                ],
            )
