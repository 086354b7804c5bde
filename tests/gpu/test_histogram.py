# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""For how long a signal had which values."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.thresholds import load_thresholds
from veo_exporter.catalog.gpu_samples import HISTOGRAMS
from veo_exporter.gpu.histogram import TimeHistogram, distribution_of

BOUNDS = (0.5, 0.85, 0.95)
WEIGHTED = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 0.5, 0.85, 0.9, 0.95, 0.96, 1.0]), st.floats(0, 3)),
    min_size=1,
    max_size=60,
)


def test_each_millisecond_counts_once() -> None:
    histogram = TimeHistogram(BOUNDS)
    histogram.add((0.4, 0.9, 1.0), (0.25, 0.5, 1.0))
    found = distribution_of(histogram.spread())
    assert found.counts == (250.0, 250.0, 750.0, 1750.0)
    # 0.4 x 250 + 0.9 x 500 + 1.0 x 1000
    assert found.sum == pytest.approx(1550)
    assert histogram.integral == pytest.approx(1.55)


def test_a_bound_belongs_to_the_bucket_below() -> None:
    histogram = TimeHistogram(BOUNDS)
    histogram.add((95 / 100, 85 / 100, 50 / 100), (1, 1, 1))
    assert distribution_of(histogram.spread()).counts == (1000.0, 2000.0, 3000.0, 3000.0)


def test_parts_of_a_millisecond_are_not_lost() -> None:
    histogram = TimeHistogram(BOUNDS)
    for _ in range(10):
        histogram.add((0.1,), (0.0005,))
    assert distribution_of(histogram.spread()).counts[-1] == 5


@given(WEIGHTED, WEIGHTED)
def test_is_a_histogram_whose_counts_never_fall(
    sooner: list[tuple[float, float]], later: list[tuple[float, float]]
) -> None:
    histogram = TimeHistogram(BOUNDS)
    pages = []
    for samples in (sooner, later):
        values, seconds = zip(*samples, strict=True)
        histogram.add(values, seconds)
        pages.append(distribution_of(histogram.spread()))
    for page in pages:
        assert all(count.is_integer() for count in page.counts)
        assert all(low <= high for low, high in pairwise(page.counts))
    assert all(one <= two for one, two in zip(pages[0].counts, pages[1].counts, strict=True))
    assert pages[0].sum <= pages[1].sum
    everything = [*sooner, *later]
    for bound, count in zip((*BOUNDS, 2.0), pages[1].counts, strict=True):
        milliseconds = 1000 * sum(seconds for value, seconds in everything if value <= bound)
        assert count == pytest.approx(milliseconds, abs=1.001)


def test_every_threshold_of_an_alert_is_a_bound() -> None:
    bounds = {signal.name: spec.buckets for signal, spec in HISTOGRAMS.items()}
    thresholds = [one for one in load_thresholds().thresholds.values() if one.metric in bounds]
    assert thresholds
    for threshold in thresholds:
        assert threshold.value in bounds[threshold.metric], threshold
