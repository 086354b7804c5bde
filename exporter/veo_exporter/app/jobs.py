# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room of jobs as the settings say it, and its table at the pace of the event loop."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from veo_exporter.config import Jobs, Logs
from veo_exporter.jobs import PRESETS, Budgets, JobTable, Known, Limits, Moment, parse_budget
from veo_exporter.jobs.step import Step
from veo_exporter.logs import load_rules

ENDED_AT_ONCE: Final = 25
"""A few milliseconds of work: each is counted, logged and traced."""


class PacedTable(JobTable):
    """Thousands of jobs may be lost together: they are ended a few at a time."""

    more_to_end = False
    """Whether the last look stopped before it had seen all jobs."""

    def expire(self, now: Moment) -> Iterator[Step]:
        """End some of those whose time is over."""
        ending = super().expire(now)
        self.more_to_end = True
        steps = 0
        for step in islice(ending, ENDED_AT_ONCE):
            steps += 1
            yield step
        self.more_to_end = steps == ENDED_AT_ONCE


def budgets_of(jobs: Jobs) -> Budgets:
    """Presets, and what is set beside them."""
    presets = [budget for name in jobs.budget_presets for budget in PRESETS[name]]
    return Budgets([*presets, *(parse_budget(*row) for row in jobs.budget_rows())], jobs.lost_after)


def limits_of(jobs: Jobs) -> Limits:
    """How much is kept of jobs."""
    return Limits(
        max_in_flight=jobs.max_in_flight,
        max_ended=jobs.max_in_flight,
        max_event_ids=jobs.max_event_ids,
        remember_seconds=jobs.remember,
    )


def known_of(jobs: Jobs, logs: Logs) -> Known:
    """The label values that are expected. Raises BadConfig if the rules of logs cannot be read."""
    rules = load_rules(logs.rules) if logs.files else ()
    said = [rule.event.get("data") for rule in rules]
    engines = [data.get("engine") for data in said if isinstance(data, dict)]
    return Known(
        engines=jobs.engines,
        models=jobs.models,
        variants=jobs.variants,
        profiles=jobs.profiles,
        # Not those that are filled in from the line: they are known when it comes.
        log_engines=tuple(name for name in engines if isinstance(name, str) and "{" not in name),
        max_names=jobs.max_names,
        max_sets=jobs.max_label_sets,
    )
