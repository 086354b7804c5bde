# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Whether our bytes are those that prometheus_client would write."""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from veo_exporter.catalog import Kind, Label, MetricSpec
from veo_exporter.exposition import Family, Format, Labels, TextWriter
from veo_exporter.units import Unit

_OPENMETRICS_END: Final = b"# EOF\n"

_VALUES: Final = (
    *(0, 1, True, -1, -0.0, 0.1, 1 / 3, 1e-5, 123456.789, 999999.9, 1e6, 1234567.0, -1e6),
    *(1e15, 1e16, 2**53, 2**64, 1.5e300, 5e-324, math.inf, -math.inf),
)
_TEXTS: Final = ("", "plain", 'a "quote"', "back\\slash", "new\nline", '\\n"', "Übergröße", "{},=")


class _Given(Collector):
    """A collector of families that are there already."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            if not family.rows and not family.distributions:
                continue
            spec = family.spec
            counter = spec.kind is Kind.COUNTER
            name = spec.name.removesuffix("_total") if counter else spec.name
            metric = Metric(name, spec.help, spec.kind.value, spec.unit.openmetrics)
            for labels, value in family.rows:
                # Positions make pairs here as they do in our writer; the names are the spec's.
                pairs = dict(zip(spec.label_names, labels, strict=True))
                metric.add_sample(spec.name, pairs, value)
            for labels, distribution in family.distributions:
                pairs = dict(zip(spec.label_names, labels, strict=True))
                bounds = (*map(floatToGoString, spec.buckets), "+Inf")
                for bound, count in zip(bounds, distribution.counts, strict=True):
                    metric.add_sample(f"{spec.name}_bucket", {**pairs, "le": bound}, count)
                metric.add_sample(f"{spec.name}_count", pairs, distribution.counts[-1])
                metric.add_sample(f"{spec.name}_sum", pairs, distribution.sum)
            yield metric


def _awkward() -> list[Family]:
    """Label values and numbers that are hard to write, whatever the node has today."""
    labels = (Label("z", "Any.", "any"), Label("a", "Any.", "any"))
    gauge = MetricSpec("veo_awkward", Kind.GAUGE, Unit.NONE, 'A "\\" and\nmore.', labels)
    counter = MetricSpec("veo_awkward_total", Kind.COUNTER, Unit.NONE, "More.")
    rows: list[tuple[Labels, float]] = [
        ((text, str(place)), value) for text in _TEXTS for place, value in enumerate(_VALUES)
    ]
    return [Family(gauge, rows), Family(counter, [((), 1e7)])]


def differing(families: Iterable[Family]) -> list[str]:
    """The formats in which the bytes are not the same."""
    given = list(families)
    faults = []
    for what, some in (("the page", given), ("awkward values", _awkward())):
        registry = CollectorRegistry()
        registry.register(_Given(some))
        wanted = {
            Format.TEXT: generate_latest(registry),
            Format.OPENMETRICS: generate_openmetrics(registry),  # type: ignore[no-untyped-call]
        }
        for form, theirs in wanted.items():
            ours = TextWriter(form).write(some).encode()
            if ours != theirs.removesuffix(_OPENMETRICS_END):
                faults.append(f"{what} as {form.value}")
    return faults
