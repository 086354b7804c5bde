# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Followed logs, their lines read by rule and handed on as events."""

from collections.abc import Callable
from typing import Any, Final

import structlog

from veo_exporter.catalog import jobs as catalog
from veo_exporter.exposition import Folds
from veo_exporter.logs.follower import Follower, Gathered
from veo_exporter.logs.rules import NO_RULE, Rule, event_of_line, read_line

log = structlog.get_logger(__name__)

DROPPED_SEEDS: Final = (
    ("log_line", "cut"),
    ("log_file", "too_many"),
    ("log_file", "not_a_file"),
    ("log_file", "unreadable"),
)
"""What this room drops, as (kind, reason)."""
RESTART_CAUSES: Final = ("truncated", "rewritten", "replaced")


class LogReading:
    """Looks and folds. `look` touches the disk and may run in a thread; `fold` is quick."""

    def __init__(
        self,
        follower: Follower,
        rules: tuple[Rule, ...],
        folds: Folds,
        *,
        event: Callable[[dict[str, Any]], None],
        dropped: Callable[[str, str, int], None],
    ) -> None:
        self._follower = follower
        self._rules = rules
        self._event = event
        self._dropped = dropped
        self._lines = folds.counter(
            catalog.LOG_LINES, [(NO_RULE,), *((rule.name,) for rule in rules)]
        )
        self._restarts = folds.counter(catalog.LOG_RESTARTS, [(cause,) for cause in RESTART_CAUSES])

    def look(self, now_monotonic_seconds: float) -> Gathered:
        """What the files say that is new."""
        return self._follower.look(now_monotonic_seconds)

    def fold(self, gathered: Gathered) -> None:
        """Read the lines by rule, hand on the events they mean, count the rest."""
        for line in gathered.lines:
            name, event = read_line(self._rules, line.text)
            self._lines.labels(name).inc()
            if event is not None:
                self._event(event_of_line(event, line.path, line.place))
        for cause, count in gathered.restarts.items():
            self._restarts.labels(cause).inc(count)
        for (kind, reason), count in gathered.dropped.items():
            self._dropped(kind, reason, count)
        for sentence in gathered.faults.values():
            log.warning("a log cannot be followed", fault=sentence)

    def close(self) -> None:
        """Let go of the files."""
        self._follower.close()
