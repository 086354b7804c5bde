# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers that alerts compare with, as lines to draw."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from veo_exporter.catalog import MetricSpec
from veo_exporter.units import Unit

FILE: Final = Path(__file__).resolve().parent.parent / "alerts/thresholds.yaml"


@dataclass(frozen=True, slots=True)
class Line:
    """A value above which something is said to be the case."""

    value: float
    severity: str
    meaning: str

    def sentence(self, unit: str) -> str:
        """The line in words, for whoever wonders what it is, with the panel's unit."""
        is_share = unit == Unit.RATIO.grafana
        value = f"{self.value * 100:g} %" if is_share else f"{self.value:g} {unit}"
        return f"Line at {value} ({self.severity}): {self.meaning}"


def lines_of(spec: MetricSpec, file: Path = FILE) -> tuple[Line, ...]:
    """The lines for panels of a metric, lowest first."""
    rows: list[dict[str, Any]] = list(_content(file)["thresholds"].values())
    lines = (
        Line(float(row["value"]), row["severity"], row["meaning"])
        for row in rows
        if row["metric"] == spec.name
    )
    return tuple(sorted(lines, key=lambda line: line.value))


def runbook_base_url(file: Path = FILE) -> str:
    """Where the runbooks are."""
    url: str = _content(file)["links"]["runbook_base_url"]
    return url


def _content(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text())
    return content
