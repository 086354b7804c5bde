# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How absent signals are named."""

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.catalog import Series
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_health as health
from veo_exporter.gpu.capability import SIGNALS, capabilities_missing
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


def named(*absent: tuple[str, str], why: WhyNot = WhyNot.NOT_SUPPORTED) -> list[str]:
    series = {
        signal.labels: signal
        for signal in SIGNALS
        if isinstance(signal, Series) and signal.spec is health.ECC_ERRORS
    }
    return list(capabilities_missing([{series[labels]: why for labels in absent}]))


BOTH = ("corrected", "uncorrected")


def test_a_metric_that_is_absent_as_a_whole_is_named_once() -> None:
    everywhere = [(error, place) for error in BOTH for place in health.ECC_LOCATIONS]
    assert named(*everywhere) == ["veo_gpu_ecc_errors_total"]


def test_a_part_is_named_by_a_selector() -> None:
    assert named(("corrected", "cbu")) == [
        'veo_gpu_ecc_errors_total{error="corrected",location="cbu"}'
    ]
    caches = [(error, place) for error in BOTH for place in ("l1_cache", "l2_cache")]
    # Of both kinds of errors, so that the selector need not speak of them.
    assert named(*caches) == ['veo_gpu_ecc_errors_total{location=~"l1_cache|l2_cache"}']
    one_kind = [("corrected", place) for place in health.ECC_LOCATIONS]
    assert named(*one_kind) == ['veo_gpu_ecc_errors_total{error="corrected"}']


def test_a_part_of_no_simple_shape_takes_more_than_one_selector() -> None:
    assert named(("corrected", "cbu"), ("corrected", "sram"), ("uncorrected", "sram")) == [
        'veo_gpu_ecc_errors_total{error="corrected",location=~"cbu|sram"}',
        'veo_gpu_ecc_errors_total{error="uncorrected",location="sram"}',
    ]


def test_reasons_are_kept_apart() -> None:
    sram, cbu = (
        next(s for s in SIGNALS if str(s) == f"{health.ECC_ERRORS.name}{{{selector}}}")
        for selector in ('error="corrected",location="sram"', 'error="corrected",location="cbu"')
    )
    missing = capabilities_missing([{sram: WhyNot.NOT_SUPPORTED, cbu: WhyNot.NOT_PERMITTED}])
    assert missing == {
        str(sram): WhyNot.NOT_SUPPORTED,
        str(cbu): WhyNot.NOT_PERMITTED,
    }


@given(st.sets(st.sampled_from([s for s in SIGNALS if isinstance(s, Series)])))
def test_selectors_name_the_absent_series_and_no_others(absent: set[Series]) -> None:
    found = capabilities_missing([dict.fromkeys(absent, WhyNot.NOT_SUPPORTED)])
    assert sum((matching(name) for name in found), Counter()) == Counter(absent)


def matching(name: str) -> Counter[Series]:
    """The series that a selector names, each as often as it does."""
    metric, _, rest = name.partition("{")
    wanted = dict(re.findall(r'(\w+)=~?"([^"]*)"', rest))
    return Counter(
        signal
        for signal in SIGNALS
        if isinstance(signal, Series)
        and signal.spec.name == metric
        and all(
            value in wanted[label].split("|")
            for label, value in zip(signal.spec.label_names[2:], signal.labels, strict=True)
            if label in wanted
        )
    )
