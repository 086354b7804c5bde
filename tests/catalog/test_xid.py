# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The table of Xids is whole, and a broken one does not get in."""

from typing import Any

import pytest

from veo_exporter.catalog.xid import Action, Tier, parse_xid_table, seeded_xids, xid_table

ROW: dict[str, Any] = {
    "codes": [79],
    "meaning": "gone",
    "tier": "page",
    "action": "reboot_node",
    "cause": "the bus",
}


def test_the_table_has_every_code_that_on_call_meets() -> None:
    wanted = [13, 31, 32, 38, 43, 45, 48, 61, 62, 63, 64, 68, 69, 74, 79, 92, 94, 95, 109, 110]
    wanted += [119, 120, 121, 122, 123, 124, 125, 137, 140, 143, *range(144, 151), 154]
    assert set(wanted) <= set(xid_table())


def test_a_dozen_codes_are_seeded() -> None:
    seeded = seeded_xids()
    assert 12 <= len(seeded) <= 15
    assert {48, 62, 64, 74, 79, 94, 95, 119, 120} <= set(seeded)


def test_what_pages_has_something_to_do() -> None:
    idle = {Action.NONE, Action.RETRY_JOB, Action.FIX_INPUT}
    assert [x.code for x in xid_table().values() if x.tier is Tier.PAGE and x.action in idle] == []


def test_a_row_is_read() -> None:
    xid = parse_xid_table([ROW])[79]
    assert (xid.meaning, xid.tier, xid.action, xid.cause, xid.seed) == (
        "gone",
        Tier.PAGE,
        Action.REBOOT_NODE,
        "the bus",
        False,
    )


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "the table of Xids wants a list of rows"),
        ([{}], "row 1: wants codes, meaning, tier, action, cause"),
        ([ROW | {"sead": True}], "row 1: no such key: sead"),
        ([ROW | {"codes": []}], "row 1: codes: wants a list of whole numbers"),
        ([ROW | {"codes": [True]}], "row 1: codes: wants a list of whole numbers"),
        ([ROW | {"meaning": " "}], "row 1 (Xid 79): meaning: wants words"),
        ([ROW | {"seed": 1}], "row 1 (Xid 79): seed: wants true or false"),
        ([ROW | {"tier": "loud"}], "row 1 (Xid 79): 'loud' is not a valid Tier"),
        ([ROW | {"action": "pray"}], "row 1 (Xid 79): 'pray' is not a valid Action"),
        ([ROW, ROW], "row 2: Xid 79 stands twice"),
        ([ROW | {"codes": [7, 7]}], "row 1: Xid 7 stands twice"),
    ],
)
def test_a_broken_table_is_refused_by_row(content: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_xid_table(content)
    assert str(refused.value) == fault
