# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers that alerts compare with, as lines to draw or as steps of a colour."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from veo_exporter.catalog import CATALOG, MetricSpec
from veo_exporter.units import Unit

_SIGNS: Final = {
    Unit.NONE.grafana: "",
    Unit.INFO.grafana: "",
    Unit.SECONDS.grafana: " s",
    Unit.BYTES.grafana: " bytes",
    Unit.HERTZ.grafana: " Hz",
    Unit.WATTS.grafana: " W",
    Unit.JOULES.grafana: " J",
    Unit.CELSIUS.grafana: " °C",
    "cps": " per second",
    "Bps": " bytes per second",
}
"""What stands behind a number, for people, by what Grafana calls its unit."""
FILE: Final = Path(__file__).resolve().parent.parent / "alerts/thresholds.yaml"


@dataclass(frozen=True, slots=True)
class Line:
    """A value above which something is said to be the case."""

    value: float
    severity: str
    meaning: str

    def sentence(self, unit: str, *, drawn: bool = True) -> str:
        """The line in words, for whoever wonders what it is; where none is drawn, its colour."""
        is_share = unit == Unit.RATIO.grafana
        value = f"{self.value * 100:g} %" if is_share else f"{self.value:g}{_SIGNS[unit]}"
        what = f"Line at {value}" if drawn else f"Coloured from {value} on"
        return f"{what} ({self.severity}): {self.meaning}"


def lines_of(spec: MetricSpec, file: Path = FILE) -> tuple[Line, ...]:
    """The lines for panels of a metric, lowest first.

    Raises ValueError where any threshold is about a metric that there is not: its line would be on
    no panel, and nobody would miss it.
    """
    rows: dict[str, dict[str, Any]] = _content(file)["thresholds"]
    known = {known.name for known in CATALOG}
    for name, row in rows.items():
        if row["metric"] not in known:
            raise ValueError(f"{file.name}: {name}: {row['metric']} is not in the catalogue")
    lines = (
        Line(float(row["value"]), row["severity"], row["meaning"])
        for row in rows.values()
        # A share of what a counter counts is no line on the counter's panels.
        if row["metric"] == spec.name and not row.get("share")
    )
    return tuple(sorted(lines, key=lambda line: line.value))


def objective(name: str, file: Path = FILE) -> Line:
    """The line that a share should stay above."""
    row: dict[str, Any] = _content(file)["objectives"][name]
    return Line(float(row["target"]), "info", f"the objective. {row['meaning']}")


def runbook_base_url(file: Path = FILE) -> str:
    """Where the runbooks are."""
    url: str = _content(file)["links"]["runbook_base_url"]
    return url


def _content(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text())
    return content
