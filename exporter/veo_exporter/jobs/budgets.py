# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How long a job and its stages may take, by engine and model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from veo_client.vocabulary import Stage

REQUEST: Final = "request"
"""The whole of a job, from its first word: our deadline."""
LOST: Final = "lost"
"""Silence after which a job counts as lost."""
ANY: Final = "*"
MOST_FOUND: Final = 10_000
"""Answers that are kept; whoever sends events may name any engine."""


@dataclass(frozen=True, slots=True)
class Budget:
    """So many seconds for a stage, `request` or `lost`; engine and model may be `*`."""

    engine: str
    model: str
    part: str
    seconds: float


PRESETS: Final[Mapping[str, tuple[Budget, ...]]] = {
    # The first users' numbers. Prompt parsing is slow from 15 ms on, which is a bucket of the stage
    # histogram, and over its budget from 25 ms on.
    "veo-engine": (
        Budget("veo-engine", ANY, Stage.RENDER.value, 6.8),
        Budget("veo-engine", ANY, Stage.PROMPT.value, 0.025),
        Budget("veo-engine", ANY, REQUEST, 90.0),
    )
}


def parse_budget(written: str, seconds: float) -> Budget:
    """A budget from `engine/model/part` and its seconds."""
    engine, model, part = written.split("/")
    return Budget(engine, model, part, seconds)


class Budgets:
    """The budgets in force; where several fit, the one said most exactly, and last, holds."""

    def __init__(self, budgets: Iterable[Budget], lost_after_seconds: float) -> None:
        self._budgets = {(budget.engine, budget.model, budget.part): budget for budget in budgets}
        self._lost_after_seconds = lost_after_seconds
        # Each job in flight is asked about each second.
        self._found: dict[tuple[str, str, str], Budget | None] = {}

    def of(self, engine: str, model: str, part: str) -> float | None:
        """Seconds, or None if there is no limit."""
        if (budget := self.row_of(engine, model, part)) is not None:
            return budget.seconds
        return self._lost_after_seconds if part == LOST else None

    def row_of(self, engine: str, model: str, part: str) -> Budget | None:
        """The row that holds, if one was written for it."""
        asked = (engine, model, part)
        if asked not in self._found:
            if len(self._found) >= MOST_FOUND:
                self._found.clear()
            places = (asked, (engine, ANY, part), (ANY, model, part), (ANY, ANY, part))
            rows = (self._budgets[place] for place in places if place in self._budgets)
            self._found[asked] = next(rows, None)
        return self._found[asked]

    def lost_after(self, engine: str, model: str) -> float:
        """Every job has this one."""
        seconds = self.of(engine, model, LOST)
        return self._lost_after_seconds if seconds is None else seconds
