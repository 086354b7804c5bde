# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The rate of the NVLinks, from one full sweep to the next."""

from tests.gpu.conftest import reading_of, snapshot_of, view_of
from veo_exporter.catalog.gpu import POWER
from veo_exporter.catalog.gpu_links import NVLINK_RECEIVE, NVLINK_TRANSMIT
from veo_exporter.gpu.dcgm_links import LinkRates
from veo_exporter.gpu.readings import Cadence, Signal, Snapshot


def passed(at: float, transmitted: float, received: float) -> Snapshot:
    values: dict[Signal, float] = {NVLINK_TRANSMIT: transmitted, NVLINK_RECEIVE: received}
    fast = reading_of(Cadence.FAST, at, values={POWER: 1.0})
    return snapshot_of(view_of(readings=(fast, reading_of(Cadence.FULL, at, values=values))))


def test_both_directions_over_the_time_between_two_sweeps() -> None:
    rates = LinkRates()
    rates.take(passed(1000.0, 1e9, 2e9))
    assert rates.bytes_per_second("GPU-1") is None
    # 3 GB and 1 GB more within 5 s.
    rates.take(passed(1005.0, 4e9, 3e9))
    assert rates.bytes_per_second("GPU-1") == 0.8e9
    assert rates.bytes_per_second("GPU-2") is None


def test_a_snapshot_with_the_same_reading_changes_nothing() -> None:
    rates = LinkRates()
    for _ in range(2):
        rates.take(passed(1000.0, 0.0, 0.0))
    for _ in range(3):
        rates.take(passed(1004.0, 8.0, 0.0))
        assert rates.bytes_per_second("GPU-1") == 2.0
    rates.take(passed(1008.0, 8.0, 0.0))
    assert rates.bytes_per_second("GPU-1") == 0.0


def test_counters_that_begin_anew_tell_nothing_of_the_time_between() -> None:
    rates = LinkRates()
    rates.take(passed(1000.0, 1e9, 0.0))
    rates.take(passed(1005.0, 10.0, 0.0))
    assert rates.bytes_per_second("GPU-1") is None
    rates.take(passed(1010.0, 60.0, 0.0))
    assert rates.bytes_per_second("GPU-1") == 10.0


def test_a_gpu_that_is_not_read_is_forgotten() -> None:
    rates = LinkRates()
    rates.take(passed(1000.0, 0.0, 0.0))
    rates.take(passed(1005.0, 50.0, 0.0))
    rates.take(snapshot_of(view_of()))
    assert rates.bytes_per_second("GPU-1") is None
    rates.take(passed(1015.0, 50.0, 0.0))
    assert rates.bytes_per_second("GPU-1") is None
