# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is kept of one GPU."""

import pytest

from tests.gpu.conftest import device_of, reading_of
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.account import Folding
from veo_exporter.gpu.encoder import SESSIONS_BY_CODEC
from veo_exporter.gpu.readings import Cadence, Failure, Raw, Signal, WhyNot
from veo_exporter.gpu.record import HANGS_FORGIVEN_AFTER_SECONDS, Record

FOLDING = Folding(window_seconds=30, longest_step_seconds=3)


@pytest.fixture
def record() -> Record:
    record = Record(
        subject="GPU-1", index=0, uuid="GPU-1", pci_bus_id="0000:01:00.0", folding=FOLDING
    )
    record.found(device_of("GPU-1", 0))
    return record


def test_nothing_is_known_before_the_first_reading(record: Record) -> None:
    assert record.code is None
    assert record.newest is None
    assert record.answers
    assert record.statistics() == {}


def test_a_group_takes_the_place_of_its_elder(record: Record) -> None:
    record.fold(reading_of(Cadence.FAST, 1000, values={catalog.POWER: 1.0}))
    record.fold(reading_of(Cadence.FULL, 1000.5, values={catalog.ENERGY: 5.0}))
    record.fold(reading_of(Cadence.FAST, 1001, values={catalog.POWER: 2.0}))
    assert record.readings[Cadence.FAST].values == {catalog.POWER: 2.0}
    assert record.readings[Cadence.FULL].values == {catalog.ENERGY: 5.0}
    assert record.newest is record.readings[Cadence.FAST]


def test_a_gpu_that_is_lost_keeps_no_value_of_any_group(record: Record) -> None:
    record.fold(reading_of(Cadence.STATIC, 1000, values={catalog.POWER_LIMIT: 700.0}))
    record.fold(reading_of(Cadence.FAST, 1001, code=15))
    assert set(record.readings) == {Cadence.FAST}
    assert record.code == 15
    assert not record.answers


@pytest.mark.parametrize("code", [15, 16, 28])
@pytest.mark.parametrize("silent", [Cadence.FAST, Cadence.FULL])
def test_a_group_that_finds_the_gpu_gone_holds_until_it_answers(
    record: Record, code: int, silent: Cadence
) -> None:
    values: dict[Cadence, dict[Signal, float]] = {
        Cadence.FAST: {catalog.POWER: 1.0, catalog.UTILIZATION: 1.0},
        Cadence.FULL: {catalog.ENERGY: 5.0},
        Cadence.STATIC: {catalog.POWER_LIMIT: 700.0},
    }
    at = 1000.0
    for cadence in Cadence:
        record.fold(reading_of(cadence, at, values=values[cadence]))
    busy = record.account.sampled().seconds
    for _ in range(3):
        at += 2
        # As after each look-up: all groups are asked.
        for cadence in Cadence:
            told = reading_of(cadence, at, code=code) if cadence is silent else None
            record.fold(told or reading_of(cadence, at, values=values[cadence]))
            if told or at > 1002:
                assert (record.code, record.answers) == (code, False)
                assert record.readings_shown == ()
                assert record.statistics() == {}
    # Only what the fast group said before the full one first failed was counted.
    assert record.account.sampled().seconds[catalog.UTILIZATION] == busy[catalog.UTILIZATION] + (
        2.0 if silent is Cadence.FULL else 0.0
    )
    for cadence in Cadence:
        record.fold(reading_of(cadence, at + 1, values=values[cadence]))
    assert (record.code, record.answers) == (0, True)
    assert len(record.readings_shown) == 3


def test_neither_a_new_session_nor_a_failed_look_up_brings_it_back(record: Record) -> None:
    record.fold(reading_of(Cadence.FULL, 1000, code=15))
    record.gone()
    record.found(device_of("GPU-1", 0))
    record.fold(reading_of(Cadence.FAST, 1005, values={catalog.POWER: 1.0}))
    assert record.code == 15
    record.fold(reading_of(Cadence.FULL, 1005, values={catalog.ENERGY: 1.0}))
    assert record.code == 0


