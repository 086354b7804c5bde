# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Events and whole intakes, made short."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from veo_exporter.exposition import Folds, Format, TextWriter
from veo_exporter.jobs import (
    PRESETS,
    Budgets,
    Event,
    FinishedJob,
    Intake,
    JobFolds,
    JobTable,
    Known,
    Limits,
    Moment,
)
from veo_exporter.jobs.events import parse_event

# 2026-03-01T12:00:00Z
NOON = 1_772_366_400
NANO = 1_000_000_000
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
BUDGETS = Budgets(PRESETS["veo-engine"], 600)


def moment(seconds: float = 0.0) -> Moment:
    """So many seconds after noon, and after 1,000 s on the other clock."""
    return Moment(NOON * NANO + round(seconds * NANO), 1000.0 + seconds)


def written(kind: str, event_id: str = "1", /, **data: Any) -> dict[str, Any]:
    """An event as it is posted; `job`, `time`, `source` and `traceparent` stand beside the data."""
    said = {
        "specversion": "1.0",
        "id": event_id,
        "source": data.pop("source", "worker/1"),
        "type": kind if kind.startswith("veo.") else f"veo.job.{kind}",
        "subject": data.pop("job", "job-1"),
        "time": data.pop("time", None),
        "traceparent": data.pop("traceparent", None),
        "data": data,
    }
    return {key: value for key, value in said.items() if value is not None}


def event(kind: str, event_id: str = "1", at: float = 0.0, /, **data: Any) -> Event:
    """The same as it is read, so many seconds after noon."""
    parsed = parse_event(written(kind, event_id, **data), moment(at), anonymous=True)
    assert isinstance(parsed, Event), parsed
    return parsed


class Clock:
    """Time that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def unix_seconds(self) -> float:
        return NOON + self.seconds

    def monotonic_seconds(self) -> float:
        return 1000.0 + self.seconds


class Desk:
    """An intake with everything behind it, and what it told."""

    def __init__(
        self,
        limits: Limits | None = None,
        known: Known | None = None,
        gpus: Mapping[str, str] | None = None,
        budgets: Budgets = BUDGETS,
        hand_on: Callable[[Event], None] | None = None,
    ) -> None:
        self.clock = Clock()
        self.finished: list[FinishedJob] = []
        self.handed_on: list[Event] = []
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.folds = Folds()
        self.job_folds = JobFolds(
            self.folds,
            known or Known(engines=("veo-engine",)),
            trace_of=lambda job: (
                {"trace_id": job.traceparent.split("-")[1]} if job.traceparent else None
            ),
            dropped=lambda label: self.dropped.update([("job_label", label)]),
        )
        self.table = JobTable(
            limits or Limits(),
            budgets,
            self.clock.monotonic_seconds(),
            gpu_uuid=(gpus or {}).get,
        )
        self.intake = Intake(
            self.table,
            self.job_folds,
            self.clock,
            finished=self.finished.append,
            dropped=lambda kind, reason: self.dropped.update([(kind, reason)]),
            hand_on=hand_on or self.handed_on.append,
        )

    def page(self, form: Format = Format.TEXT) -> dict[str, float]:
        """Series that are not zero, by the text before the value."""
        lines = self.text(form).splitlines()
        values = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in values if float(value)}

    def text(self, form: Format = Format.TEXT) -> str:
        return TextWriter(form).write(self.folds.families(0))


def series(name: str, **labels: str) -> str:
    """A series of a job of veo-engine as the page writes it."""
    all_labels = {
        "engine": "veo-engine",
        "model": "unknown",
        "variant": "none",
        "profile": "other",
    } | labels
    return (
        name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(all_labels.items())) + "}"
    )
