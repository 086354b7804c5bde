# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Families to text, in the two formats that Prometheus asks for.

The bytes are those that prometheus_client writes; we write them because a page of a node is
written at each sample, and doing so with remembered labels costs a fraction (docs/benchmarks.md).
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final

from prometheus_client.utils import floatToGoString

from veo_exporter.catalog import Kind, MetricSpec
from veo_exporter.exposition.families import Family, Labels

MAX_REMEMBERED_SERIES: Final = 50_000
"""Beyond this the remembered label texts are forgotten and made anew: GPUs and jobs come and go."""

_EXACT_REPR_BELOW: Final = 1e6
"""From here on prometheus_client writes exponents, as Go does; below, it writes Python's repr."""


class Format(Enum):
    """How a page is written."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _head(spec: MetricSpec, form: Format) -> str:
    name = spec.name
    help = spec.help.replace("\\", r"\\").replace("\n", r"\n")
    if form is Format.TEXT:
        return f"# HELP {name} {help}\n# TYPE {name} {spec.kind.value}\n"
    if spec.kind is Kind.COUNTER:
        name = name.removesuffix("_total")
    help = help.replace('"', r"\"")
    unit = f"# UNIT {name} {spec.unit.openmetrics}\n" if spec.unit.openmetrics else ""
    return f"# HELP {name} {help}\n# TYPE {name} {spec.kind.value}\n{unit}"


def _value(value: float) -> str:
    if -_EXACT_REPR_BELOW < value < _EXACT_REPR_BELOW:
        return repr(value)
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


class TextWriter:
    """Writes pages in one format and remembers what does not change from page to page."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._heads: dict[MetricSpec, str] = {}
        self._series: dict[MetricSpec, dict[Labels, str]] = {}
        self._remembered = 0

    def write(self, families: Iterable[Family]) -> str:
        """The text of all families that have rows, in the order given."""
        parts: list[str] = []
        for family in families:
            if not family.rows:
                continue
            spec = family.spec
            head = self._heads.get(spec)
            if head is None:
                head = self._heads[spec] = _head(spec, self._form)
            parts.append(head)
            series = self._series.get(spec)
            if series is None:
                series = self._series[spec] = {}
            for labels, value in family.rows:
                start = series.get(labels)
                if start is None:
                    start = self._remember(series, spec, labels)
                parts.append(f"{start}{_value(float(value))}\n")
        return "".join(parts)

    def _remember(self, series: dict[Labels, str], spec: MetricSpec, labels: Labels) -> str:
        if self._remembered >= MAX_REMEMBERED_SERIES:
            for known in self._series.values():
                known.clear()
            self._remembered = 0
        self._remembered += 1
        pairs = sorted(zip(spec.label_names, labels, strict=True))
        text = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
        start = series[labels] = f"{spec.name}{{{text}}} " if text else f"{spec.name} "
        return start
