# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Both sides of every line. At 1/90,000 s a frame at 24 a second is 3,750 ticks, 0.5 ms are 45."""

from fractions import Fraction

import pytest

from tests.video.synthetic import FINE, MILLISECOND, defects, evenly, packets, report
from veo_exporter.video.definitions import Asked, Thresholds, Verdict, VideoReport
from veo_exporter.video.expectation import Expectation, parse_expectation

ASKED = parse_expectation("fps=24,duration=6.2")


def shifted(count: int, place: int, by: int) -> list[int]:
    """An even film, of which everything from a frame on comes later."""
    return [ticks + by * (number >= place) for number, ticks in enumerate(evenly(count))]


def moved(count: int, by: dict[int, int]) -> list[int]:
    """An even film with single frames off their places."""
    return [ticks + by.get(number, 0) for number, ticks in enumerate(evenly(count))]


def good_deltas(said: VideoReport) -> int:
    assert said.cadence is not None
    return said.cadence.good_deltas


def test_what_came_as_asked_is_ok() -> None:
    said = report(evenly(149), expectation=ASKED)
    assert (said.verdict, said.findings, said.duration) == (Verdict.OK, (), Fraction(149, 24))
    assert said.asked == Asked(
        fps=Fraction(24),
        duration=Fraction(31, 5),
        frames=149,
        frames_missing=0,
        frame_count_ok=True,
        duration_ok=True,
        fps_ok=True,
        drift=Fraction(0),
        drift_ok=True,
        shortfall=Fraction(0),
    )


@pytest.mark.parametrize(("ticks_late", "good"), [(45, 148), (46, 147)])
def test_a_delta_is_good_up_to_half_a_millisecond(ticks_late: int, good: int) -> None:
    assert good_deltas(report(shifted(149, 75, ticks_late))) == good


def test_rounding_to_the_containers_clock_is_no_deviation() -> None:
    # 42, 41, 42 ms: bare, every third is 0.67 ms off.
    said = report(evenly(149, Fraction(1000, 24)), MILLISECOND, expectation=ASKED)
    assert said.verdict is Verdict.OK
    assert said.cadence is not None
    assert said.cadence.max_deviation_net == 0
    assert said.cadence.max_deviation_raw == Fraction(2, 3000)


@pytest.mark.parametrize(("bad", "expected"), [(1, set()), (2, {"low_consistency"})])
def test_consistency_may_fall_to_99_in_100(bad: int, expected: set[str]) -> None:
    # 101 frames, 100 deltas; each shift makes one delta 2 ms too long.
    ticks = [
        ticks + 180 * sum(number >= place for place in (30, 60)[:bad])
        for number, ticks in enumerate(evenly(101))
    ]
    said = report(ticks)
    assert said.cadence is not None
    assert said.cadence.consistency == Fraction(100 - bad, 100)
    assert defects(said) == expected
    assert said.verdict is (Verdict.DEGRADED if expected else Verdict.OK)


@pytest.mark.parametrize(("delta", "gaps"), [(5625, 0), (5626, 1)])
def test_a_gap_is_longer_than_one_and_a_half_intervals(delta: int, gaps: int) -> None:
    said = report(shifted(149, 72, delta - 3750))
    assert said.cadence is not None
    assert said.cadence.gap_count == gaps
    assert said.cadence.dropped_frames == gaps
    assert ("gap" in defects(said)) is bool(gaps)


def test_a_dropped_frame_is_named_with_its_place() -> None:
    ticks = evenly(149)
    del ticks[72]
    said = report(ticks, expectation=ASKED)
    assert [finding.message for finding in said.findings] == [
        "1 frame missing of the 149 asked for",
        "1 frame missing after frame 71 at 2.958 s",
    ]
    assert said.verdict is Verdict.DEFECTIVE


def test_a_gap_of_several_frames_and_several_gaps() -> None:
    ticks = evenly(149)
    del ticks[100:103], ticks[72]
    said = report(ticks)
    assert said.cadence is not None
    assert (said.cadence.gap_count, said.cadence.dropped_frames) == (2, 4)
    assert said.findings[0].message == "1 frame missing after frame 71 at 2.958 s, and 1 more gap"


def test_a_film_that_stops_at_6_seconds_of_6_2() -> None:
    said = report(evenly(144), expectation=ASKED)
    assert said.verdict is Verdict.DEFECTIVE
    assert defects(said) == {"frames_missing"}
    asked = said.asked
    assert asked is not None
    assert (asked.frames_missing, asked.shortfall) == (5, Fraction(1, 5))
    assert (asked.frame_count_ok, asked.duration_ok) == (False, False)
    assert said.findings[0].message == "5 frames missing of the 149 asked for, 0.200 s short"


@pytest.mark.parametrize(
    ("frames", "expected"),
    [(148, {"frames_missing"}), (149, set()), (150, {"extra_frames"})],
)
def test_frames_are_counted_against_what_was_asked(frames: int, expected: set[str]) -> None:
    assert defects(report(evenly(frames), expectation=ASKED)) == expected


def test_a_duration_alone_is_judged_at_the_rate_that_came() -> None:
    asked = Expectation(duration=Fraction(31, 5))
    assert report(evenly(149), expectation=asked).verdict is Verdict.OK
    assert defects(report(evenly(144), expectation=asked)) == {"frames_missing"}


