# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What PromQL expressions name, and which labels their results carry."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import promql_parser

from veo_exporter.catalog import Kind, MetricSpec

_SET_BY_SCRAPE: Final = frozenset({"job", "instance", "node"})
"""What alerts/prometheus.yml puts on every series."""
_TARGET: Final = _SET_BY_SCRAPE | {"cluster"}
_LACKING_AT_TIMES: Final = frozenset({"gpu", "uuid", "pci_bus_id"})
"""Empty on a GPU that NVML never listed and on a call about the driver; empty is absent."""
_DCGM: Final = (
    *("gpu", "UUID", "pci_bus_id", "device", "modelName", "hostname", "Hostname"),
    *("GPU_I_ID", "GPU_I_PROFILE"),
)

_MAY_TAKE_COUNTERS: Final = frozenset(
    {"rate", "irate", "increase", "resets", "changes", "count_over_time", "present_over_time"}
    | {"absent", "absent_over_time", "timestamp", "count", "group"}
)
"""Functions and aggregations to which the absolute value of a counter does not matter."""


NO_SUCH_METRIC: Final = "no such metric"


@dataclass(frozen=True, slots=True)
class Labels:
    """What a vector's series can carry, and what they always carry. Any, where `may` is None."""

    may: frozenset[str] | None
    always: frozenset[str] = frozenset()

    def lacks(self, names: Iterable[str]) -> list[str]:
        """Those of the names that no series can carry."""
        return [] if self.may is None else sorted(set(names) - self.may)

    def and_also(self, names: Iterable[str], always: Iterable[str] = ()) -> "Labels":
        may = None if self.may is None else self.may | set(names)
        return Labels(may, self.always | set(always))

    def without(self, names: Iterable[str]) -> "Labels":
        may = None if self.may is None else self.may - set(names)
        return Labels(may, self.always - set(names))

    def only(self, names: Iterable[str]) -> "Labels":
        return Labels(frozenset(names), self.always & set(names))


ANY: Final = Labels(None)


@dataclass(frozen=True, slots=True)
class Outside:
    """A metric that is neither the catalogue's nor recorded, and why it may be named."""

    labels: Labels
    why: str


_ABOUT_A_SCRAPE: Final = Outside(
    Labels(_TARGET, _SET_BY_SCRAPE), "Prometheus' own, for each scrape"
)
_OF_DCGM: Final = Outside(
    Labels(_TARGET | set(_DCGM), _SET_BY_SCRAPE | {"gpu", "UUID"}),
    "dcgm-exporter's, which the recording rules take where ours is missing",
)
OUTSIDE: Final[Mapping[str, Outside]] = {
    "up": _ABOUT_A_SCRAPE,
    "scrape_duration_seconds": _ABOUT_A_SCRAPE,
    "ALERTS": Outside(ANY, "Prometheus' own: alerts that are pending or firing"),
    "kube_node_labels": Outside(
        Labels(_TARGET | {"label_nvidia_com_gpu_present"}, frozenset({"node"})),
        "kube-state-metrics': says which nodes of a Kubernetes cluster have GPUs",
    ),
    "DCGM_FI_DEV_GPU_UTIL": _OF_DCGM,
    "DCGM_FI_DEV_MEM_COPY_UTIL": _OF_DCGM,
    "DCGM_FI_DEV_FB_USED": _OF_DCGM,
    "DCGM_FI_DEV_FB_FREE": _OF_DCGM,
    "DCGM_FI_DEV_POWER_USAGE": _OF_DCGM,
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _OF_DCGM,
    "DCGM_FI_DEV_GPU_TEMP": _OF_DCGM,
    "DCGM_FI_DEV_SM_CLOCK": _OF_DCGM,
}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and where it stands."""

    file: str
    where: str
    expr: str
    record: str = ""
    """The name under which a recording rule stores it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a query."""

    file: str
    where: str
    metric: str
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.where, self.metric, self.what) if part)


class Vocabulary:
    """The metrics that may be named, and their labels."""

    def __init__(self, catalog: Iterable[MetricSpec], recording: Iterable[Query]) -> None:
        self._labels = {name: outside.labels for name, outside in OUTSIDE.items()}
        self.counters: set[str] = set()
        for spec in catalog:
            for name in spec.series_names:
                self._labels[name] = _labels_of(spec, name)
                if spec.kind is not Kind.GAUGE:
                    self.counters.add(name)
        self._recording = {query.record: query for query in recording if query.record}
        self.counters.update(name for name in self._recording if name.endswith("_total"))

    def labels(self, metric: str) -> Labels | None:
        """None if there is no such metric."""
        if metric in self._labels:
            return self._labels[metric]
        if query := self._recording.pop(metric, None):
            # A rule that leads back to itself finds itself missing and not an endless way.
            self._labels[metric] = labels_of(query, self) or ANY
            return self._labels[metric]
        return None


def _labels_of(spec: MetricSpec, series: str) -> Labels:
    own = frozenset(spec.label_names) | ({"le"} if series.endswith("_bucket") else set())
    of_presence = not own.isdisjoint({"pci_bus_id", "function"})
    return Labels(
        own | _TARGET, _SET_BY_SCRAPE | own - (_LACKING_AT_TIMES if of_presence else set())
    )


def faults_of(query: Query, vocabulary: Vocabulary) -> list[Fault]:
    """What is wrong with a query; nothing twice."""
    reader = _Reader(query, vocabulary)
    reader.run()
    return list(dict.fromkeys(reader.faults))


def labels_of(query: Query, vocabulary: Vocabulary) -> Labels | None:
    """The labels of a query's result; None if it is no vector."""
    return _Reader(query, vocabulary).run()


