# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What all samples came to, on the page."""

from tests.gpu.conftest import reading_of, snapshot_of, view_of
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_samples as samples_catalog
from veo_exporter.exposition import Family
from veo_exporter.gpu.families import GpuSource
from veo_exporter.gpu.readings import Cadence, GpuView, Raw, Sampled, Signal, Spread

NOW = 1000.0
SAMPLED = Sampled(
    seconds={catalog.UTILIZATION: 12.5, catalog.DECODER_UTILIZATION: 3.25},
    spreads={
        catalog.UTILIZATION: Spread((1.0, 0.0, 0.5, 0.0, 0.0, 0.25, 2.0), 2.75),
    },
    throttle_busy_seconds={"sw_power_cap": 4.0, "hw_slowdown": 0.0},
    gaps={catalog.UTILIZATION: 2},
)


def families(gpu: GpuView, now: float = NOW) -> dict[MetricSpec, Family]:
    snapshot = snapshot_of(gpu)
    return {family.spec: family for family in GpuSource(lambda: snapshot).families(now)}


def gpu_with(*signals: Signal, cadence: Cadence = Cadence.FAST) -> GpuView:
    reading = reading_of(cadence, values=dict.fromkeys(signals, 0.5))
    return view_of(readings=(reading,), sampled=SAMPLED)


def test_beside_their_signal() -> None:
    found = families(gpu_with(catalog.UTILIZATION))
    identity = ("0", "GPU-1")
    assert found[samples_catalog.BUSY_SECONDS].rows == [(identity, 12.5)]
    gaps = found[samples_catalog.SAMPLE_GAPS].rows
    assert gaps == [((*identity, "veo_gpu_utilization_ratio"), 2)]
    ((labels, histogram),) = found[samples_catalog.UTILIZATION_SAMPLES].distributions
    assert labels == identity
    assert histogram.counts == (1000.0, 1000.0, 1500.0, 1500.0, 1500.0, 1750.0, 3750.0)
    assert histogram.sum == 2750.0
    assert samples_catalog.DECODER_BUSY_SECONDS not in found


def test_of_each_group_beside_its_own() -> None:
    found = families(gpu_with(catalog.DECODER_UTILIZATION, cadence=Cadence.FULL))
    assert found[samples_catalog.DECODER_BUSY_SECONDS].rows == [(("0", "GPU-1"), 3.25)]
    assert samples_catalog.BUSY_SECONDS not in found


def test_throttled_while_busy_needs_both() -> None:
    both = families(gpu_with(catalog.UTILIZATION, Raw.CLOCK_EVENT_REASONS))
    assert both[samples_catalog.THROTTLE_BUSY_SECONDS].rows == [
        (("0", "GPU-1", "sw_power_cap"), 4.0),
        (("0", "GPU-1", "hw_slowdown"), 0.0),
    ]
    for signal in (catalog.UTILIZATION, Raw.CLOCK_EVENT_REASONS):
        assert samples_catalog.THROTTLE_BUSY_SECONDS not in families(gpu_with(signal))


def test_withdrawn_with_their_signal() -> None:
    gpu = gpu_with(catalog.UTILIZATION, Raw.CLOCK_EVENT_REASONS)
    declared = {spec for spec in vars(samples_catalog).values() if isinstance(spec, MetricSpec)}
    assert declared & set(families(gpu, NOW + 5.0))
    assert not declared & set(families(gpu, NOW + 5.1))


def test_at_most_45_series_of_each_gpu() -> None:
    histograms = samples_catalog.HISTOGRAMS.values()
    series = sum(len(spec.buckets) + len(("+Inf", "sum", "count")) for spec in histograms)
    series += len(samples_catalog.BUSY) + len(samples_catalog.GAPS)
    reasons = 9
    assert series + reasons <= 45