@pytest.mark.parametrize(("ticks_early", "duplicates"), [(3749, 0), (3750, 1)])
def test_two_frames_at_one_time_are_duplicates(ticks_early: int, duplicates: int) -> None:
    said = report(moved(149, {50: -ticks_early}))
    assert said.cadence is not None
    assert said.cadence.duplicate_pts == duplicates
    assert ("duplicate_timestamps" in defects(said)) is bool(duplicates)
    if duplicates:
        assert said.cadence.first_duplicate == 50


@pytest.mark.parametrize(("delta", "short"), [(1875, 0), (1874, 1)])
def test_a_short_delta_is_under_half_an_interval(delta: int, short: int) -> None:
    said = report(moved(149, {50: delta - 3750}))
    assert said.cadence is not None
    assert said.cadence.short_deltas == short
    assert ("short_deltas" in defects(said)) is bool(short)


@pytest.mark.parametrize(("ticks", "late"), [(4500, False), (4501, True)])
def test_jitter_may_be_50_milliseconds(ticks: int, late: bool) -> None:
    # In steps of less than half an interval, so that each delta still counts as one frame.
    by: dict[int, int] = {}
    for start, off in ((60, 1125), (70, 2250), (80, 1125), (100, -1125), (110, 2250 - ticks)):
        by |= dict.fromkeys(range(start, start + 10), off)
    by |= dict.fromkeys(range(120, 130), -1125)
    said = report(moved(300, by))
    assert said.cadence is not None
    assert said.cadence.jitter == ticks * FINE
    assert ("jitter" in defects(said)) is late


def test_small_unevenness_on_the_grid_is_said() -> None:
    # Single frames 0.4 ms early and the next 0.4 ms late: 0.8 ms between them, both on the grid.
    said = report(moved(401, {50: -36, 51: 36}))
    assert said.cadence is not None
    assert (said.cadence.is_constant_rate, said.cadence.on_grid) == (False, True)
    assert (said.verdict, defects(said)) == (Verdict.DEGRADED, {"uneven_rate"})


@pytest.mark.parametrize(("ticks", "drifts"), [(45, False), (46, True)])
def test_drift_may_be_half_a_millisecond(ticks: int, drifts: bool) -> None:
    late = [place * 3750 + place * ticks // 148 for place in range(149)]
    said = report(late, expectation=ASKED)
    assert said.asked is not None
    assert said.asked.drift == ticks * FINE
    assert defects(said) == ({"drift"} if drifts else set())


@pytest.mark.parametrize(("rate", "same"), [("24", True), ("24.01", True), ("24000/1001", False)])
def test_a_rate_is_another_one_beyond_a_twentieth_of_a_percent(rate: str, same: bool) -> None:
    said = report(
        evenly(149, Fraction(90000) / Fraction(rate)), expectation=Expectation(fps=Fraction(24))
    )
    assert said.asked is not None
    assert said.asked.fps_ok is same
    assert ("wrong_rate" in defects(said)) is not same


@pytest.mark.parametrize(
    ("declared", "verdict", "expected"),
    [
        (149, Verdict.OK, set()),
        (150, Verdict.DEFECTIVE, {"truncated"}),
        (148, Verdict.DEGRADED, {"header_mismatch"}),
        (None, Verdict.OK, set()),
    ],
)
def test_the_header_is_held_against_what_came(
    declared: int | None, verdict: Verdict, expected: set[str]
) -> None:
    said = report(evenly(149), declared_frames=declared)
    assert (said.verdict, defects(said)) == (verdict, expected)


def test_a_header_counts_the_frames_that_an_edit_list_hides() -> None:
    said = report(packets(evenly(36), hidden=12), declared_frames=48)
    assert said.verdict is Verdict.OK
    assert said.media is not None
    assert said.media.frame_count == 36


@pytest.mark.parametrize(
    "complaint", ["film.mkv: File ended prematurely", "stream 0, partial file"]
)
def test_a_complaint_of_a_cut_off_file_is_believed(complaint: str) -> None:
    said = report(evenly(149), complaints=(complaint,))
    assert (defects(said), said.warnings) == ({"truncated"}, (complaint,))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [((0, 48, 96, 144), set()), ((0, 49, 96, 144), {"keyframe_interval"}),
     ((0, 48, 96), {"keyframe_interval"}), ((0, 48, 101), {"keyframe_interval"})],
)  # fmt: skip
def test_keyframes_are_judged_against_what_was_stated(
    keys: tuple[int, ...], expected: set[str]
) -> None:
    said = report(
        packets(evenly(149), keys=keys), expectation=Expectation(keyframe_interval=Fraction(2))
    )
    assert defects(said) == expected
    assert report(packets(evenly(149), keys=keys)).verdict is Verdict.OK


def test_thresholds_are_settings() -> None:
    ticks = evenly(149)
    del ticks[72]
    said = report(ticks, thresholds=Thresholds(gap_intervals=Fraction(5, 2)))
    # Still on the grid, and still not even.
    assert (said.verdict, defects(said)) == (Verdict.DEGRADED, {"uneven_rate"})


def test_24_and_23_976_are_told_apart_in_six_seconds() -> None:
    for rate in (Fraction(24), Fraction(24000, 1001)):
        for base in (FINE, MILLISECOND):
            said = report(evenly(149, 1 / (rate * base)), base)
            assert said.cadence is not None
            assert said.cadence.rate == rate