def test_the_end_of_a_session_is_told_by_no_group_of_the_next(record: Record) -> None:
    record.fold(reading_of(Cadence.FULL, 1000, code=1))
    record.gone()
    assert record.code is None


def test_a_gpu_that_is_found_again_keeps_its_sources(record: Record) -> None:
    assert record.device is not None
    record.device.bookmarks.sources[catalog.ENERGY,] = 1
    again = device_of("GPU-1", 0)
    record.found(again)
    assert again.bookmarks.sources == {(catalog.ENERGY,): 1}
    # The next session knows other ones, perhaps of another driver.
    record.gone()
    anew = device_of("GPU-1", 0)
    record.found(anew)
    assert anew.bookmarks.sources == {}


def test_a_codec_has_a_row_from_its_first_session_on(record: Record) -> None:
    h264, hevc, _av1 = SESSIONS_BY_CODEC

    def shown(at: float, **sessions: float) -> dict[Signal, float]:
        values: dict[Signal, float] = {
            {"h264": h264, "hevc": hevc}[codec]: count for codec, count in sessions.items()
        }
        record.fold(reading_of(Cadence.FULL, at, values={catalog.ENERGY: 5.0, **values}))
        return dict(record.readings[Cadence.FULL].values)

    assert shown(1000, h264=0, hevc=0) == {catalog.ENERGY: 5.0}
    assert shown(1005, h264=2, hevc=0) == {catalog.ENERGY: 5.0, h264: 2}
    assert shown(1010, h264=0, hevc=1) == {catalog.ENERGY: 5.0, h264: 0, hevc: 1}
    # What failed is not 0.
    assert shown(1015) == {catalog.ENERGY: 5.0}
    record.gone()
    assert shown(1020, h264=0, hevc=0) == {catalog.ENERGY: 5.0, h264: 0, hevc: 0}


def test_an_illness_that_any_group_told_speaks_against_it(record: Record) -> None:
    record.fold(reading_of(Cadence.STATIC, 1000, values={catalog.POWER_LIMIT: 700.0}, code=14))
    record.fold(reading_of(Cadence.FAST, 1001, values={catalog.POWER: 1.0}))
    assert record.code == 14
    # It is still asked.
    assert record.answers
    record.fold(reading_of(Cadence.STATIC, 1060, values={catalog.POWER_LIMIT: 700.0}))
    assert record.code == 0


def test_a_failed_look_up_speaks_first(record: Record) -> None:
    record.fold(reading_of(values={catalog.POWER: 1.0}))
    record.look_up_code = 15
    assert record.code == 15
    record.found(device_of("GPU-1", 3))
    # Found again, but it has answered nothing yet.
    assert (record.code, record.index) == (15, 3)
    record.fold(reading_of(values={catalog.POWER: 1.0}))
    assert record.code == 0


def test_failures_are_counted_by_function_and_code(record: Record) -> None:
    failure = Failure(function="nvmlDeviceGetPowerUsage", code=999)
    other = Failure(function="nvmlDeviceGetPowerUsage", code=10)
    record.fold(reading_of(failures=(failure, other), implausible=2))
    record.fold(reading_of(failures=(failure,), implausible=1))
    assert record.errors == {
        ("nvmlDeviceGetPowerUsage", 999): 2,
        ("nvmlDeviceGetPowerUsage", 10): 1,
    }
    assert record.implausible_readings == 3


def test_what_is_not_supported_is_remembered_until_everything_is_asked_anew(
    record: Record,
) -> None:
    missing: dict[Signal, WhyNot] = {catalog.POWER: WhyNot.NOT_SUPPORTED}
    record.fold(reading_of(missing=missing))
    assert record.skipped(Cadence.FAST) == missing
    # A reading that did not ask says nothing of it.
    record.fold(reading_of(values={catalog.UTILIZATION: 0.5}))
    assert record.skipped(Cadence.FAST) == missing
    record.fold(reading_of(values={catalog.POWER: 1.0}), everything=True)
    assert record.skipped(Cadence.FAST) == {}


