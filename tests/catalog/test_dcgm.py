# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Names that are another exporter's: as they are, and within rules of their own."""

import re
from pathlib import Path
from typing import Any

import pytest

from veo_exporter.catalog import CATALOG, Kind, Label, MetricSpec
from veo_exporter.catalog.dcgm import DCGM, FIELDS, XID, Spelling, declare
from veo_exporter.units import Unit

GAUGE, COUNTER = Kind.GAUGE, Kind.COUNTER
DEFAULT_COUNTERS = {
    "DCGM_FI_DEV_SM_CLOCK": (GAUGE, "DCGM_FI_DEV_SM_CLOCK"),
    "DCGM_FI_DEV_MEM_CLOCK": (GAUGE, "DCGM_FI_DEV_MEM_CLOCK"),
    "DCGM_FI_DEV_MEMORY_TEMP": (GAUGE, "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"),
    "DCGM_FI_DEV_GPU_TEMP": (GAUGE, "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    "DCGM_FI_DEV_POWER_USAGE": (GAUGE, "DCGM_FI_DEV_BOARD_POWER_WATTS"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (COUNTER, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": (COUNTER, "DCGM_FI_DEV_PCIE_REPLAY_TOTAL"),
    "DCGM_FI_DEV_GPU_UTIL": (GAUGE, "DCGM_FI_DEV_GPU_UTIL_RATIO"),
    "DCGM_FI_DEV_MEM_COPY_UTIL": (GAUGE, "DCGM_FI_DEV_MEM_COPY_UTIL"),
    "DCGM_FI_DEV_ENC_UTIL": (GAUGE, "DCGM_FI_DEV_ENC_UTIL"),
    "DCGM_FI_DEV_DEC_UTIL": (GAUGE, "DCGM_FI_DEV_DEC_UTIL"),
    "DCGM_FI_DEV_XID_ERRORS": (GAUGE, "DCGM_FI_DEV_XID_ERROR"),
    "DCGM_FI_DEV_FB_FREE": (GAUGE, "DCGM_FI_DEV_FB_FREE"),
    "DCGM_FI_DEV_FB_USED": (GAUGE, "DCGM_FI_DEV_FB_USED"),
    "DCGM_FI_DEV_FB_RESERVED": (GAUGE, "DCGM_FI_DEV_FB_RESERVED"),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": (COUNTER, "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"),
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": (GAUGE, "DCGM_FI_DEV_VGPU_LICENSE_STATUS"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (
        COUNTER,
        "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
    ),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": (
        COUNTER,
        "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL",
    ),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": (GAUGE, "DCGM_FI_DEV_ROW_REMAP_FAILED"),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (GAUGE, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (GAUGE, "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    "DCGM_FI_PROF_DRAM_ACTIVE": (GAUGE, "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    "DCGM_FI_PROF_PCIE_TX_BYTES": (GAUGE, "DCGM_FI_PROF_PCIE_TX_BYTES"),
    "DCGM_FI_PROF_PCIE_RX_BYTES": (GAUGE, "DCGM_FI_PROF_PCIE_RX_BYTES"),
}
"""dcgm-exporter's default counters, their types, and their names since DCGM 4.6."""
LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION")


def spec(**changes: Any) -> MetricSpec:
    good: dict[str, Any] = {
        "name": "DCGM_FI_DEV_SM_CLOCK",
        "kind": Kind.GAUGE,
        "unit": Unit.NONE,
        "help": "Clock, in MHz.",
        "labels": (Label("UUID", "identity", "8"),),
        "namespace": DCGM,
    }
    return MetricSpec(**(good | changes))


def test_both_generations_of_names_and_their_types() -> None:
    classic, new = declare(Spelling()), declare(Spelling(renamed=True))
    assert {
        classic[field].name: (classic[field].kind, new[field].name) for field in FIELDS
    } == DEFAULT_COUNTERS


def test_the_page_on_them_has_each_with_its_new_name_and_type() -> None:
    page = (Path(__file__).parent.parent.parent / "docs/dcgm.md").read_text()
    rows = re.findall(
        r"^\| `(DCGM_FI_\w+)` \| (the same|`DCGM_FI_\w+`) \| (\w+) \|", page, re.MULTILINE
    )
    assert {
        classic: (Kind(kind), classic if new == "the same" else new.strip("`"))
        for classic, new, kind in rows
    } == DEFAULT_COUNTERS


def test_labels_in_either_spelling() -> None:
    for field, row in declare(Spelling()).items():
        further = ("err_code", "err_msg") if field is XID else ()
        assert row.label_names == (*LABELS, *further)
    small = declare(Spelling(renamed=True, uuid="uuid", hostname="hostname"))
    assert small[FIELDS[0]].label_names == (
        *("gpu", "uuid", "pci_bus_id", "device", "modelName", "hostname"),
        "DCGM_FI_SYSTEM_DRIVER_VERSION",
    )


def test_they_stand_apart_from_ours() -> None:
    assert not any(row.namespace is DCGM for row in CATALOG)
    assert not any(row.name.startswith("DCGM_") for row in CATALOG)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "veo_gpu_clock"}, "wants one of the prefixes DCGM_FI_"),
        ({"name": "DCGM_FI_dev"}, "wants capital letters, digits and underscores"),
        ({"help": "Clock"}, "wants a help text that ends with a full stop"),
        ({"unit": Unit.HERTZ}, "is in a unit of its own, which its help text names"),
        ({"buckets": (1.0,)}, "buckets are for histograms, and histograms want them"),
        ({"labels": (Label("UUID", "one", "8"), Label("UUID", "two", "8"))}, "has a label twice"),
        (
            {"labels": (Label("le", "bound", "8"),)},
            "has a label that Prometheus keeps for itself or cannot read: le",
        ),
        (
            {"labels": (Label("pod-name", "pod", "8"),)},
            "has a label that Prometheus keeps for itself or cannot read: pod-name",
        ),
    ],
)
def test_rules_hold_for_them_too(changes: dict[str, Any], fault: str) -> None:
    name = changes.get("name", "DCGM_FI_DEV_SM_CLOCK")
    with pytest.raises(ValueError, match="^" + re.escape(f"{name}: {fault}") + "$"):
        spec(**changes)


def test_our_own_may_not_be_written_as_theirs() -> None:
    with pytest.raises(ValueError, match="wants one of the prefixes veo_, process_"):
        MetricSpec("DCGM_FI_DEV_SM_CLOCK", Kind.GAUGE, Unit.NONE, "Clock, in MHz.")
