# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The one judge."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.gpu.readings import State
from veo_exporter.gpu.state import Evidence, judge

WELL: dict[str, Any] = {
    "hung": False,
    "session_code": 0,
    "listed": True,
    "on_bus": True,
    "code": 0,
    "fresh": True,
}


@pytest.mark.parametrize(
    ("evidence", "state", "code"),
    [
        ({}, State.OK, 0),
        ({"code": 15}, State.LOST, 15),
        ({"code": 28}, State.LOST, 28),
        ({"code": 16}, State.RESET_REQUIRED, 16),
        ({"code": 14}, State.UNKNOWN, 14),
        ({"code": 999}, State.UNKNOWN, 999),
        ({"code": None}, State.UNKNOWN, None),
        ({"fresh": False}, State.UNKNOWN, 0),
        # That it is lost does not grow stale.
        ({"code": 15, "fresh": False}, State.LOST, 15),
        ({"listed": False}, State.HIDDEN, None),
        ({"listed": False, "on_bus": False}, State.LOST, None),
        ({"listed": False, "on_bus": None}, State.LOST, None),
        ({"session_code": 9}, State.UNKNOWN, 9),
        ({"session_code": 18, "listed": False}, State.UNKNOWN, 18),
        ({"hung": True}, State.HUNG, None),
        ({"hung": True, "session_code": 9, "code": 15}, State.HUNG, None),
        # A GPU that answers is well even where the bus cannot be read.
        ({"on_bus": None}, State.OK, 0),
    ],
)
def test_verdicts(evidence: dict[str, Any], state: State, code: int | None) -> None:
    assert judge(Evidence(**{**WELL, **evidence})) == (state, code)


@given(
    st.builds(
        Evidence,
        hung=st.booleans(),
        session_code=st.sampled_from([0, 1, 9, 18, 999]),
        listed=st.booleans(),
        on_bus=st.sampled_from([True, False, None]),
        code=st.sampled_from([None, 0, 1, 2, 11, 14, 15, 16, 28, 999, -1, 4242]),
        fresh=st.booleans(),
    )
)
def test_ok_needs_everything_in_its_favour(evidence: Evidence) -> None:
    state, _ = judge(evidence)
    well = (
        not evidence.hung
        and evidence.session_code == 0
        and evidence.listed
        and evidence.code == 0
        and evidence.fresh
    )
    assert (state is State.OK) == well
