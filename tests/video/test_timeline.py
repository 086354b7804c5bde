# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Order, runs and ticks."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.video.synthetic import FINE, MILLISECOND, defects, evenly, packets, report
from veo_exporter.video.definitions import TimingSource, Verdict
from veo_exporter.video.rate import STANDARD_RATES
from veo_exporter.video.timeline import find_keyframes, lay_out

TIME_BASES = [
    Fraction(1, 90000),
    Fraction(1, 12288),
    Fraction(1, 15360),
    Fraction(1, 16000),
    Fraction(1, 1000),
    Fraction(1, 600),
    Fraction(1, 57600),
    Fraction(1, 10**9),
]


@given(
    st.sampled_from(STANDARD_RATES),
    st.sampled_from(TIME_BASES),
    st.integers(24, 200),
    st.integers(-(10**9), 10**9),
)
def test_rounded_timestamps_of_any_rate_are_ok(
    rate: Fraction, time_base: Fraction, count: int, start: int
) -> None:
    interval = 1 / (rate * time_base)
    said = report([start + round(place * interval) for place in range(count)], time_base)
    assert said.verdict is Verdict.OK
    cadence = said.cadence
    assert cadence is not None
    assert abs(cadence.rate / rate - 1) <= Fraction(1, 900)
    assert (cadence.is_constant_rate, cadence.on_grid) == (True, True)
    assert said.duration is not None
    assert abs(said.duration - count / rate) <= 2 * time_base + count / rate / 900


@given(
    st.sampled_from(STANDARD_RATES),
    st.sampled_from(TIME_BASES),
    st.integers(24, 200),
    st.data(),
)
def test_a_frame_taken_out_is_one_gap_in_its_place(
    rate: Fraction, time_base: Fraction, count: int, data: st.DataObject
) -> None:
    interval = 1 / (rate * time_base)
    lost = data.draw(st.integers(1, count - 2))
    ticks = [round(place * interval) for place in range(count) if place != lost]
    said = report(ticks, time_base)
    assert said.cadence is not None
    (gap,) = said.cadence.gaps
    assert (gap.after_frame, gap.missing) == (lost - 1, 1)
    assert gap.at == (ticks[lost - 1] - ticks[0]) * time_base
    assert said.cadence.dropped_frames == 1
    assert said.verdict is Verdict.DEFECTIVE


def test_frames_in_decoding_order_are_sorted() -> None:
    timeline = lay_out(packets([0, 3, 1, 2, 6, 4, 5], [-2, -1, 0, 1, 2, 3, 4]), FINE)
    assert [run.ticks for run in timeline.runs] == [(0, 1, 2, 3, 4, 5, 6)]


def test_matroska_keeps_no_decoding_times_and_is_one_run_all_the_same() -> None:
    shown = [0, 125, 42, 83, 250, 167, 208]
    timeline = lay_out(packets(shown, [None] * 7), MILLISECOND)
    assert len(timeline.runs) == 1
    some = lay_out(packets(shown, [None, None, 0, 42, 83, 125, 167]), MILLISECOND)
    assert some.runs == timeline.runs


def test_a_clock_that_is_set_back_starts_a_new_run() -> None:
    twice = [*evenly(48), *evenly(48)]
    for dts in (None, [None] * 96):
        said = report(packets(twice, dts))
        assert said.cadence is not None
        assert (said.cadence.discontinuities, said.cadence.duplicate_pts) == (1, 0)
        assert said.duration == 4
        assert defects(said) == {"discontinuity"}
        assert said.findings[0].message == "the clock is set back once"


def test_without_presentation_times_decoding_times_are_judged() -> None:
    said = report(packets([None] * 48, evenly(48)))
    assert said.media is not None
    assert (said.media.timing_source, said.verdict) == (TimingSource.DTS, Verdict.OK)


def test_without_any_times_frames_are_counted() -> None:
    said = report(packets([None] * 48, keys=[0, 24]))
    assert said.media is not None
    assert (said.media.timing_source, said.media.frame_count) == (TimingSource.NONE, 48)
    assert (said.cadence, said.duration, said.verdict) == (None, None, Verdict.OK)
    assert said.keyframes is not None
    assert (said.keyframes.frames, said.keyframes.tail_frames) == ((0, 24), 24)


def test_milliseconds_that_a_remuxer_kept_in_a_finer_time_base_stay_milliseconds() -> None:
    fine = lay_out(packets([16 * ticks for ticks in (0, 42, 83, 125)]), Fraction(1, 16000))
    assert fine.tick == 16
    # At 24 a second in 12,288ths all deltas are 512, which is no tick but the interval itself.
    even = lay_out(packets(evenly(10, 512)), Fraction(1, 12288))
    assert even.tick == 1


def test_keyframes_in_order_of_presentation() -> None:
    shown = packets([0, 3750 * 2, 3750, 3750 * 4, 3750 * 3], [-2, -1, 0, 1, 2], keys=[0, 3])
    found = find_keyframes(lay_out(shown, FINE), shown)
    assert found.frames == (0, 4)
    assert found.interval_frames == (4,)
    assert found.intervals == (Fraction(4, 24),)
    assert found.tail_frames == 1


def test_one_frame_has_no_rate_and_no_fault() -> None:
    said = report([0])
    assert (said.cadence, said.verdict) == (None, Verdict.OK)
    assert said.media is not None
    assert said.media.frame_count == 1


def test_frames_all_at_one_time_have_no_rate() -> None:
    assert report([5, 5, 5]).cadence is None
