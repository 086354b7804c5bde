# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of all samples since the start, so that any number of servers read the same truth of them."""

from typing import Final

from veo_exporter.catalog import gpu
from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

BUSY_FROM_RATIO: Final = 0.5
"""A GPU is busy from this utilization on. Below, it waits for its job more than it works, and a clock
that is held down costs the job little."""


def _busy(name: str, what: str) -> MetricSpec:
    return MetricSpec(
        name,
        Kind.COUNTER,
        Unit.SECONDS,
        f"{what} over time: one second at 50 % is half a second. "
        "It goes on when the driver is loaded anew; time that nobody sampled counts for nothing.",
        gpu.IDENTITY,
    )


def _histogram(name: str, unit: Unit, signal: MetricSpec, buckets: tuple[float, ...]) -> MetricSpec:
    return MetricSpec(
        name,
        Kind.HISTOGRAM,
        unit,
        f"Samples of {signal.name}, each counted once for each millisecond that it stands for: time and not samples, "
        "because boards and settings sample at different rates, and whole milliseconds because OpenMetrics wants "
        "whole counts. A bucket's share of the count is a share of the time.",
        gpu.IDENTITY,
        buckets,
    )


BUSY_SECONDS: Final = _busy("veo_gpu_busy_seconds_total", "Utilization, summed up")
ENCODER_BUSY_SECONDS: Final = _busy(
    "veo_gpu_encoder_busy_seconds_total", "Utilization of the video encoder, summed up"
)
DECODER_BUSY_SECONDS: Final = _busy(
    "veo_gpu_decoder_busy_seconds_total", "Utilization of the video decoder, summed up"
)
# Every threshold of an alert on the signal is a bucket's bound: how long it was exceeded is then exact.
UTILIZATION_SAMPLES: Final = _histogram(
    "veo_gpu_utilization_sample_ratio",
    Unit.RATIO,
    gpu.UTILIZATION,
    (0.05, 0.25, 0.5, 0.75, 0.85, 0.95),
)
MEMORY_COPY_UTILIZATION_SAMPLES: Final = _histogram(
    "veo_gpu_memory_copy_utilization_sample_ratio",
    Unit.RATIO,
    gpu.MEMORY_COPY_UTILIZATION,
    (0.25, 0.5, 0.75, 0.85, 0.92),
)
POWER_SAMPLES: Final = _histogram(
    "veo_gpu_power_sample_watts",
    Unit.WATTS,
    gpu.POWER,
    (75, 150, 250, 350, 450, 600, 700, 1000),
)
THROTTLE_BUSY_SECONDS: Final = MetricSpec(
    "veo_gpu_throttle_busy_seconds_total",
    Kind.COUNTER,
    Unit.SECONDS,
    "As veo_gpu_throttle_seconds_total, but only while the same sample's utilization was "
    f"{BUSY_FROM_RATIO:.0%} or more: time that held-down clocks cost a job.",
    (*gpu.IDENTITY, gpu.REASON),
)
SAMPLE_GAPS: Final = MetricSpec(
    "veo_gpu_sample_gaps_total",
    Kind.COUNTER,
    Unit.NONE,
    "Times at which samples were missed: the driver's buffer had dropped them before it was read, "
    "or the wall clock stepped. Absent for a signal that is not read from the driver's buffer.",
    (*gpu.IDENTITY, Label("metric", "name of the metric that the samples are of", "5")),
)

HISTOGRAMS: Final = {
    gpu.UTILIZATION: UTILIZATION_SAMPLES,
    gpu.MEMORY_COPY_UTILIZATION: MEMORY_COPY_UTILIZATION_SAMPLES,
    gpu.POWER: POWER_SAMPLES,
}
"""The signals whose samples have a histogram."""

BUSY: Final = {
    gpu.UTILIZATION: BUSY_SECONDS,
    gpu.ENCODER_UTILIZATION: ENCODER_BUSY_SECONDS,
    gpu.DECODER_UTILIZATION: DECODER_BUSY_SECONDS,
}
"""The signals that are summed up over time."""

GAPS: Final = {
    signal: SAMPLE_GAPS.series(signal.name)
    for signal in (
        gpu.UTILIZATION,
        gpu.MEMORY_COPY_UTILIZATION,
        gpu.POWER,
        gpu.ENCODER_UTILIZATION,
        gpu.DECODER_UTILIZATION,
    )
}
"""The signals that the driver keeps a buffer of."""
