# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The committed dashboards, as a reader of JSON sees them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser

from dashboards.generation import generated_files

VARIABLES = {
    "$__rate_interval": "5m",
    "$__range": "1h",
    "$cluster": ".*",
    "$job": ".+",
    "$node": ".*",
    "$gpu": ".*",
    "$engine": ".*",
    "$model": ".*",
    "$profile": ".*",
}
"""What Grafana would put in, with All chosen everywhere."""


@dataclass(frozen=True)
class Document:
    """A dashboard's file."""

    path: Path
    content: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def variables(self) -> dict[str, dict[str, Any]]:
        return {variable["name"]: variable for variable in self.content["templating"]["list"]}

    @property
    def panels(self) -> "list[PanelOf]":
        """Every panel, those of folded rows too; the rows themselves are none."""
        found = []
        for panel in self.content["panels"]:
            inner = panel.get("panels", []) if panel["type"] == "row" else [panel]
            found += [PanelOf(self, one) for one in inner]
        return found


@dataclass(frozen=True)
class PanelOf:
    """A panel, and whose it is."""

    document: Document
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.document.name}: {self.content.get('title') or self.content.get('id')}"

    @property
    def kind(self) -> str:
        kind: str = self.content["type"]
        return kind

    @property
    def targets(self) -> "list[TargetOf]":
        return [TargetOf(self, target) for target in self.content.get("targets", [])]

    @property
    def defaults(self) -> dict[str, Any]:
        defaults: dict[str, Any] = self.content["fieldConfig"]["defaults"]
        return defaults


@dataclass(frozen=True)
class TargetOf:
    """A query, and whose it is."""

    panel: PanelOf
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.panel}, query {self.content['refId']}"

    @property
    def expr(self) -> str:
        expr: str = self.content["expr"]
        return expr

    @property
    def legend_labels(self) -> set[str]:
        return set(re.findall(r"{{\s*(\w+)\s*}}", self.content.get("legendFormat", "")))


def documents() -> list[Document]:
    """What is committed."""
    return [Document(path, json.loads(path.read_text())) for path in generated_files()]


def panels() -> list[PanelOf]:
    return [panel for document in documents() for panel in document.panels]


def targets() -> list[TargetOf]:
    return [target for panel in panels() for target in panel.targets]


def substituted(expr: str, values: dict[str, str] | None = None) -> str:
    """The expression as Grafana would send it."""
    for name, value in {**VARIABLES, **(values or {})}.items():
        expr = re.sub(re.escape(name) + r"\b", value.replace("\\", r"\\"), expr)
    assert "$" not in expr, f"a variable that nobody declared: {expr}"
    return expr


def selectors(expr: str) -> list[tuple[str, dict[str, str]]]:
    """Name and matchers of each selector, with the variables still in them."""
    found = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            matchers = {
                matcher.name: operator(matcher) + matcher.value
                for matcher in node.matchers.matchers
            }
            found.append((node.name or "", matchers))

    promql_parser.walk(parsed(expr), visit)
    return found


def parsed(expr: str) -> promql_parser.Expr:
    """Parsed with the variables still in it. They stand in quotes, but for the windows."""
    return promql_parser.parse(re.sub(r"\[\$__\w+\]", "[5m]", expr))


def operator(matcher: promql_parser.Matcher) -> str:
    """How it compares: =, !=, =~ or !~."""
    kinds = promql_parser.MatchOp
    written = ((kinds.Equal, "="), (kinds.NotEqual, "!="), (kinds.Re, "=~"), (kinds.NotRe, "!~"))
    return next(sign for kind, sign in written if kind == matcher.op)
