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
from operator import is_
from typing import Final

from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from veo_exporter.catalog import Kind, MetricSpec
from veo_exporter.exposition.families import Distribution, Family, Labels

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
    kind = spec.kind.value
    if spec.kind is Kind.COUNTER:
        # A counter of another exporter's, without that ending, is none to OpenMetrics.
        kind = kind if name.endswith("_total") else "unknown"
        name = name.removesuffix("_total")
    help = help.replace('"', r"\"")
    unit = f"# UNIT {name} {spec.unit.openmetrics}\n" if spec.unit.openmetrics else ""
    return f"# HELP {name} {help}\n# TYPE {name} {kind}\n{unit}"


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
        # 0 equals -0, but is not written so: it is remembered, -0 never.
        if value == self.value and (value or copysign(1.0, value) > 0):
            return self.text
        self.value = value if value or copysign(1.0, value) > 0 else math.nan
        self.text = f"{self.start}{_value(value)}\n"
        return self.text


class _Block:
    """A histogram row's lines as they were written last; most rows are idle between two pages."""

    __slots__ = ("bucket_lines", "distribution", "exemplars", "further_lines", "text")

    def __init__(self, spec: MetricSpec, labels: Labels, *, exemplars: bool) -> None:
        pairs = list(zip(spec.label_names, labels, strict=True))
        bounds = (*spec.buckets, *(() if spec.buckets[-1] == math.inf else (math.inf,)))
        self.exemplars = exemplars
        self.bucket_lines = [
            _Line(_start(f"{spec.name}_bucket", [*pairs, ("le", _bound(bound))]))
            for bound in bounds
        ]
        # A sum that may fall is no counter: prometheus_client leaves it out.
        suffixes = ("_count", "_sum") if bounds[0] >= 0 else ("_count",)
        self.further_lines = [_Line(_start(spec.name + suffix, pairs)) for suffix in suffixes]
        self.distribution: Distribution | None = None
        self.text = ""

    def write(self, distribution: Distribution) -> str:
        if distribution is self.distribution:
            return self.text
        parts = [
            line.write(count)
            for line, count in zip(self.bucket_lines, distribution.counts, strict=True)
        ]
        if self.exemplars:
            for place, exemplar in enumerate(distribution.exemplars):
                if exemplar is not None:
                    parts[place] = _with_exemplar(parts[place], exemplar)
        # The count, and the sum if it is written.
        further = (distribution.counts[-1], distribution.sum)
        parts += [
            line.write(value) for line, value in zip(self.further_lines, further, strict=False)
        ]
        self.text = "".join(parts)
        self.distribution = distribution
        return self.text


def _start(name: str, pairs: list[tuple[str, str]]) -> str:
    text = ",".join(f'{label}="{_escape(value)}"' for label, value in sorted(pairs))
    return f"{name}{{{text}}} " if text else f"{name} "


def _bound(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def _with_exemplar(line: str, exemplar: Exemplar) -> str:
    pairs = sorted(exemplar.labels.items())
    labels = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
    when = "" if exemplar.timestamp is None else f" {exemplar.timestamp}"
    return f"{line[:-1]} # {{{labels}}} {_value(float(exemplar.value))}{when}\n"


def _same(some: list[tuple[Labels, float]], others: list[tuple[Labels, float]]) -> bool:
    # By identity: 0 equals -0, but is not written so.
    return len(some) == len(others) and all(map(is_, some, others))


class Remembered:
    """Series as they were written last. Writers of both formats may share it: a line that is no
    histogram's is the same in both, and some 2,000 of them are a megabyte."""

    def __init__(self) -> None:
        self.lines: dict[MetricSpec, dict[Labels, _Line]] = {}
        self.blocks: dict[Format, dict[MetricSpec, dict[Labels, _Block]]] = {
            form: {} for form in Format
        }
        self._series = 0

    def make_room(self, series: int) -> None:
        """Forget all if so many more would be too many."""
        if self._series + series > MAX_REMEMBERED_SERIES:
            for lines in self.lines.values():
                lines.clear()
            for by_spec in self.blocks.values():
                for blocks in by_spec.values():
                    blocks.clear()
            self._series = 0
        self._series += series


class TextWriter:
    """Writes pages in one format and remembers what does not change from page to page."""

    def __init__(self, form: Format, remembered: Remembered | None = None) -> None:
        self._form = form
        self._exemplars = form is Format.OPENMETRICS
        self._heads: dict[MetricSpec, str] = {}
        self._written: dict[MetricSpec, tuple[list[tuple[Labels, float]], str]] = {}
        self._remembered = remembered or Remembered()
        self._lines = self._remembered.lines
        self._blocks = self._remembered.blocks[form]

    def write(self, families: Iterable[Family]) -> str:
        """The text of all families that have rows, in the order given."""
        parts: list[str] = []
        for family in families:
            if not family.rows and not family.distributions:
                continue
            spec = family.spec
            head = self._heads.get(spec)
            if head is None:
                head = self._heads[spec] = _head(spec, self._form)
            parts.append(head)
            if family.distributions:
                self._write_distributions(family, parts)
                continue
            known = self._written.get(spec)
            if known is not None and _same(known[0], family.rows) and not family.exemplars:
                parts.append(known[1])
                continue
            begun = len(parts)
            lines = self._lines.get(spec)
            if lines is None:
                lines = self._lines[spec] = {}
            for labels, value in family.rows:
                line = lines.get(labels)
                if line is None:
                    line = self._remember_line(lines, spec, labels)
                # As in `write`, but without the call: most lines are as they were.
                same = value == line.value and value
                parts.append(line.text if same else line.write(float(value)))
                if family.exemplars and self._exemplars and labels in family.exemplars:
                    parts[-1] = _with_exemplar(parts[-1], family.exemplars[labels])
            if not family.exemplars:
                self._written[spec] = family.rows.copy(), "".join(parts[begun:])
        return "".join(parts)

    def _write_distributions(self, family: Family, parts: list[str]) -> None:
        blocks = self._blocks.setdefault(family.spec, {})
        for labels, distribution in family.distributions:
            block = blocks.get(labels)
            if block is None:
                self._remembered.make_room(len(family.spec.buckets) + 3)
                block = _Block(family.spec, labels, exemplars=self._exemplars)
                blocks[labels] = block
            parts.append(block.write(distribution))

    def _remember_line(self, lines: dict[Labels, _Line], spec: MetricSpec, labels: Labels) -> _Line:
        self._remembered.make_room(1)
        pairs = list(zip(spec.label_names, labels, strict=True))
        line = lines[labels] = _Line(_start(spec.name, pairs))
        return line
