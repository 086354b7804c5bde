# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""thresholds.yaml, read."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).resolve().parent
SCRAPE_INTERVAL_SECONDS: Final = 15
"""What the rules assume; alerts/prometheus.yml scrapes so."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_in(duration: str) -> int:
    """Seconds in a duration as Prometheus writes it."""
    parts = re.findall(r"(\d+)([smhd])", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration!r} is not a duration such as 30s or 1m30s")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A number that an alert compares with."""

    name: str
    value: float
    metric: str
    severity: str
    meaning: str
    window: str | None = None
    share: bool = False
    """Whether it is a share of what the metric counts."""
    least: int | None = None
    """How many there must be before a share of them says anything."""
    budgets: float | None = None
    """The value in error budgets of an objective, where it is derived from one."""

    @property
    def least_samples(self) -> int:
        """How many samples its window must hold: all but each fourth scrape."""
        if self.window is None:
            return 0
        scrapes = seconds_in(self.window) // SCRAPE_INTERVAL_SECONDS
        return scrapes - scrapes // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is promised: the least share of good ones."""

    name: str
    target: float
    metric: str
    meaning: str

    @property
    def budget(self) -> float:
        """The share that may go wrong."""
        # In decimals as they are written: 1 - 0.926 is not 0.074 in binary.
        return round(1 - self.target, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Everything in the file."""

    links: dict[str, str]
    job: str
    lookback: str
    objectives: dict[str, Objective]
    thresholds: dict[str, Threshold]


def load_thresholds(path: Path = FOLDER / "thresholds.yaml") -> Thresholds:
    """Read the file. Raises KeyError or TypeError where it lacks something or has too much."""
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    objectives = {
        name: Objective(name=name, **fields) for name, fields in content["objectives"].items()
    }
    return Thresholds(
        links=content["links"],
        job=content["selectors"]["job"],
        lookback=content["lookback"],
        objectives=objectives,
        thresholds={
            name: _threshold(name, fields, objectives)
            for name, fields in content["thresholds"].items()
        },
    )


def _threshold(name: str, fields: dict[str, Any], objectives: dict[str, Objective]) -> Threshold:
    """A row of the file; where it counts in budgets, the value follows from the objective."""
    fields = dict(fields)
    if "objective" in fields:
        budget = objectives[fields.pop("objective")].budget
        fields["value"] = round(fields["budgets"] * budget, 9)
    return Threshold(name=name, **fields)
