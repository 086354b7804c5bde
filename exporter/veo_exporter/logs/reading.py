# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Followed logs, their lines read by rule and handed on as events."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from veo_exporter.catalog import jobs as catalog
from veo_exporter.exposition import Folds
from veo_exporter.logs.follower import Follower
from veo_exporter.logs.lines import Blemish
from veo_exporter.logs.rules import NO_RULE, Rule, event_of_line, read_line

log = structlog.get_logger(__name__)

FAILED: Final = ("log_line", "failed")
DROPPED_SEEDS: Final = (
    *(("log_line", blemish.value) for blemish in Blemish),
    FAILED,
    ("log_file", "too_many"),
    ("log_file", "not_a_file"),
    ("log_file", "unreadable"),
)
"""What this room drops, as (kind, reason)."""
RESTART_CAUSES: Final = ("truncated", "rewritten", "replaced")


@dataclass(frozen=True, slots=True)
class Found:
    """What a look brought: events to be handed on, and counts of everything else."""

    events: tuple[Mapping[str, Any], ...]
    lines: Counter[str]
    """By the rule that they fit."""
    restarts: Counter[str]
    dropped: Counter[tuple[str, str]]
    faults: tuple[str, ...]
    spoilt: tuple[str, ...]
    more: bool
    """Whether the files hold more than was read."""


class LogReading:
    """`look` touches the disk, reads lines by rule, and belongs in a thread; the rest is quick."""

    def __init__(
        self,
        follower: Follower,
        rules: tuple[Rule, ...],
        folds: Folds,
        *,
        event: Callable[[Mapping[str, Any]], None],
        dropped: Callable[[str, str, int], None],
    ) -> None:
        self._follower = follower
        self._rules = rules
        self._event = event
        self._dropped = dropped
        self._told_of_failure = False
        self._lines = folds.counter(
            catalog.LOG_LINES, [(NO_RULE,), *((rule.name,) for rule in rules)]
        )
        self._restarts = folds.counter(catalog.LOG_RESTARTS, [(cause,) for cause in RESTART_CAUSES])

    def look(self, now_monotonic_seconds: float) -> Found:
        """What the files say that is new."""
        gathered = self._follower.look(now_monotonic_seconds)
        lines = Counter[str]()
        events: list[Mapping[str, Any]] = []
        for line in gathered.lines:
            name, event = read_line(self._rules, line.text)
            lines[name] += 1
            if event is not None:
                events.append(event_of_line(event, line.path, line.place))
        return Found(
            tuple(events),
            lines,
            gathered.restarts,
            gathered.dropped,
            tuple(gathered.faults.values()),
            tuple(gathered.spoilt),
            gathered.more,
        )

    def count(self, found: Found) -> None:
        """Count what was found, and say what cannot be followed or read."""
        for name, count in found.lines.items():
            self._lines.labels(name).inc(count)
        for cause, count in found.restarts.items():
            self._restarts.labels(cause).inc(count)
        for (kind, reason), count in found.dropped.items():
            self._dropped(kind, reason, count)
        for sentence in found.faults:
            log.warning("a log cannot be followed", fault=sentence)
        for sentence in found.spoilt:
            log.warning(
                "a line of a log was not read as it stands; further ones are counted",
                fault=sentence,
            )

    def hand_on(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Give events away, each by itself: one that fails costs no other."""
        for event in events:
            try:
                self._event(event)
            except Exception:
                self._dropped(*FAILED, 1)
                if not self._told_of_failure:
                    self._told_of_failure = True
                    log.exception(
                        "a line of a log was lost by a fault of ours", event_id=event["id"]
                    )

    def close(self) -> None:
        """Let go of the files."""
        self._follower.close()
