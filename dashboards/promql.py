# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""PromQL from the catalogue: what makes no sense of a metric is refused when it is written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from veo_exporter.catalog import Kind, MetricSpec, exporter
from veo_exporter.units import Unit

TARGET_LABELS: Final = ("cluster", "job", "instance", "node")
"""What scraping adds to each series; cluster is absent where there is only one."""

RATE_INTERVAL: Final = "$__rate_interval"
"""At least four scrapes, whatever the time range is: Grafana's own."""

CHOSEN: Final = ("gpu", "engine", "model", "profile")
"""Labels that have a variable; who has one of them is asked by it."""

RATE_UNITS: Final = {
    # Seconds of something per second are a share of the time; joules per second are watts.
    Unit.SECONDS: Unit.RATIO.grafana,
    Unit.JOULES: Unit.WATTS.grafana,
    Unit.BYTES: "Bps",
    Unit.NONE: "cps",
}


Wanted = str | tuple[str, ...]
"""A label's value, or any of several."""


class BadQuery(ValueError):
    """A query that would be wrong or empty."""


@dataclass(frozen=True, slots=True)
class Series:
    """An expression, and the labels that its series can carry."""

    text: str
    labels: frozenset[str]

    def once(self) -> Self:
        """Each thing of a node once, however many jobs scrape it: for what is added up."""
        return self.aggregate("max", *sorted(self.labels - {"job", "instance"}))

    def aggregate(self, operator: str, *by: str) -> Self:
        """The same aggregated, as `max by (node, gpu) (...)`; without labels, over everything."""
        if missing := set(by) - self.labels:
            raise BadQuery(f"{self.text}: has no label {', '.join(sorted(missing))}")
        clause = f" by ({', '.join(by)}) " if by else ""
        return type(self)(f"{operator}{clause}({self.text})", frozenset(by))

    def __add__(self, other: Self) -> Self:
        return self._with("+", other)

    def __sub__(self, other: Self) -> Self:
        return self._with("-", other)

    def __truediv__(self, other: Self) -> Self:
        return self._with("/", other)

    def above_zero(self) -> Self:
        """Only the series that are: of many rows that stand at zero, those where something is."""
        return type(self)(f"{self.text} > 0", self.labels)

    def where(self, other: Self, *on: str) -> Self:
        """Only the series that have a partner."""
        return type(self)(f"({self.text} and on ({', '.join(on)}) {other.text})", self.labels)

    def _with(self, operator: str, other: Self) -> Self:
        return type(self)(f"({self.text} {operator} {other.text})", self.labels & other.labels)


def gauge(spec: MetricSpec, **equal: str) -> Series:
    """A gauge as it is."""
    if spec.kind is not Kind.GAUGE:
        raise BadQuery(f"{spec.name} is a {spec.kind.value}: its bare value says nothing")
    if spec.unit is Unit.TIMESTAMP:
        raise BadQuery(f"{spec.name} is a time in seconds, which Grafana reads as ms: show its age")
    return _select(spec.name, spec.label_names, equal)


def rate(spec: MetricSpec, **equal: Wanted) -> Series:
    """A counter per second."""
    return _over_time("rate", spec, RATE_INTERVAL, equal)


def increase(spec: MetricSpec, window: str, **equal: str) -> Series:
    """How much a counter grew in a window."""
    return _over_time("increase", spec, window, equal)


def buckets(spec: MetricSpec, **equal: Wanted) -> Series:
    """Observations per second in each bucket, as a heatmap draws them."""
    if spec.kind is not Kind.HISTOGRAM:
        raise BadQuery(f"{spec.name} is a {spec.kind.value}: only a histogram has buckets")
    found = _select(f"{spec.name}_bucket", (*spec.label_names, "le"), equal)
    return (
        Series(f"rate({found.text}[{RATE_INTERVAL}])", found.labels).once().aggregate("sum", "le")
    )


def quantile(share: float, spec: MetricSpec, *by: str, **equal: str) -> Series:
    """A quantile of a histogram's observations."""
    if spec.kind is not Kind.HISTOGRAM:
        raise BadQuery(f"{spec.name} is a {spec.kind.value}: only a histogram has quantiles")
    if not 0 <= share <= 1:
        raise BadQuery(f"{spec.name}: there is no quantile {share:g}")
    buckets = _select(f"{spec.name}_bucket", (*spec.label_names, "le"), equal)
    summed = Series(f"rate({buckets.text}[{RATE_INTERVAL}])", buckets.labels).aggregate(
        "sum", *by, "le"
    )
    return Series(f"histogram_quantile({share:g}, {summed.text})", frozenset(by))


def age(spec: MetricSpec) -> Series:
    """Seconds since a timestamp; absent while it is 0, which means never."""
    if spec.unit is not Unit.TIMESTAMP:
        raise BadQuery(f"{spec.name} is no timestamp")
    seen = _select(spec.name, spec.label_names, {})
    return Series(f"time() - ({seen.text} > 0)", seen.labels)


def up() -> Series:
    """Whether Prometheus could scrape our exporters, those included that are down.

    With all jobs chosen, the targets of other exporters would be among them; so a job counts if any
    of its nodes, and not just the chosen one, has had our exporter within a day.
    """
    name = exporter.BUILD_INFO.name
    job = ",".join(f'{label}=~"${label}"' for label in ("cluster", "job"))
    lately = Series(f"last_over_time({name}{{{job}}}[1d])", frozenset(TARGET_LABELS))
    ours = lately.aggregate("group", "cluster", "job")
    return _select("up", (), {}).where(ours, "cluster", "job")


def of_exporters(series: Series) -> Series:
    """Only our exporters' own, of a metric that other processes have as well."""
    return series.where(gauge(exporter.BUILD_INFO), "cluster", "job", "instance")


def firing_alerts() -> Series:
    """Our alerts that fire for what is chosen, or for no single node or GPU.

    The watchdog, which always fires, has no severity that anybody is called for.
    """
    matchers = (
        'alertstate="firing"',
        'alertname=~"Veo.+"',
        'severity=~"critical|warning|info"',
        *(f'{label}=~"${label}|"' for label in ("cluster", "node", "gpu")),
    )
    labels = ("alertname", "severity", "action", "cluster", "node", "gpu")
    return Series(f"ALERTS{{{','.join(matchers)}}}", frozenset(labels))


def _over_time(function: str, spec: MetricSpec, window: str, equal: Mapping[str, Wanted]) -> Series:
    if spec.kind is not Kind.COUNTER:
        raise BadQuery(f"{spec.name} is a {spec.kind.value}: only counters have a {function}")
    selected = _select(spec.name, spec.label_names, equal)
    return Series(f"{function}({selected.text}[{window}])", selected.labels)


def _select(name: str, labels: tuple[str, ...], equal: Mapping[str, Wanted]) -> Series:
    if unknown := set(equal) - set(labels):
        raise BadQuery(f"{name} has no label {', '.join(sorted(unknown))}")
    chosen = ("cluster", "job", "node", *(name for name in CHOSEN if name in labels))
    matchers = [f'{label}=~"${label}"' for label in chosen]
    matchers += [
        f"{label}={json.dumps(value)}"
        if isinstance(value, str)
        else f"{label}=~{json.dumps('|'.join(value))}"
        for label, value in equal.items()
    ]
    return Series(f"{name}{{{','.join(matchers)}}}", frozenset((*TARGET_LABELS, *labels)))
