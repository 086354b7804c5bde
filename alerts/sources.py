# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Rules as they are written in source/, with the names of thresholds still in them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from alerts.thresholds import FOLDER

IDENTITY: Final = "job, instance, node, gpu, uuid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording rule."""

    record: str
    expr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alerting rule."""

    alert: str
    expr: str
    action: str
    about: str
    """gpu, node, engine, job, video or fleet: which labels it carries beside its own."""
    dashboard: str
    summary: str
    description: str
    severity: str | None = None
    """Left out where the threshold says it."""
    threshold: str | None = None
    keep_firing_for: str | None = None
    hold: str | None = None
    """Prometheus' "for"."""


LABELS_ABOUT: Final = {
    "gpu": ("node", "gpu", "uuid"),
    "node": ("node",),
    "engine": ("engine",),
    "job": ("engine", "model"),
    "video": ("source", "engine"),
    "fleet": (),
}
"""Labels that every alert about such a thing carries; inhibition and links lean on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated one after the other."""

    name: str
    rules: tuple[Recording | Alert, ...]


def dcgm_series(metric: str) -> str:
    """A series of dcgm-exporter under our labels.

    Its UUID is uuid here; its node is the scrape's, else its own host name, in either spelling.
    """
    return (
        "label_replace(label_replace(label_join("
        f'{metric}{{GPU_I_ID=""}}, "host", ";", "node", "hostname", "Hostname"), '
        '"node", "$1", "host", ";+([^;]+).*"), "uuid", "$1", "UUID", "(.+)")'
    )


def load_groups(folder: Path = FOLDER / "source") -> tuple[Group, ...]:
    """All groups of all source files: what is recorded first, then by name."""
    return tuple(
        Group(name=group["name"], rules=tuple(_rules(group)))
        for path in sorted(folder.glob("*.yaml"), key=_order)
        for group in yaml.safe_load(path.read_text())["groups"]
    )


def _order(path: Path) -> tuple[bool, str]:
    return (not path.stem.endswith("recording"), path.name)


def _rules(group: dict[str, Any]) -> Iterator[Recording | Alert]:
    for row in group.get("normalise", ()):
        yield Recording(record=row["record"], expr=_normalised(row))
    for rule in group.get("rules", ()):
        if "record" in rule:
            yield Recording(**rule)
        else:
            yield Alert(**{"hold" if key == "for" else key: value for key, value in rule.items()})


def _normalised(row: dict[str, str]) -> str:
    scale = row.get("dcgm_scale", "")
    return (
        f"max by ({IDENTITY}) ({row['ours']}{{<<job>>}})\n"
        "or on (uuid)\n"
        f"max by ({IDENTITY}) (\n"
        f"  {dcgm_series(row['dcgm'])} {scale}".rstrip()
        + "\n)\n"
    )