def test_groups_are_asked_anew_one_by_one(record: Record) -> None:
    missing: dict[Signal, WhyNot] = {catalog.ENERGY: WhyNot.NOT_SUPPORTED}
    record.fold(reading_of(Cadence.FULL, missing=missing))
    record.fold(reading_of(Cadence.FAST), everything=True)
    assert record.skipped(Cadence.FULL) == missing
    record.fold(reading_of(Cadence.FULL), everything=True)
    assert record.skipped(Cadence.FULL) == {}


def test_windows_of_fast_signals(record: Record) -> None:
    for at, utilization in ((1000, 0.2), (1001, 1.0), (1003, 0.4)):
        record.fold(reading_of(at=at, values={catalog.UTILIZATION: utilization}))
    found = record.statistics()[catalog.UTILIZATION]
    # 1.0 for one second, 0.4 for two.
    assert found.mean == pytest.approx(0.6)
    assert (found.minimum, found.peak) == (0.2, 1.0)
    assert set(record.statistics()) == {catalog.UTILIZATION}


def test_a_window_is_shown_only_beside_its_signal(record: Record) -> None:
    record.fold(reading_of(at=1000, values={catalog.UTILIZATION: 0.2, catalog.POWER: 1.0}))
    record.fold(reading_of(at=1001, values={catalog.POWER: 1.0}))
    assert set(record.statistics()) == {catalog.POWER}


def test_throttle_seconds_survive_a_loss(record: Record) -> None:
    for at in (1000, 1001, 1002):
        record.fold(reading_of(at=at, values={Raw.CLOCK_EVENT_REASONS: 0x4}))
    record.fold(reading_of(at=1003, code=15))
    record.gone()
    record.found(device_of("GPU-1", 0))
    record.fold(reading_of(at=1100, values={Raw.CLOCK_EVENT_REASONS: 0x4}))
    # The 97 seconds in between nobody looked.
    assert record.account.throttle_seconds["sw_power_cap"] == 2.0


def test_a_hung_gpu_is_well_again_once_it_answers(record: Record) -> None:
    record.hung, record.hangs, record.hung_at_monotonic_seconds = True, 2, 998.0
    asked_while_hung = record.answers
    record.fold(reading_of(at=1000, values={catalog.POWER: 1.0}))
    assert (asked_while_hung, record.answers) == (False, True)
    assert not record.hung
    # Not trusted yet, though: it is asked last, and if it hangs again, later.
    assert record.hangs == 2


def test_hangs_are_forgiven_in_time(record: Record) -> None:
    record.hangs, record.hung_at_monotonic_seconds = 3, 1000.0
    record.fold(reading_of(at=1000 + HANGS_FORGIVEN_AFTER_SECONDS))
    assert record.hangs == 3
    record.fold(reading_of(at=1000 + HANGS_FORGIVEN_AFTER_SECONDS + 1))
    assert record.hangs == 0


def test_other_folding_begins_windows_anew_and_keeps_counters(record: Record) -> None:
    for at in (1000, 1001):
        record.fold(reading_of(at=at, values={catalog.POWER: 9.0, Raw.CLOCK_EVENT_REASONS: 0x4}))
    record.refold(Folding(window_seconds=60, longest_step_seconds=30))
    record.fold(reading_of(at=1011, values={catalog.POWER: 1.0, Raw.CLOCK_EVENT_REASONS: 0x4}))
    assert record.statistics()[catalog.POWER].peak == 1.0
    # One second before, and the ten that may now pass between two samples.
    assert record.account.throttle_seconds["sw_power_cap"] == 11.0


def test_the_same_folding_keeps_the_windows(record: Record) -> None:
    record.fold(reading_of(at=1000, values={catalog.POWER: 9.0}))
    record.refold(FOLDING)
    record.fold(reading_of(at=1001, values={catalog.POWER: 1.0}))
    assert record.statistics()[catalog.POWER].peak == 9.0


def test_texts_stay_when_the_gpu_is_gone(record: Record) -> None:
    record.fold(reading_of(Cadence.STATIC, texts={"name": "board"}))
    record.gone()
    assert record.texts == {"name": "board"}
    assert record.readings == {}
