# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is withdrawn, in words."""

from tests.gpu.conftest import reading_of, snapshot_of, view_of
from veo_exporter.gpu.readiness import withdrawn_groups
from veo_exporter.gpu.readings import Cadence, Driver, State

NOW = 1000.0
COMPLETE = tuple(reading_of(cadence, NOW) for cadence in Cadence)


def test_a_complete_page() -> None:
    snapshot = snapshot_of(view_of(readings=COMPLETE), view_of("GPU-2", 1, readings=COMPLETE))
    assert withdrawn_groups(snapshot, NOW + 5) == []


def test_a_node_without_gpus_lacks_nothing() -> None:
    assert withdrawn_groups(snapshot_of(), NOW) == []


def test_without_a_driver_that_is_all_there_is_to_say() -> None:
    snapshot = snapshot_of(view_of(state=State.UNKNOWN), driver=Driver(fault="not loaded: load it"))
    assert withdrawn_groups(snapshot, NOW) == ["GPUs: not loaded: load it"]


def test_stale_groups_are_named() -> None:
    snapshot = snapshot_of(view_of(readings=COMPLETE))
    assert withdrawn_groups(snapshot, NOW + 5.1) == ["GPU 0 (GPU-1): gpu_fast withdrawn"]
    assert withdrawn_groups(snapshot, NOW + 16) == ["GPU 0 (GPU-1): gpu_fast, gpu_full withdrawn"]


def test_a_group_that_was_never_read_is_named() -> None:
    snapshot = snapshot_of(view_of(readings=COMPLETE[:1]))
    assert withdrawn_groups(snapshot, NOW) == ["GPU 0 (GPU-1): gpu_full, gpu_static withdrawn"]


def test_a_gpu_that_is_not_well_is_named_with_its_state() -> None:
    snapshot = snapshot_of(
        view_of("GPU-1", 0, state=State.LOST, code=15, readings=COMPLETE),
        view_of("GPU-2", 1, readings=COMPLETE),
        view_of("GPU-3", None, uuid="", state=State.HIDDEN, code=None),
        view_of("GPU-4", 3, uuid="", pci_bus_id="", state=State.HUNG, code=None),
    )
    assert withdrawn_groups(snapshot, NOW) == [
        "GPU 0 (GPU-1): lost",
        "GPU ? (0000:03:00.0): hidden",
        "GPU 3 (no name): hung",
    ]
