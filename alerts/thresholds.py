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

    @property
    def least_samples(self) -> int:
        """How many samples its window must hold: all but each fourth scrape."""
        if self.window is None:
            return 0
        scrapes = seconds_in(self.window) // SCRAPE_INTERVAL_SECONDS
        return scrapes - scrapes // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Everything in the file."""

    links: dict[str, str]
    job: str
    lookback: str
    thresholds: dict[str, Threshold]


def load_thresholds(path: Path = FOLDER / "thresholds.yaml") -> Thresholds:
    """Read the file. Raises KeyError or TypeError where it lacks something or has too much."""
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return Thresholds(
        links=content["links"],
        job=content["selectors"]["job"],
        lookback=content["lookback"],
        thresholds={
            name: Threshold(name=name, **fields) for name, fields in content["thresholds"].items()
        },
    )
