# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Do rules, dashboards and runbooks name only metrics and labels that exist?

A line for each fault: the file, the rule or panel, the metric, and what is wrong with it.
"""

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.expressions import NO_SUCH_METRIC, Fault, Query, Vocabulary, faults_of
from tools.programs import ROOT
from veo_exporter.catalog import CATALOG, MetricSpec


def rule_queries(root: Path = ROOT) -> list[Query]:
    """Every rule's expression."""
    return [
        Query(
            str(path.relative_to(root)),
            rule.get("record") or rule["alert"],
            rule["expr"],
            rule.get("record", ""),
        )
        for path in sorted((root / "alerts/rules").glob("*.yaml"))
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


def dashboard_queries(root: Path = ROOT) -> list[Query]:
    """Every query of panels, of variables and of annotations."""
    return [
        Query(str(path.relative_to(root)), where, expr)
        for path in sorted((root / "dashboards/json").glob("*.json"))
        for where, expr in _queries_in(json.loads(path.read_text()))
    ]


def _queries_in(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    panels = list(dashboard.get("panels", []))
    while panels:
        panel = panels.pop(0)
        panels[:0] = panel.get("panels", [])
        for target in panel.get("targets", []):
            if expr := target.get("expr"):
                yield panel.get("title") or f"panel {panel.get('id')}", expr
    for variable in dashboard.get("templating", {}).get("list", []):
        text = variable.get("query") or ""
        if variable.get("type") == "query":
            yield from _of_variable(
                variable["name"], text["query"] if isinstance(text, dict) else text
            )
    for annotation in dashboard.get("annotations", {}).get("list", []):
        if expr := annotation.get("expr"):
            yield f"annotation {annotation.get('name')}", expr


def _of_variable(name: str, text: str) -> Iterator[tuple[str, str]]:
    if asked := re.fullmatch(r"label_values\((.+),\s*(\w+)\)", text.strip(), re.DOTALL):
        # The same in PromQL, so that the label is checked as any other.
        yield f"variable {name}", f"group by ({asked[2]}) ({asked[1]})"
    elif asked := re.fullmatch(r"query_result\((.+)\)", text.strip(), re.DOTALL):
        yield f"variable {name}", asked[1]


def runbook_queries(root: Path = ROOT) -> list[Query]:
    """Every block of PromQL in the runbooks, by its section."""
    queries = []
    for path in sorted((root / "alerts/runbooks").glob("*.md")):
        section = ""
        blocks = r"^## (?P<section>[^\n]+)$|^```promql\n(?P<expr>.*?)^```$"
        for found in re.finditer(blocks, path.read_text(), re.MULTILINE | re.DOTALL):
            section = found["section"].strip() if found["section"] else section
            if found["expr"]:
                queries.append(Query(str(path.relative_to(root)), section, found["expr"].strip()))
    return queries


def check(catalog: Collection[MetricSpec] = CATALOG, root: Path = ROOT) -> list[Fault]:
    """Every fault of every query below root, in the order of the files."""
    rules = rule_queries(root)
    vocabulary = Vocabulary(catalog, rules)
    queries = [*rules, *dashboard_queries(root), *runbook_queries(root)]
    faults = [fault for query in queries for fault in faults_of(query, vocabulary)]
    faults += _leaning(rules, [*rules, *dashboard_queries(root)], faults)
    faults += _thresholds(catalog, root)
    faults += _unused(rules, queries, root)
    return list(dict.fromkeys(faults))


def _names(query: Query, metric: str) -> bool:
    return re.search(rf"(?<![\w:]){re.escape(metric)}(?![\w:])", query.expr) is not None


def _leaning(rules: list[Query], queries: list[Query], faults: list[Fault]) -> Iterator[Fault]:
    """Those who name a recording rule that names a metric that is not there."""
    records = {(rule.file, rule.where): rule.record for rule in rules if rule.record}
    broken = {
        records[fault.file, fault.where]: fault.metric
        for fault in faults
        if fault.what == NO_SUCH_METRIC and (fault.file, fault.where) in records
    }
    while broken:
        record, metric = broken.popitem()
        for query in queries:
            if query.record != record and _names(query, record):
                yield Fault(query.file, query.where, record, f"leans on {metric}: {NO_SUCH_METRIC}")
                if query.record:
                    broken[query.record] = metric


def _thresholds(catalog: Iterable[MetricSpec], root: Path) -> Iterator[Fault]:
    path = root / "alerts/thresholds.yaml"
    known = {spec.name for spec in catalog}
    thresholds = yaml.safe_load(path.read_text())["thresholds"] if path.is_file() else {}
    for name, threshold in thresholds.items():
        if threshold["metric"] not in known:
            yield Fault(str(path.relative_to(root)), name, threshold["metric"], NO_SUCH_METRIC)


def _unused(rules: list[Query], queries: list[Query], root: Path) -> Iterator[Fault]:
    """Recording rules that cost an evaluation each time and that nobody knows of."""
    pages = [*(root / "docs").rglob("*.md"), *(root / "alerts/runbooks").glob("*.md")]
    texts = [(None, page.read_text()) for page in pages] + [
        (query, query.expr) for query in queries
    ]
    for rule in rules:
        name = re.compile(rf"(?<![\w:]){re.escape(rule.record)}(?![\w:])")
        if rule.record and not any(name.search(text) for who, text in texts if who is not rule):
            yield Fault(rule.file, "", rule.record, "is used nowhere, and no page explains it")


def main() -> int:
    faults = check()
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
