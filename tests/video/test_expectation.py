# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What was asked of a file."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.video.expectation import BadExpectation, Expectation, parse_expectation


def test_24_frames_a_second_for_6_2_seconds_are_149() -> None:
    assert parse_expectation("fps=24,duration=6.2").frames == 149


@pytest.mark.parametrize(
    ("fps", "duration", "frames"),
    # In floats the first two come out as 56 and 166.
    [("25", "2.2", 55), ("25", "6.6", 165), ("24", "6", 144), ("24000/1001", "8", 192),
     ("30", "1/30", 1), ("24", "31/5", 149)],
)  # fmt: skip
def test_frames_are_counted_in_fractions(fps: str, duration: str, frames: int) -> None:
    assert parse_expectation(f"fps={fps},duration={duration}").frames == frames


def test_each_part_may_be_left_out() -> None:
    assert parse_expectation("fps=24000/1001") == Expectation(fps=Fraction(24000, 1001))
    assert parse_expectation(" duration=6.2 , keyframe_interval=2") == Expectation(
        duration=Fraction(31, 5), keyframe_interval=Fraction(2)
    )
    assert parse_expectation("duration=6").frames is None


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("", "'' is no expectation: write one or more of fps=24,duration=6.2"),
        ("24", "'24' is no expectation"),
        ("rate=24", "'rate=24' is no expectation"),
        ("fps=24,fps=25", "fps is expected twice"),
        ("fps=fast", "fps=fast: write a number or a fraction, as 24 or 24000/1001"),
        ("fps=1e999999999", "write a number or a fraction"),
        ("fps=-24", "write a number or a fraction"),
        ("fps=0", "must be above 0 and at most 1000"),
        ("fps=24/0", "must be above 0 and at most 1000"),
        ("fps=1001", "must be above 0 and at most 1000"),
        ("duration=100000.1", "must be above 0 and at most 100000"),
    ],
)
def test_what_cannot_be_read_says_how_to_write_it(written: str, sentence: str) -> None:
    with pytest.raises(BadExpectation) as refused:
        parse_expectation(written)
    assert sentence in str(refused.value)


@given(st.text(max_size=40) | st.from_regex(r"(fps|duration)=[0-9/.,=e-]{0,12}", fullmatch=True))
def test_nothing_but_its_own_error_is_raised(written: str) -> None:
    with suppress(BadExpectation):
        parse_expectation(written)
