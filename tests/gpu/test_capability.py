# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How absent signals are named."""

from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.capability import capabilities_missing
from veo_exporter.gpu.readings import Raw, WhyNot


def test_metrics_are_named_by_their_names_and_raw_signals_by_what_is_made_of_them() -> None:
    missing = capabilities_missing(
        [
            {catalog.ENCODER_UTILIZATION: WhyNot.NOT_SUPPORTED},
            {Raw.CLOCK_EVENT_REASONS: WhyNot.NOT_PERMITTED},
        ]
    )
    assert missing == {
        "veo_gpu_encoder_utilization_ratio": WhyNot.NOT_SUPPORTED,
        "veo_gpu_throttle_seconds_total": WhyNot.NOT_PERMITTED,
    }


def test_a_series_is_named_with_its_labels() -> None:
    series = catalog.THROTTLE_SECONDS.series("hw_slowdown")
    assert str(series) == 'veo_gpu_throttle_seconds_total{reason="hw_slowdown"}'
