# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What all samples of a GPU came to, as metric families."""

from collections.abc import Callable, Mapping

from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog.gpu import UTILIZATION
from veo_exporter.catalog.gpu_samples import (
    BUSY,
    GAPS,
    HISTOGRAMS,
    SAMPLE_GAPS,
    THROTTLE_BUSY_SECONDS,
)
from veo_exporter.exposition import Family
from veo_exporter.gpu.histogram import distribution_of
from veo_exporter.gpu.readings import Raw, Sampled, Signal


def add_samples(
    family: Callable[[MetricSpec], Family],
    identity: tuple[str, str],
    sampled: Sampled,
    shown: Mapping[Signal, float],
) -> None:
    """Add what stands beside the signals that are shown now."""
    for signal, seconds in sampled.seconds.items():
        if signal in shown:
            family(BUSY[signal]).add(identity, seconds)
    for signal, spread in sampled.spreads.items():
        if signal in shown:
            family(HISTOGRAMS[signal]).distributions.append((identity, distribution_of(spread)))
    for signal, gaps in sampled.gaps.items():
        if signal in shown:
            family(SAMPLE_GAPS).add((*identity, *GAPS[signal].labels), gaps)
    if UTILIZATION in shown and Raw.CLOCK_EVENT_REASONS in shown:
        for reason, seconds in sampled.throttle_busy_seconds.items():
            family(THROTTLE_BUSY_SECONDS).add((*identity, reason), seconds)
