# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver's buffers of samples, read as the sampler reads them."""

import pytest

from tests.simulate.nodes import Simulated, begun
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog.gpu_samples import GAPS
from veo_exporter.gpu.nvml import NvmlError
from veo_exporter.gpu.readings import Cadence, Device, Reading, SampleBatch, WhyNot
from veo_exporter.gpu.samples import read_samples

# The fake wall clock when the node was made: 1000 s, and a million more.
START = 1_001_000_000_000


def sample(node: Simulated, device: Device, cadence: Cadence = Cadence.FAST) -> Reading:
    reading = node.survey(device) if cadence is Cadence.FULL else node.read(device.index)
    return read_samples(node.line, device, reading, (), node.clock)


def batch(reading: Reading, signal: MetricSpec) -> SampleBatch:
    assert reading.samples is not None
    return reading.samples[signal]


def test_each_time_has_its_own_samples_and_none_twice() -> None:
    node = begun("busy")
    device = node.device(0)
    node.at(10.02)
    sample(node, device)
    node.at(12.02)
    reading = sample(node, device)
    assert reading.implausible == 0
    utilization = batch(reading, catalog.UTILIZATION)
    # At 6 Hz: the newest before was of 10 s, and each has its own sixth of a second.
    assert [at - START for at in utilization.times_microseconds] == [
        10_166_667,
        10_333_333,
        10_500_000,
        10_666_667,
        10_833_333,
        11_000_000,
        11_166_667,
        11_333_333,
        11_500_000,
        11_666_667,
        11_833_333,
        12_000_000,
    ]
    assert utilization.since_microseconds - START == 10_000_000
    power = batch(reading, catalog.POWER)
    assert [at - START for at in power.times_microseconds] == list(
        range(10_100_000, 12_000_001, 100_000)
    )
    # Nothing newer, and that is no fault.
    again = sample(node, device)
    assert batch(again, catalog.UTILIZATION).values == ()
    assert again.failures == ()


def test_they_are_of_the_same_curve_as_the_plain_values() -> None:
    node = begun("busy")
    device = node.device(2)
    for seconds in (3.0, 20.0, 37.0, 95.0):
        node.at(seconds)
        reading = sample(node, device)
        for signal in (catalog.UTILIZATION, catalog.MEMORY_COPY_UTILIZATION, catalog.POWER):
            found = batch(reading, signal)
            assert found.times_microseconds[-1] - START == seconds * 1e6
            assert found.values[-1] == reading.values[signal]


def test_the_oldest_make_room() -> None:
    node = begun("busy")
    node.at(100)
    reading = sample(node, node.device(0))
    assert len(batch(reading, catalog.UTILIZATION).values) == 100
    # Twelve seconds at 10 Hz.
    assert len(batch(reading, catalog.POWER).values) == 120


def test_a_wall_clock_that_steps_takes_the_samples_with_it() -> None:
    node = begun("busy")
    device = node.device(0)
    node.at(10)
    sample(node, device)
    hour = 3600
    told = node.clock.unix_seconds
    node.clock.unix_seconds = lambda: told() + hour  # type: ignore[method-assign]
    node.at(12)
    found = batch(sample(node, device), catalog.UTILIZATION)
    assert found.times_microseconds[-1] - START == (hour + 12) * 1_000_000


def test_a_board_without_an_encoder_has_no_samples_of_one() -> None:
    node = begun("busy")
    node.at(5)
    reading = sample(node, node.device(0), Cadence.FULL)
    gaps = [signal for signal in GAPS.values() if signal in reading.missing]
    assert gaps == [GAPS[catalog.ENCODER_UTILIZATION]]
    assert reading.missing[gaps[0]] is WhyNot.NOT_SUPPORTED
    assert len(batch(reading, catalog.DECODER_UTILIZATION).values) == 100


def test_a_lost_gpu_and_a_kind_that_nobody_reads() -> None:
    node = begun("gpu-lost")
    with pytest.raises(NvmlError, match="NOT_SUPPORTED"):
        node.line.call("nvmlDeviceGetSamples", 3, 7, 0)
    node.at(61)
    with pytest.raises(NvmlError, match="GPU_IS_LOST"):
        node.line.call("nvmlDeviceGetSamples", 3, 1, 0)
