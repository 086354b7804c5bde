# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Timeouts that would end jobs which are merely slow, told before they do. Pure."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Final

from veo_client.vocabulary import Stage
from veo_exporter.config import Jobs, format_duration
from veo_exporter.jobs.budgets import ANY, LOST, PRESETS, REQUEST, Budget, Budgets, parse_budget

SAFE_MULTIPLE: Final = 3
"""Of what is expected: a timeout below that hits the slow tail of healthy jobs."""


def unsafe_timeouts(jobs: Jobs) -> Iterator[str]:
    """A sentence for each timeout that is too tight for the stages whose budgets are known."""
    presets = [budget for name in jobs.budget_presets for budget in PRESETS[name]]
    rows = [*presets, *(parse_budget(*row) for row in jobs.budget_rows())]
    budgets = Budgets(rows, jobs.lost_after)
    engines = dict.fromkeys([ANY, *(row.engine for row in rows)])
    models = dict.fromkeys([ANY, *(row.model for row in rows)])
    # The same rows hold for many an engine and model, and are told once.
    told = dict.fromkeys(
        sentence
        for engine, model in product(engines, models)
        for sentence in _of_one(budgets, engine, model, jobs.lost_after)
    )
    yield from told


def _of_one(budgets: Budgets, engine: str, model: str, lost_after_seconds: float) -> Iterator[str]:
    stages = [row.seconds for stage in Stage if (row := budgets.row_of(engine, model, stage.value))]
    if not stages:
        return
    request, lost = (budgets.row_of(engine, model, part) for part in (REQUEST, LOST))
    whole = math.fsum(stages)
    if request and _too_tight(request.seconds, whole):
        yield (
            f"{_name(request)} is under three times the {_seconds(whole)} that its stages may take: "
            f"jobs that are merely slow end as timeouts; from {_seconds(SAFE_MULTIPLE * whole)} on it is safe"
        )
    longest = max(stages)
    silence = lost.seconds if lost else lost_after_seconds
    if _too_tight(silence, longest):
        name = _name(lost) if lost else f"jobs.lost_after: {_seconds(silence)}"
        yield (
            f"{name} is under three times the {_seconds(longest)} that its longest stage may take: "
            f"jobs that are merely silent count as lost; from {_seconds(SAFE_MULTIPLE * longest)} on it is safe"
        )


def _too_tight(timeout_seconds: float, expected_seconds: float) -> bool:
    # To the nanosecond: 3 x 0.1 is not 0.3 in binary.
    return round(timeout_seconds - SAFE_MULTIPLE * expected_seconds, 9) < 0


def _seconds(seconds: float) -> str:
    return format_duration(round(seconds, 9))


def _name(budget: Budget) -> str:
    place = f"{budget.engine}/{budget.model}/{budget.part}"
    return f"jobs.budgets: {place}={_seconds(budget.seconds)}"
