# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What it takes to declare a metric."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from veo_exporter.units import Unit

PREFIXES: Final = ("veo_", "process_")
"""Ours, and the names that every Prometheus client library gives to a process's own figures."""

RESERVED_LABELS: Final = ("le", "quantile")
"""Prometheus gives these a meaning of its own."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Namespace:
    """Whose names they are, and which rules hold for them."""

    prefixes: tuple[str, ...]
    name: re.Pattern[str]
    characters: str
    """What a name may consist of, in words."""
    label: re.Pattern[str]
    base_units: bool = True
    """Whether names end with the base unit, and those of counters with _total."""


OURS: Final = Namespace(PREFIXES, _NAME, "small letters, digits and underscores", _NAME)


class Kind(Enum):
    """The Prometheus metric types in use."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Label:
    """A label: what its value is, and in words how many values it can have on one node."""

    name: str
    meaning: str
    bound: str


# Compared and hashed by identity: a spec is a key of every reading, many thousand times a second.
@dataclass(frozen=True, slots=True, eq=False)
class MetricSpec:
    """One metric, declared: everything else that names it derives from here.

    Raises ValueError where a declaration breaks the naming rules of Prometheus or of this project.
    """

    name: str
    kind: Kind
    unit: Unit
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    namespace: Namespace = OURS

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ValueError(f"{self.name}: {fault}")

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    @property
    def series_names(self) -> tuple[str, ...]:
        """The names under which Prometheus stores this metric."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(self.name + suffix for suffix in ("_bucket", "_sum", "_count"))
        return (self.name,)

    def series(self, *labels: str) -> "Series":
        """One series of each subject, by the values of the labels after those of its identity."""
        return Series(self, labels)

    def _faults(self) -> Iterable[str]:
        if not self.name.startswith(self.namespace.prefixes):
            yield f"wants one of the prefixes {', '.join(self.namespace.prefixes)}"
        if not self.namespace.name.fullmatch(self.name):
            yield f"wants {self.namespace.characters}"
        if not self.help.endswith("."):
            yield "wants a help text that ends with a full stop"
        if (self.kind is Kind.HISTOGRAM) != bool(self.buckets):
            yield "buckets are for histograms, and histograms want them"
        if list(self.buckets) != sorted(set(self.buckets)):
            yield "buckets want to rise"
        yield from self._unit_faults()
        yield from self._label_faults()

    def _unit_faults(self) -> Iterable[str]:
        if not self.namespace.base_units:
            if self.unit is not Unit.NONE:
                yield "is in a unit of its own, which its help text names"
            return
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            yield "_total is for counters, and counters want it"
        stem = self.name.removesuffix("_total")
        if self.unit.suffix and not stem.endswith("_" + self.unit.suffix):
            yield f"wants the unit in its name: {stem}_{self.unit.suffix}"
        if self.unit is Unit.NONE:
            for unit in Unit:
                if unit.suffix and stem.endswith("_" + unit.suffix):
                    yield f"is named in {unit.suffix} but declared without a unit"

    def _label_faults(self) -> Iterable[str]:
        if len(set(self.label_names)) != len(self.labels):
            yield "has a label twice"
        for name in self.label_names:
            if not self.namespace.label.fullmatch(name) or name in RESERVED_LABELS:
                yield f"has a label that Prometheus keeps for itself or cannot read: {name}"


# As specs are: a key of every reading.
@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One series that each GPU may have, where the values of its further labels are known beforehand.

    `labels` are the values of the spec's labels after `gpu` and `uuid`. Made once, beside its spec.
    """

    spec: MetricSpec
    labels: tuple[str, ...]

    def __str__(self) -> str:
        names = self.spec.label_names[-len(self.labels) :]
        pairs = zip(names, self.labels, strict=True)
        selector = ",".join(f'{name}="{value}"' for name, value in pairs)
        return f"{self.spec.name}{{{selector}}}"
