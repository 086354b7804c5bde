# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Families to text, in the two formats that Prometheus asks for.

The bytes are those that prometheus_client writes; we write them because a page of a node is
written at each sample, and doing so with remembered labels costs a fraction (docs/benchmarks.md).
"""

import math
from collections.abc import Iterable
from enum import Enum
from math import copysign
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


class _Line:
    """A series' line as it was written last; most values are the same from page to page."""

    __slots__ = ("start", "text", "value")

    def __init__(self, start: str) -> None:
        self.start = start
        self.value = math.nan
        self.text = ""

    def write(self, value: float) -> str:
        # 0 equals -0, but is not written so.
        if value != self.value or (not value and copysign(1, value) != copysign(1, self.value)):
            self.value = value
            self.text = f"{self.start}{_value(value)}\n"
        return self.text


class TextWriter:
    """Writes pages in one format and remembers what does not change from page to page."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._heads: dict[MetricSpec, str] = {}
        self._lines: dict[MetricSpec, dict[Labels, _Line]] = {}
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
            lines = self._lines.get(spec)
            if lines is None:
                lines = self._lines[spec] = {}
            for labels, value in family.rows:
                line = lines.get(labels)
                if line is None:
                    line = self._remember(lines, spec, labels)
                parts.append(line.write(float(value)))
        return "".join(parts)

    def _remember(self, lines: dict[Labels, _Line], spec: MetricSpec, labels: Labels) -> _Line:
        if self._remembered >= MAX_REMEMBERED_SERIES:
            for known in self._lines.values():
                known.clear()
            self._remembered = 0
        self._remembered += 1
        pairs = sorted(zip(spec.label_names, labels, strict=True))
        text = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
        line = lines[labels] = _Line(f"{spec.name}{{{text}}} " if text else f"{spec.name} ")
        return line
