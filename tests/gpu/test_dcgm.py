# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A snapshot under the names of dcgm-exporter: units, labels, and what is not there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.gpu.conftest import reading_of, snapshot_of, view_of
from veo_exporter.catalog import dcgm
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.catalog import gpu_profiling as profiling
from veo_exporter.catalog.dcgm import DcgmField, Spelling
from veo_exporter.gpu.dcgm import DcgmSource, nvml_address
from veo_exporter.gpu.readings import Cadence, Driver, Raw, Signal, Snapshot, State

NOW = 1000.0
LABELS = ("0", "GPU-1", "00000000:01:00.0", "nvidia0", "NVIDIA H100", "render-7", "570.1")


def source(
    snapshot: Snapshot,
    *,
    spelling: Spelling | None = None,
    last_xid: Callable[[str], int | None] = lambda _: None,
    rate: Callable[[str], float | None] = lambda _: None,
) -> DcgmSource:
    return DcgmSource(
        lambda: snapshot,
        spelling=spelling or Spelling(),
        hostname="render-7",
        last_xid=last_xid,
        link_bytes_per_second=rate,
    )


def page(
    snapshot: Snapshot, now: float = NOW, **more: Any
) -> dict[str, dict[tuple[str, ...], float]]:
    families = source(snapshot, **more).families(now)
    return {family.spec.name: dict(family.rows) for family in families if family.rows}


def board(*cadence_values: tuple[Cadence, dict[Signal, float]], **more: Any) -> Snapshot:
    readings = tuple(reading_of(cadence, NOW, values=values) for cadence, values in cadence_values)
    return snapshot_of(view_of(readings=readings, texts={"name": "NVIDIA H100"}, **more))


@pytest.mark.parametrize(
    ("field", "signal", "value", "wanted"),
    [
        (dcgm.SM_CLOCK, catalog.SM_CLOCK, 1.755e9, 1755),
        (dcgm.MEMORY_CLOCK, catalog.MEMORY_CLOCK, 2.619e9, 2619),
        (dcgm.MEMORY_TEMPERATURE, catalog.MEMORY_TEMPERATURE, 71.0, 71),
        (dcgm.TEMPERATURE, catalog.TEMPERATURE, 58.0, 58),
        (dcgm.POWER, catalog.POWER, 431.25, 431.25),
        # 123,456.789 J are one of those that a float does not hold exactly.
        (dcgm.ENERGY, catalog.ENERGY, 123456.789, 123_456_789),
        (dcgm.PCIE_REPLAYS, links.PCIE_REPLAYS, 4.0, 4),
        # 0.29 * 100 is 28.999999999999996.
        (dcgm.UTILIZATION, catalog.UTILIZATION, 0.29, 29),
        (dcgm.MEMORY_COPY_UTILIZATION, catalog.MEMORY_COPY_UTILIZATION, 0.57, 57),
        (dcgm.ENCODER_UTILIZATION, catalog.ENCODER_UTILIZATION, 0.0, 0),
        (dcgm.DECODER_UTILIZATION, catalog.DECODER_UTILIZATION, 1.0, 100),
        (dcgm.MEMORY_FREE, catalog.MEMORY_FREE, 1_048_575.0, 0),
        (dcgm.MEMORY_FREE, catalog.MEMORY_FREE, 1_048_576.0, 1),
        (dcgm.MEMORY_USED, catalog.MEMORY_USED, 50e9, 47_683),
        (dcgm.MEMORY_RESERVED, catalog.MEMORY_RESERVED, 526_385_152.0, 502),
        # No licence is needed; none is there; there is one.
        (dcgm.VGPU_LICENSE, Raw.VGPU_LICENSE, 0.0, 0),
        (dcgm.VGPU_LICENSE, Raw.VGPU_LICENSE, 1.0, 0),
        (dcgm.VGPU_LICENSE, Raw.VGPU_LICENSE, 2.0, 1),
        (
            dcgm.UNCORRECTABLE_REMAPPED_ROWS,
            health.REMAPPED_ROWS.series("uncorrectable"),
            1.0,
            1,
        ),
        (dcgm.CORRECTABLE_REMAPPED_ROWS, health.REMAPPED_ROWS.series("correctable"), 2.0, 2),
        (dcgm.ROW_REMAP_FAILURE, health.REMAP_FAILURE, 1.0, 1),
        (dcgm.GRAPHICS_ACTIVE, profiling.PROFILING_ACTIVE.series("graphics"), 0.965, 0.965),
        (dcgm.TENSOR_ACTIVE, profiling.PROFILING_ACTIVE.series("tensor"), 0.6275, 0.6275),
        (dcgm.DRAM_ACTIVE, profiling.PROFILING_ACTIVE.series("dram"), 0.5725, 0.5725),
        (dcgm.PCIE_TRANSMIT, profiling.PROFILING_PCIE_TRANSMIT, 1_279_262_720.0, 1_279_262_720),
        (dcgm.PCIE_RECEIVE, profiling.PROFILING_PCIE_RECEIVE, 0.0, 0),
    ],
)
def test_each_counter_in_its_unit(
    field: DcgmField, signal: Signal, value: float, wanted: float
) -> None:
    snapshot = board((Cadence.FULL, {signal: value}))
    assert page(snapshot) == {field.classic: {LABELS: wanted}}
    renamed = page(snapshot, spelling=Spelling(renamed=True))
    assert renamed == {field.new or field.classic: {LABELS: wanted}}


