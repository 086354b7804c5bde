# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Trace context as callers send it, whole and broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.examples import NOON, PARENT_ID, TRACE_ID, TRACEPARENT
from veo_exporter.traces.context import TraceContext, derive_span_id, identify, parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        # The bit for random ids, which newer SDKs set, says nothing of sampling.
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"00-{TRACE}-{SPAN}-02", False),
        (f"00-{TRACE}-{SPAN}-ff", True),
        (f"  00-{TRACE}-{SPAN}-01\r\n", True),
        # Later versions may say more.
        (f"01-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-holds", True),
    ],
)
def test_a_traceparent_is_read(header: str, sampled: bool) -> None:
    assert parse_traceparent(header) == TraceContext(TRACE_ID, PARENT_ID, sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "hello",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-001",
        f"00-{TRACE}-{SPAN}-01-more",
        f"cc-{TRACE}-{SPAN}-01more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-{TRACE}{SPAN}-01",
        f"00-{TRACE}-{SPAN}-٠١",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 10_000,
    ],
)
def test_a_broken_traceparent_is_told(header: str) -> None:
    assert parse_traceparent(header) is None
    identity = identify("s", "job", NOON, header)
    assert identity.parent is None
    assert identity.broken is bool(header)
    assert identity.trace_id not in (0, TRACE_ID)
    assert identity.sampled


def test_a_job_lives_in_its_callers_trace() -> None:
    identity = identify("s", "job", NOON, TRACEPARENT)
    assert identity.trace_id == TRACE_ID
    assert identity.span_id not in (0, PARENT_ID)
    assert identity.parent == TraceContext(TRACE_ID, PARENT_ID, True)
    assert not identity.broken


def test_ids_are_the_same_each_time_and_different_for_each_job() -> None:
    jobs = [
        ("s", "a", NOON, ""),
        ("s", "b", NOON, ""),
        ("t", "a", NOON, ""),
        ("s", "a", NOON + 1, ""),
        ("sa", "", NOON, ""),
    ]
    identities = {identify(*job) for job in jobs}
    assert identities == {identify(*job) for job in jobs}
    assert len({identity.trace_id for identity in identities}) == len(jobs)
    assert len({identity.span_id for identity in identities}) == len(jobs)


@pytest.mark.parametrize("flags", ["00", "01"])
def test_a_span_names_itself_as_it_is_read(flags: str) -> None:
    header = f"00-{TRACE}-{SPAN}-{flags}"
    span = parse_traceparent(header)
    assert span is not None
    assert span.as_traceparent() == header
    own = identify("s", "job", NOON, header).own
    assert (own.trace_id, own.sampled) == (TRACE_ID, flags == "01")
    assert parse_traceparent(own.as_traceparent()) == own


def test_an_exemplar_spells_the_ids_out() -> None:
    exemplar = identify("s", "job", NOON, TRACEPARENT).as_exemplar()
    assert exemplar["trace_id"] == TRACE
    assert len(exemplar["span_id"]) == 16
    assert sum(map(len, [*exemplar, *exemplar.values()])) <= 128


@given(st.text())
def test_no_text_raises(text: str) -> None:
    parse_traceparent(text)
    identity = identify(text, text, NOON, text)
    assert 0 < identity.trace_id < 2**128
    assert 0 < identity.span_id < 2**64


def test_half_a_surrogate_pair_is_an_id_like_another() -> None:
    assert identify("s", "\ud800", NOON, "") != identify("s", "?", NOON, "")
    assert derive_span_id(1, "\ud800", 0) != derive_span_id(1, "\ud800", 1)
