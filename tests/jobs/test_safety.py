# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Timeouts under three times what the stages may take."""

from typing import Any

import pytest

from veo_exporter.config import Jobs
from veo_exporter.jobs import unsafe_timeouts


def told(**jobs: Any) -> list[str]:
    return list(unsafe_timeouts(Jobs.model_validate(jobs)))


def test_the_defaults_are_safe() -> None:
    # Render 6.8 s and prompt 25 ms: three times that is 20.475 s, and 90 s are allowed.
    assert told() == []


@pytest.mark.parametrize(("request_", "unsafe"), [("20474ms", True), ("20475ms", False)])
def test_both_sides_of_three_times(request_: str, unsafe: bool) -> None:
    sentences = told(budgets=[f"veo-engine/*/request={request_}"])
    wanted = (
        "jobs.budgets: veo-engine/*/request=20.474s is under three times the 6.825s that its stages may "
        "take: jobs that are merely slow end as timeouts; from 20.475s on it is safe"
    )
    assert sentences == ([wanted] if unsafe else [])


def test_silence_is_held_against_the_longest_stage() -> None:
    assert told(lost_after="20s") == [
        (
            "jobs.lost_after: 20s is under three times the 6.8s that its longest stage may take: jobs that are "
            "merely silent count as lost; from 20.4s on it is safe"
        )
    ]
    assert told(budgets=["veo-engine/*/lost=20s"]) == [
        (
            "jobs.budgets: veo-engine/*/lost=20s is under three times the 6.8s that its longest stage may take: "
            "jobs that are merely silent count as lost; from 20.4s on it is safe"
        )
    ]
    assert told(lost_after="20400ms") == []


def test_what_is_not_known_is_not_judged() -> None:
    assert told(budget_presets=[], budgets=["e/*/request=1s"], lost_after="1s") == []
    assert told(budget_presets=[], budgets=["e/*/request=1s", "f/*/render=10s"]) == []


def test_rows_of_engine_and_model_meet() -> None:
    # A job of e with m has both: 3 x 10 s is more than 29 s.
    rows = ["e/*/render=10s", "*/m/request=29s"]
    (sentence,) = told(budget_presets=[], budgets=rows)
    assert sentence.startswith("jobs.budgets: */m/request=29s is under three times the 10s ")


def test_the_row_that_holds_is_the_one_that_counts() -> None:
    rows = ["e/*/render=10s", "e/m/render=1s", "e/*/request=30s", "e/m/request=3s"]
    assert told(budget_presets=[], budgets=rows) == []
    rows = ["e/*/render=1s", "e/m/render=10s", "e/*/request=29s"]
    (sentence,) = told(budget_presets=[], budgets=rows)
    assert "e/*/request=29s" in sentence


def test_thirds_in_binary_are_no_fault() -> None:
    rows = ["e/*/render=100ms", "e/*/request=300ms"]
    assert told(budget_presets=[], budgets=rows) == []
