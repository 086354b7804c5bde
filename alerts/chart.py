# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The rules as the Helm chart carries them: numbers and durations are knobs of its values."""

import re
import textwrap
from pathlib import Path
from typing import Any, Final

import yaml

from alerts.generation import HEADER, dashboard_url
from alerts.sources import Alert, Recording, dcgm_series, load_groups
from alerts.thresholds import (
    FOLDER,
    SCRAPE_INTERVAL_SECONDS,
    Threshold,
    Thresholds,
    load_thresholds,
)
from veo_exporter.catalog import CATALOG
from veo_exporter.units import Unit

RULES: Final = FOLDER.parent / "helm/veo-exporter/files/rules.yaml"
SEVERITIES: Final = ("critical", "warning", "info", "none")
_PLACE: Final = re.compile(r"<<([^<>]+)>>")
_FILLED_BY_CHART: Final = frozenset({"job", "lookback"})
_FILLED_FROM_KNOBS: Final = {
    "value": "threshold",
    "percent": "threshold",
    "window": "window",
    "samples": "window",
}
"""Names in a rule's texts, and the knob that the chart takes each from."""


def generated_files() -> dict[Path, str]:
    """The chart's data of rules, with what it should hold."""
    thresholds = load_thresholds()
    content = {
        "job": thresholds.job,
        "interval": f"{SCRAPE_INTERVAL_SECONDS}s",
        **rule_values(thresholds),
        "groups": [
            {"name": group.name, "rules": [_row(rule, thresholds) for rule in group.rules]}
            for group in load_groups()
        ],
    }
    return {RULES: HEADER + _yaml(content)}


def rule_values(thresholds: Thresholds) -> dict[str, str]:
    """The values under prometheusRule that hold for all rules."""
    return {
        "lookback": thresholds.lookback,
        "runbookBaseUrl": thresholds.links["runbook_base_url"],
        "grafanaBaseUrl": thresholds.links["grafana_base_url"],
    }


def knobs(alert: Alert, thresholds: Thresholds) -> dict[str, Any]:
    """What a user of the chart may set about an alert, with the defaults."""
    threshold = thresholds.thresholds[alert.threshold] if alert.threshold else None
    values: dict[str, Any] = {
        "enabled": True,
        "for": alert.hold or "",
        "keepFiringFor": alert.keep_firing_for or "",
        "severity": threshold.severity if threshold else alert.severity,
    }
    if threshold:
        values["threshold"] = threshold.value
        if threshold.window:
            values["window"] = threshold.window
    return values


def alerts() -> tuple[Alert, ...]:
    """All alerts, in the order of their sources."""
    return tuple(rule for group in load_groups() for rule in group.rules if isinstance(rule, Alert))


def values_block() -> str:
    """The generated part of the chart's values.yaml, to stand under prometheusRule."""
    thresholds = load_thresholds()
    comments = {
        "lookback": "How long faults are looked back for, so that a missed scrape hides none; at least three "
        "scrape.interval.",
        "runbookBaseUrl": 'Where your runbooks are, a page for each alert: …/VeoGpuLost.md. "" leaves the link out.',
        "grafanaBaseUrl": 'Where your Grafana is. "" leaves the link out.',
    }
    lines = []
    for name, value in rule_values(thresholds).items():
        lines += [*_comment(comments[name]), f"{name}: {value}"]
    lines += _comment('A knob left out of an alert has its default; "" for a duration means none.')
    lines += ["alerts:"]
    for alert in alerts():
        meaning = f" {thresholds.thresholds[alert.threshold].meaning}" if alert.threshold else ""
        lines += [f"  {line}" for line in _comment(alert.summary + meaning)]
        lines += [f"  {alert.alert}:"]
        lines += [
            f"    {name}: {_scalar(value)}" for name, value in knobs(alert, thresholds).items()
        ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 110)]


def _scalar(value: object) -> str:
    return '""' if value == "" else _yaml({"": value}).partition(": ")[2].strip()


def knobs_schema() -> dict[str, Any]:
    """The JSON schema of prometheusRule.alerts."""
    thresholds = load_thresholds()
    kinds: dict[str, Any] = {
        "enabled": {"type": "boolean"},
        "for": {"$ref": "#/definitions/optionalDuration"},
        "keepFiringFor": {"$ref": "#/definitions/optionalDuration"},
        "severity": {"enum": list(SEVERITIES)},
        "window": {"$ref": "#/definitions/duration"},
    }

    def of(alert: Alert) -> dict[str, Any]:
        names = knobs(alert, thresholds)
        known = {name: kinds[name] for name in names if name in kinds}
        if alert.threshold:
            known["threshold"] = threshold_schema(thresholds.thresholds[alert.threshold])
        return {name: known[name] for name in names}

    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            alert.alert: {
                "type": "object",
                "additionalProperties": False,
                "properties": of(alert),
            }
            for alert in alerts()
        },
    }


def threshold_schema(threshold: Threshold) -> dict[str, Any]:
    """The numbers that a threshold may be, by the unit of its metric: others could not be crossed.

    Raises ValueError for a metric that there is not.
    """
    units = {spec.name: spec.unit for spec in CATALOG}
    if threshold.metric not in units:
        raise ValueError(f"{threshold.name}: {threshold.metric} is not in the catalogue")
    unit = units[threshold.metric]
    if unit is Unit.RATIO or threshold.share:
        # Nothing is above the whole.
        return {
            "description": "A share: 0.92 for 92 %.",
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1,
        }
    if unit is Unit.CELSIUS:
        return {"type": "number"}
    # A timestamp is compared by its age, in seconds.
    return {"type": "number", "minimum": 0}


def _row(rule: Recording | Alert, thresholds: Thresholds) -> dict[str, Any]:
    if isinstance(rule, Recording):
        return {"record": rule.record, "expr": _text(rule.expr, rule.record, {})}
    values = knobs(rule, thresholds)
    threshold = thresholds.thresholds[rule.threshold] if rule.threshold else None
    return {
        "alert": rule.alert,
        "expr": _text(rule.expr, rule.alert, values, threshold),
        "action": rule.action,
        "summary": rule.summary,
        "description": _text(rule.description, rule.alert, values, threshold),
        "dashboard": dashboard_url("", rule),
        "knobs": values,
    }


def _text(text: str, rule: str, values: dict[str, Any], threshold: Threshold | None = None) -> str:
    """Resolve what is fixed; leave what the chart fills in, if it can."""

    def resolve(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("dcgm "):
            return dcgm_series(name.removeprefix("dcgm "))
        if name == "least" and threshold and threshold.least is not None:
            return str(threshold.least)
        if name not in _FILLED_BY_CHART and _FILLED_FROM_KNOBS.get(name) not in values:
            raise ValueError(f"{rule}: <<{name}>> is nothing that the chart can fill in")
        return match[0]

    return _PLACE.sub(resolve, text)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that expressions can be read."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def _yaml(content: object) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