@dataclass
class _Reader:
    """Reads one query from the leaves up: each step says what labels its series have."""

    query: Query
    vocabulary: Vocabulary
    faults: list[Fault] = field(default_factory=list)

    def run(self) -> Labels | None:
        try:
            parsed = promql_parser.parse(_without_variables(self.query.expr))
        except ValueError as error:
            self._fault("", f"cannot be parsed: {str(error).splitlines()[0]}")
            return ANY
        # A recorded counter is still one, and who reads it has to know so by its name.
        return self._read(parsed, counters=self.query.record.endswith("_total"))

    def _fault(self, metric: str, what: str) -> None:
        self.faults.append(Fault(self.query.file, self.query.where, metric, what))

    def _read(self, node: promql_parser.Expr, *, counters: bool) -> Labels | None:
        match node:
            case promql_parser.VectorSelector():
                return self._selector(node, counters=counters)
            case promql_parser.MatrixSelector():
                return self._selector(node.vector_selector, counters=counters)
            case (
                promql_parser.ParenExpr() | promql_parser.UnaryExpr() | promql_parser.SubqueryExpr()
            ):
                return self._read(node.expr, counters=counters)
            case promql_parser.AggregateExpr():
                return self._aggregate(node, counters=counters)
            case promql_parser.BinaryExpr():
                return self._binary(node, counters=counters)
            case promql_parser.Call():
                return self._call(node, counters=counters)
        return None

    def _selector(self, node: promql_parser.VectorSelector, *, counters: bool) -> Labels:
        metric = node.name or ""
        labels = self.vocabulary.labels(metric)
        if labels is None:
            self._fault(metric, NO_SUCH_METRIC if metric else "a selector names no metric")
            return ANY
        if metric in self.vocabulary.counters and not counters:
            self._fault(metric, "is a counter: take its rate or increase")
        self._want([matcher.name for matcher in node.matchers.matchers], labels, metric)
        return labels

    def _aggregate(self, node: promql_parser.AggregateExpr, *, counters: bool) -> Labels:
        operation = str(node.op)
        inner = self._read(node.expr, counters=counters or operation in _MAY_TAKE_COUNTERS) or ANY
        if node.modifier is not None:
            names = node.modifier.labels
            self._want(names, inner, _first_metric(node))
            if node.modifier.type is promql_parser.AggModifierType.Without:
                return inner.without(names)
            return inner.only(names)
        if operation in {"topk", "bottomk", "limitk", "limit_ratio"}:
            return inner
        counted = [node.param.val] if operation == "count_values" and node.param else []
        return Labels(frozenset(counted))

    def _call(self, node: promql_parser.Call, *, counters: bool) -> Labels | None:
        name = node.func.name
        read = [
            self._read(arg, counters=counters or name in _MAY_TAKE_COUNTERS) for arg in node.args
        ]
        if node.func.return_type is promql_parser.ValueType.Scalar:
            return None
        if name in {"absent", "absent_over_time"}:
            return ANY
        inner = next((labels for labels in read if labels is not None), Labels(frozenset()))
        if name == "histogram_quantile":
            return inner.without({"le"})
        if name in {"label_replace", "label_join"}:
            texts = [arg.val for arg in node.args[1:]]
            target, sources = texts[0], texts[2:] if name == "label_join" else texts[2:3]
            self._want(sources, inner, _first_metric(node))
            whole = name == "label_replace" and (texts[1], texts[3]) == ("$1", "(.+)")
            copied = whole and sources[0] in inner.always
            return inner.and_also([target], always=[target] if copied else [])
        return inner

    def _binary(self, node: promql_parser.BinaryExpr, *, counters: bool) -> Labels | None:
        left = self._read(node.lhs, counters=counters)
        right = self._read(node.rhs, counters=counters)
        if left is None or right is None:
            return left or right
        matching = node.modifier.matching if node.modifier else None
        on = matching is not None and matching.type is promql_parser.LabelModifierType.Include
        names = matching.labels if matching else []
        if on:
            self._want(names, left, _first_metric(node.lhs))
            self._want(names, right, _first_metric(node.rhs))
        match str(node.op):
            case "and" | "unless":
                return left
            case "or":
                may = None if left.may is None or right.may is None else left.may | right.may
                return Labels(may, left.always & right.always)
        cardinality = promql_parser.VectorMatchCardinality
        if node.modifier and node.modifier.card in (cardinality.ManyToOne, cardinality.OneToMany):
            to_left = node.modifier.card is cardinality.ManyToOne
            many, one = (left, right) if to_left else (right, left)
            taken = node.modifier.group_labels or []
            self._want(taken, one, _first_metric(node.rhs if to_left else node.lhs))
            return many.and_also(taken, always=one.always & set(taken))
        equal = Labels(left.may, left.always | right.always)
        return equal.only(names) if on else equal.without(names)

    def _want(self, names: Iterable[str], labels: Labels, metric: str) -> None:
        for name in labels.lacks(names):
            self._fault(metric, f"has no label {name}")


def _first_metric(node: promql_parser.Expr) -> str:
    found: list[str] = []

    def visit(inner: promql_parser.Expr) -> bool:
        if isinstance(inner, promql_parser.VectorSelector):
            found.append(inner.name or "")
        return not found

    promql_parser.walk(node, visit)
    return found[0] if found else ""


_WINDOWS: Final = re.compile(
    r"\$(?:__(?:rate_)?interval|__range)\b|\$\{__(?:rate_)?(?:interval|range)\}"
)
_VARIABLES: Final = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?::\w+)?\})")


def _without_variables(expr: str) -> str:
    """An expression as Grafana would send it; what its variables hold does not matter here."""
    return _VARIABLES.sub("x", _WINDOWS.sub("5m", expr))