def test_signals_that_come_as_rows_count_as_well() -> None:
    row = (profiling.PROFILING_ACTIVE, ("tensor",), 0.5)
    reading = reading_of(Cadence.FULL, NOW)._replace(rows=(row,))
    found = page(snapshot_of(view_of(readings=(reading,), texts={"name": "NVIDIA H100"})))
    assert found == {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": {LABELS: 0.5}}


def test_parts_that_dcgm_has_no_counter_for_are_left_out() -> None:
    snapshot = board(
        (
            Cadence.FULL,
            {
                profiling.PROFILING_ACTIVE.series("sm"): 0.5,
                health.REMAP_PENDING: 1.0,
                Raw.CLOCK_EVENT_REASONS: 4.0,
            },
        )
    )
    assert page(snapshot) == {}


def test_what_is_stale_is_withdrawn_group_by_group() -> None:
    snapshot = board((Cadence.FAST, {catalog.POWER: 400.0}), (Cadence.FULL, {catalog.ENERGY: 2.0}))
    assert set(page(snapshot, NOW + 5)) == {
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    }
    assert set(page(snapshot, NOW + 5.1)) == {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}
    assert page(snapshot, NOW + 15.1) == {}


def test_a_board_without_performance_counters_has_none_of_theirs() -> None:
    snapshot = board((Cadence.FAST, {catalog.POWER: 60.0}))
    assert not any("PROF" in name for name in page(snapshot))


@pytest.mark.parametrize(
    ("code", "labels"),
    [
        (0, ("0", "no Xid")),
        (31, ("31", "page fault in GPU memory")),
        (9999, ("9999", "an Xid that this version does not know: see NVIDIA's list")),
    ],
)
def test_the_last_xid(code: int, labels: tuple[str, str]) -> None:
    asked: list[str] = []

    def last_xid(address: str) -> int:
        asked.append(address)
        return code

    found = page(board(), last_xid=last_xid)
    assert found == {"DCGM_FI_DEV_XID_ERRORS": {(*LABELS, *labels): code}}
    assert asked == ["0000:01:00.0"]


def test_no_xid_is_claimed_where_nobody_would_tell() -> None:
    assert page(board(), last_xid=lambda _: None) == {}


def test_the_xid_that_took_a_gpu_stays() -> None:
    lost = board(state=State.LOST, code=15)
    assert set(page(lost, last_xid=lambda _: 79)) == {"DCGM_FI_DEV_XID_ERRORS"}


def test_a_gpu_that_nvml_never_listed_has_no_rows() -> None:
    hidden = snapshot_of(view_of("GPU-2", None, uuid="", state=State.HIDDEN, code=None))
    assert page(hidden, last_xid=lambda _: 79) == {}


@pytest.mark.parametrize(
    ("rate", "wanted"), [(0.0, 0), (1_023_999.0, 0), (1_024_000.0, 1), (450e9, 439_453)]
)
def test_nvlinks_have_a_rate(rate: float, wanted: float) -> None:
    links_read: dict[Signal, float] = {links.NVLINK_TRANSMIT: 1.0, links.NVLINK_RECEIVE: 1.0}
    snapshot = board((Cadence.FULL, links_read))
    found = page(snapshot, rate=lambda _: rate)
    assert found == {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": {LABELS: wanted}}
    assert page(snapshot, rate=lambda _: None) == {}
    # Withdrawn with what it is made of.
    assert page(snapshot, NOW + 15.1, rate=lambda _: rate) == {}


def test_labels_that_are_not_known_are_empty() -> None:
    reading = reading_of(values={catalog.POWER: 1.0})
    snapshot = snapshot_of(view_of(readings=(reading,)), driver=Driver(fault="gone"))
    (labels,) = page(snapshot)["DCGM_FI_DEV_POWER_USAGE"]
    assert labels == ("0", "GPU-1", "00000000:01:00.0", "nvidia0", "", "render-7", "")


@pytest.mark.parametrize(
    ("kernel", "nvml"),
    [
        ("0000:1b:00.0", "00000000:1B:00.0"),
        ("10000:e1:00.0", "00010000:E1:00.0"),
        ("", ""),
    ],
)
def test_addresses_as_nvml_writes_them(kernel: str, nvml: str) -> None:
    assert nvml_address(kernel) == nvml


def test_the_revision_changes_with_snapshot_withdrawal_and_xid() -> None:
    snapshot = board((Cadence.FAST, {catalog.POWER: 1.0}))
    xids: dict[str, int | None] = {"0000:01:00.0": 0}
    one = source(snapshot, last_xid=xids.get)
    revision = one.revision(NOW)
    assert one.revision(NOW + 5) == revision
    assert one.revision(NOW + 5.1) != revision
    xids["0000:01:00.0"] = 31
    assert one.revision(NOW) != revision
    newer = source(replace(snapshot, sequence=2), last_xid=lambda _: 0)
    assert newer.revision(NOW) != revision
