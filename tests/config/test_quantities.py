# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Durations: written with a unit, read to the nanosecond, written back the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.config.quantities import format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("100ms", 0.1),
        ("20ms", 0.02),
        ("5s", 5),
        ("1.5s", 1.5),
        ("0.5ms", 0.0005),
        ("0s", 0),
        ("1m", 60),
        ("1m30s", 90),
        ("1h", 3600),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1d2h3m4s5ms", 93_784.005),
        ("0.1s0.2s", 0.3),
    ],
)
def test_a_duration_is_read(written: str, seconds: float) -> None:
    assert parse_duration(written) == seconds


JUNK: tuple[object, ...] = (
    "5", "5 s", " 5s", "5s ", "-5s", "5S", "5sec", "100us", "1e3s", "", "s", ".5s", "5.s", "5s\n",
    "٣s", "1m30", True, None, (), {"s": 5},
)  # fmt: skip
WRITE_IT_SO = "write a number with ms, s, m, h or d, such as 100ms or 1m30s"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (5, "5 has no unit: write 5ms, 5s or 5m"),
        (0.5, "0.5 has no unit: write 0.5ms, 0.5s or 0.5m"),
        *((junk, f"{junk!r} is not a duration: {WRITE_IT_SO}") for junk in JUNK),
        ("9" * 400 + "s", "9" * 40 + " is longer than any duration that makes sense here"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_way_to_write_it(
    written: object, sentence: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(sentence) + "$"):
        parse_duration(written)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.02, "20ms"),
        (0.1, "100ms"),
        (0.0005, "0.5ms"),
        (0, "0ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59, "59s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3661, "1h1m1s"),
        (86_400, "1d"),
        (1234.5678, "1234.5678s"),
        (1_234_567.25, "1234567.25s"),
        (1e-9, "0.000001ms"),
    ],
)
def test_a_duration_is_written_as_one_would(seconds: float, written: str) -> None:
    assert format_duration(seconds) == written


@given(st.integers(0, 4_000_000 * 10**9))
def test_what_is_written_is_read_back(nanoseconds: int) -> None:
    seconds = round(nanoseconds / 1e9, 9)
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h", "d"])),
                min_size=1, max_size=5))  # fmt: skip
def test_the_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    milliseconds = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    whole = sum(number * milliseconds[unit] for number, unit in parts)
    written = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration(written) == whole / 1000


@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.text()))
def test_anything_is_read_or_refused_in_a_sentence(written: object) -> None:
    sentence, seconds = "none", 0.0
    try:
        seconds = parse_duration(written)
    except ValueError as error:
        sentence = str(error)
    assert sentence
    assert seconds >= 0
