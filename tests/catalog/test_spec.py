# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A declaration that would break a rule of Prometheus or of this project does not get in."""

import re
from typing import Any

import pytest

from veo_exporter.catalog import CATALOG, Kind, Label, MetricSpec
from veo_exporter.catalog import gpu as gpu_catalog
from veo_exporter.units import Unit

GPU = Label("gpu", "which", "8")

GOOD: dict[str, Any] = {
    "name": "veo_gpu_power_watts",
    "kind": Kind.GAUGE,
    "unit": Unit.WATTS,
    "help": "Power draw.",
    "labels": (GPU,),
}


def spec(**changes: Any) -> MetricSpec:
    return MetricSpec(**(GOOD | changes))


def test_a_good_declaration_gives_its_names() -> None:
    gauge = spec(labels=(GPU, Label("uuid", "identity", "8")))
    assert gauge.label_names == ("gpu", "uuid")
    assert gauge.series_names == ("veo_gpu_power_watts",)
    histogram = spec(
        name="veo_job_duration_seconds", kind=Kind.HISTOGRAM, unit=Unit.SECONDS, buckets=(1, 2.5)
    )
    assert histogram.series_names == (
        "veo_job_duration_seconds_bucket",
        "veo_job_duration_seconds_sum",
        "veo_job_duration_seconds_count",
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "gpu_power_watts"}, "wants one of the prefixes veo_, process_"),
        ({"name": "veo_gpu-power_watts"}, "wants small letters, digits and underscores"),
        ({"name": "veo_GPU_power_watts"}, "wants small letters, digits and underscores"),
        ({"name": "veo_gpu_power_watts\n"}, "wants small letters, digits and underscores"),
        ({"help": "Power draw"}, "wants a help text that ends with a full stop"),
        ({"kind": Kind.COUNTER}, "_total is for counters, and counters want it"),
        ({"name": "veo_gpu_power_watts_total"}, "_total is for counters, and counters want it"),
        ({"buckets": (1.0,)}, "buckets are for histograms, and histograms want them"),
        ({"kind": Kind.HISTOGRAM}, "buckets are for histograms, and histograms want them"),
        ({"kind": Kind.HISTOGRAM, "buckets": (2.0, 1.0)}, "buckets want to rise"),
        ({"kind": Kind.HISTOGRAM, "buckets": (1.0, 1.0)}, "buckets want to rise"),
        ({"unit": Unit.JOULES}, "wants the unit in its name: veo_gpu_power_watts_joules"),
        ({"unit": Unit.NONE}, "is named in watts but declared without a unit"),
        ({"labels": (GPU, GPU)}, "has a label twice"),
    ],
)
def test_a_bad_declaration_is_refused(changes: dict[str, Any], fault: str) -> None:
    name = changes.get("name", GOOD["name"])
    with pytest.raises(ValueError, match="^" + re.escape(f"{name}: {fault}") + "$"):
        spec(**changes)


@pytest.mark.parametrize("label", ["le", "quantile", "__name__", "2nd", "pod-name", "Gpu", ""])
def test_a_label_that_prometheus_cannot_take_is_refused(label: str) -> None:
    sentence = (
        "veo_gpu_power_watts: has a label that Prometheus keeps for itself or cannot read: " + label
    )
    with pytest.raises(ValueError, match="^" + re.escape(sentence) + "$"):
        spec(labels=(Label(label, "which", "1"),))


def test_a_counter_with_a_unit_has_it_before_total() -> None:
    energy = spec(name="veo_gpu_energy_joules_total", kind=Kind.COUNTER, unit=Unit.JOULES)
    assert energy.series_names == ("veo_gpu_energy_joules_total",)


def test_specs_are_told_apart_by_identity() -> None:
    # They are keys of readings: two rows that read the same are still two.
    assert spec() != spec()
    assert len({spec(), spec()}) == 2


def test_no_name_stands_twice_in_the_catalogue() -> None:
    names = [name for row in CATALOG for name in row.series_names]
    assert sorted(names) == sorted(set(names))


def test_a_label_means_one_thing_wherever_it_stands() -> None:
    meanings: dict[str, set[str]] = {}
    for row in CATALOG:
        for label in row.labels:
            meanings.setdefault(label.name, set()).add(label.meaning)
    # A throttle reason and a reason for dropping are two things under the one fixed name.
    assert {name for name, found in meanings.items() if len(found) > 1} <= {"reason", "code"}


def test_texts_fit_into_a_markdown_table() -> None:
    texts = [row.help for row in CATALOG] + [
        text for row in CATALOG for label in row.labels for text in (label.meaning, label.bound)
    ]
    assert [text for text in texts if "|" in text or "\n" in text] == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("veo_gpu_info", Kind.GAUGE),
        ("veo_gpu_state", Kind.GAUGE),
        ("veo_gpus_expected", Kind.GAUGE),
        ("veo_gpus_visible", Kind.GAUGE),
        ("veo_gpus_usable", Kind.GAUGE),
        ("veo_gpu_utilization_ratio", Kind.GAUGE),
        ("veo_gpu_memory_copy_utilization_ratio", Kind.GAUGE),
        ("veo_gpu_memory_used_bytes", Kind.GAUGE),
        ("veo_gpu_memory_free_bytes", Kind.GAUGE),
        ("veo_gpu_memory_reserved_bytes", Kind.GAUGE),
        ("veo_gpu_memory_total_bytes", Kind.GAUGE),
        ("veo_gpu_power_watts", Kind.GAUGE),
        ("veo_gpu_temperature_celsius", Kind.GAUGE),
        ("veo_gpu_utilization_peak_ratio", Kind.GAUGE),
        ("veo_gpu_utilization_min_ratio", Kind.GAUGE),
        ("veo_gpu_utilization_mean_ratio", Kind.GAUGE),
        ("veo_gpu_memory_used_peak_bytes", Kind.GAUGE),
        ("veo_gpu_energy_joules_total", Kind.COUNTER),
        ("veo_gpu_throttle_seconds_total", Kind.COUNTER),
        ("veo_exporter_build_info", Kind.GAUGE),
        ("veo_exporter_simulated", Kind.GAUGE),
        ("veo_exporter_last_success_timestamp_seconds", Kind.GAUGE),
        ("veo_exporter_config_last_reload_successful", Kind.GAUGE),
        ("veo_exporter_dropped_total", Kind.COUNTER),
    ],
)
def test_names_that_others_lean_on_are_in_the_catalogue(name: str, kind: Kind) -> None:
    assert [row.kind for row in CATALOG if row.name == name] == [kind]


def test_the_window_of_a_signal_is_named_after_it() -> None:
    window = gpu_catalog.WINDOWS[gpu_catalog.SM_CLOCK]
    assert window.minimum.name == "veo_gpu_sm_clock_min_hertz"
    assert window.mean.name == "veo_gpu_sm_clock_mean_hertz"
    assert window.peak.name == "veo_gpu_sm_clock_peak_hertz"
    assert window.peak.unit is Unit.HERTZ
    assert window.peak.label_names == ("gpu", "uuid")
