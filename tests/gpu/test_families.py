# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A snapshot as metric families."""

from dataclasses import replace

import pytest

from tests.gpu.conftest import reading_of, snapshot_of, view_of
from veo_exporter.catalog import CATALOG, MetricSpec
from veo_exporter.catalog import exporter as exporter_catalog
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog import gpu_health as health
from veo_exporter.gpu.families import GpuSource
from veo_exporter.gpu.readings import (
    Cadence,
    CallsElsewhere,
    Driver,
    OverdueCall,
    Raw,
    Signal,
    Snapshot,
    State,
    Statistics,
    WhyNot,
)

NOW = 1000.0
Rows = dict[tuple[str, ...], float]


def page(snapshot: Snapshot, now: float = NOW) -> dict[MetricSpec, Rows]:
    found: dict[MetricSpec, Rows] = {}
    for family in GpuSource(lambda: snapshot).families(now):
        assert family.spec not in found
        found[family.spec] = dict(family.rows)
        # No row twice, and a value for each label.
        assert len(found[family.spec]) == len(family.rows)
        assert {len(labels) for labels, _ in family.rows} == {len(family.spec.labels)}
    return found


def rows(snapshot: Snapshot, spec: MetricSpec, now: float = NOW) -> Rows:
    return page(snapshot, now).get(spec, {})


def test_values_carry_index_and_uuid() -> None:
    reading = reading_of(values={catalog.POWER: 250.0, catalog.UTILIZATION: 0.0})
    found = page(snapshot_of(view_of(readings=(reading,))))
    assert found[catalog.POWER] == {("0", "GPU-1"): 250.0}
    # Zero is a value; what was not read is not there.
    assert found[catalog.UTILIZATION] == {("0", "GPU-1"): 0.0}
    assert catalog.TEMPERATURE not in found


@pytest.mark.parametrize(
    ("cadence", "signal", "until"),
    [
        (Cadence.FAST, catalog.POWER, 5.0),
        (Cadence.FULL, catalog.ENERGY, 15.0),
        (Cadence.STATIC, catalog.POWER_LIMIT, 180.0),
    ],
)
def test_what_is_stale_is_withdrawn(cadence: Cadence, signal: MetricSpec, until: float) -> None:
    snapshot = snapshot_of(view_of(readings=(reading_of(cadence, NOW, values={signal: 1.0}),)))
    assert rows(snapshot, signal, NOW + until) == {("0", "GPU-1"): 1.0}
    later = page(snapshot, NOW + until + 0.1)
    assert signal not in later
    # State and presence stay.
    assert later[catalog.GPU_STATE]


def test_groups_grow_stale_on_their_own() -> None:
    readings = (
        reading_of(Cadence.FAST, NOW - 6, values={catalog.POWER: 1.0}),
        reading_of(Cadence.FULL, NOW - 6, values={catalog.ENERGY: 2.0}),
    )
    found = page(snapshot_of(view_of(readings=readings)))
    assert catalog.POWER not in found
    assert found[catalog.ENERGY] == {("0", "GPU-1"): 2.0}


def test_states_are_a_closed_set_of_ones_and_zeros() -> None:
    for state in State:
        found = rows(snapshot_of(view_of(state=state)), catalog.GPU_STATE)
        assert found == {
            ("0", "GPU-1", "0000:01:00.0", other.value): float(other is state) for other in State
        }


def test_the_code_that_decided_the_state() -> None:
    lost = snapshot_of(view_of(state=State.LOST, code=15))
    assert rows(lost, catalog.GPU_NVML_RETURN_CODE) == {("0", "GPU-1", "0000:01:00.0"): 15}
    hung = snapshot_of(view_of(state=State.HUNG, code=None))
    assert rows(hung, catalog.GPU_NVML_RETURN_CODE) == {}


def test_a_gpu_that_only_the_bus_knows() -> None:
    hidden = view_of("GPU-2", None, uuid="", state=State.HIDDEN, code=None)
    found = page(snapshot_of(hidden))
    assert found[catalog.GPU_STATE]["", "", "0000:02:00.0", "hidden"] == 1
    assert catalog.IMPLAUSIBLE_READINGS not in found
    assert catalog.GPU_INFO not in found


def test_counts_of_the_node() -> None:
    gpus = (view_of("GPU-1"), view_of("GPU-2", 1, state=State.LOST), view_of("GPU-3", 2))
    found = page(snapshot_of(*gpus, expected=8))
    assert found[catalog.GPUS_EXPECTED] == {(): 8}
    assert found[catalog.GPUS_VISIBLE] == {(): 3}
    assert found[catalog.GPUS_USABLE] == {(): 2}
    # Not known is absent, and never 0.
    assert catalog.GPUS_EXPECTED not in page(snapshot_of(*gpus, expected=None))
    assert page(snapshot_of(expected=0))[catalog.GPUS_EXPECTED] == {(): 0}


def test_without_a_driver_there_is_still_a_page() -> None:
    driver = Driver(fault="not loaded", errors={("nvmlInit", 9): 3})
    found = page(snapshot_of(driver=driver))
    assert found[catalog.GPUS_VISIBLE] == {(): 0}
    assert catalog.DRIVER_INFO not in found
    assert found[catalog.NVML_ERRORS] == {("", "", "nvmlInit", "DRIVER_NOT_LOADED"): 3}


def test_info_rows() -> None:
    gpu = view_of(texts={"name": "NVIDIA H100", "vbios_version": "96.00"})
    found = page(snapshot_of(gpu))
    assert found[catalog.GPU_INFO] == {("0", "GPU-1", "0000:01:00.0", "NVIDIA H100", "96.00"): 1}
    assert found[catalog.DRIVER_INFO] == {("570.1", "12.570.1", "12.8"): 1}
    unread = view_of(texts={"name": "NVIDIA H100"})
    assert ("0", "GPU-1", "0000:01:00.0", "NVIDIA H100", "") in rows(
        snapshot_of(unread), catalog.GPU_INFO
    )


def test_what_a_repair_order_asks_for() -> None:
    texts = {"name": "NVIDIA L4", "brand": "NVIDIA", "architecture": "Ada", "serial": "1324"}
    assert rows(snapshot_of(view_of(texts=texts)), board.BOARD_INFO) == {
        ("0", "GPU-1", "NVIDIA", "Ada", "", "", "1324"): 1
    }
    # Nothing of it was told: a row of empty labels would say nothing either.
    unread = view_of(texts={"name": "NVIDIA L4"})
    assert rows(snapshot_of(unread), board.BOARD_INFO) == {}


def test_a_series_has_its_labels_after_those_of_the_gpu() -> None:
    values: dict[Signal, float] = {
        health.ECC_ERRORS.series("corrected", "sram"): 4.0,
        health.ECC_ERRORS.series("uncorrected", "sram"): 0.0,
    }
    reading = reading_of(Cadence.FULL, values=values)
    assert rows(snapshot_of(view_of(readings=(reading,))), health.ECC_ERRORS) == {
        ("0", "GPU-1", "corrected", "sram"): 4.0,
        ("0", "GPU-1", "uncorrected", "sram"): 0.0,
    }


def test_windows_come_and_go_with_their_signal() -> None:
    statistics = {catalog.POWER: Statistics(minimum=1.0, mean=2.0, peak=4.0)}
    reading = reading_of(values={catalog.POWER: 3.0})
    snapshot = snapshot_of(view_of(readings=(reading,), windows=statistics))
    names = catalog.WINDOWS[catalog.POWER]
    found = page(snapshot)
    assert [found[spec]["0", "GPU-1"] for spec in (names.minimum, names.mean, names.peak)] == [
        *(1.0, 2.0, 4.0)
    ]
    assert names.peak not in page(snapshot, NOW + 6)


def test_throttle_seconds_by_reason() -> None:
    reading = reading_of(values={Raw.CLOCK_EVENT_REASONS: 0.0})
    seconds = {"sw_power_cap": 2.5, "other": 0.0}
    snapshot = snapshot_of(view_of(readings=(reading,), throttle_seconds=seconds))
    assert rows(snapshot, catalog.THROTTLE_SECONDS) == {
        ("0", "GPU-1", "sw_power_cap"): 2.5,
        ("0", "GPU-1", "other"): 0.0,
    }
    assert rows(snapshot, catalog.THROTTLE_SECONDS, NOW + 6) == {}
    # A board that does not tell the reasons has no such counter, not even at 0.
    deaf = snapshot_of(view_of(readings=(reading_of(),), throttle_seconds=seconds))
    assert rows(deaf, catalog.THROTTLE_SECONDS) == {}


@pytest.mark.parametrize(
    ("standing", "wanted"),
    [
        # A board that needs no licence has no row: 0 would read as a fault.
        (0.0, {}),
        (1.0, {("0", "GPU-1"): 0.0}),
        (2.0, {("0", "GPU-1"): 1.0}),
    ],
)
def test_a_licence_has_a_row_where_one_is_needed(
    standing: float, wanted: dict[tuple[str, str], float]
) -> None:
    reading = reading_of(Cadence.STATIC, values={Raw.VGPU_LICENSE: standing})
    snapshot = snapshot_of(view_of(readings=(reading,)))
    assert rows(snapshot, board.VGPU_LICENSE_ACTIVE) == wanted


def test_capability_rows_only_where_something_is_missing() -> None:
    missing = {
        "veo_gpu_encoder_utilization_ratio": WhyNot.NOT_SUPPORTED,
        "veo_gpu_throttle_seconds_total": WhyNot.NOT_PERMITTED,
    }
    assert rows(snapshot_of(view_of(missing=missing)), catalog.CAPABILITY_MISSING) == {
        ("0", "GPU-1", "veo_gpu_encoder_utilization_ratio", "not_supported"): 1,
        ("0", "GPU-1", "veo_gpu_throttle_seconds_total", "not_permitted"): 1,
    }
    assert rows(snapshot_of(view_of()), catalog.CAPABILITY_MISSING) == {}


def test_errors_and_overdue_calls_of_gpu_and_driver() -> None:
    gpu = view_of(
        errors={("nvmlDeviceGetPowerUsage", 999): 2, ("nvmlDeviceGetUUID", -2): 1},
        overdue_call=OverdueCall(function="nvmlDeviceGetUUID", seconds=7.5),
        implausible_readings=4,
    )
    driver = Driver(fault="", overdue_call=OverdueCall(function="nvmlDeviceGetCount", seconds=3))
    found = page(snapshot_of(gpu, driver=driver))
    assert found[catalog.NVML_ERRORS] == {
        ("0", "GPU-1", "nvmlDeviceGetPowerUsage", "UNKNOWN"): 2,
        ("0", "GPU-1", "nvmlDeviceGetUUID", "OVERDUE"): 1,
    }
    assert found[catalog.CALL_IN_FLIGHT_SECONDS] == {
        ("", "", "nvmlDeviceGetCount"): 3,
        ("0", "GPU-1", "nvmlDeviceGetUUID"): 7.5,
    }
    assert found[catalog.IMPLAUSIBLE_READINGS] == {("0", "GPU-1"): 4}


def test_calls_that_are_not_the_samplers_are_told_beside_the_drivers() -> None:
    elsewhere = CallsElsewhere(
        errors={("nvmlEventSetWait_v2", 15): 3},
        overdue=(OverdueCall(function="nvmlEventSetWait_v2", seconds=12.5),),
    )
    driver = Driver(fault="", errors={("nvmlInit", 9): 1}, elsewhere=elsewhere)
    found = page(snapshot_of(driver=driver))
    assert found[catalog.NVML_ERRORS] == {
        ("", "", "nvmlInit", "DRIVER_NOT_LOADED"): 1,
        ("", "", "nvmlEventSetWait_v2", "GPU_IS_LOST"): 3,
    }
    assert found[catalog.CALL_IN_FLIGHT_SECONDS] == {("", "", "nvmlEventSetWait_v2"): 12.5}


def test_last_success_of_each_group() -> None:
    last = {Cadence.FAST: 1001000.0, Cadence.FULL: 1000999.0, Cadence.STATIC: 0.0}
    assert rows(snapshot_of(last_success_unix_seconds=last), exporter_catalog.LAST_SUCCESS) == {
        ("gpu_fast",): 1001000.0,
        ("gpu_full",): 1000999.0,
    }


def test_families_come_in_the_order_of_the_catalogue() -> None:
    reading = reading_of(values={catalog.TEMPERATURE: 60, catalog.UTILIZATION: 0.5})
    specs = [*page(snapshot_of(view_of(readings=(reading,))))]
    assert specs == [spec for spec in CATALOG if spec in specs]


def test_the_revision_changes_with_the_snapshot_and_with_what_is_withdrawn() -> None:
    reading = reading_of(Cadence.FAST, NOW, values={catalog.POWER: 1.0})
    snapshot = snapshot_of(view_of(readings=(reading,)))
    latest = [snapshot]
    source = GpuSource(lambda: latest[0])
    revision = source.revision(NOW)
    assert source.revision(NOW + 5) == revision
    assert source.revision(NOW + 5.1) != revision
    latest[0] = replace(snapshot, sequence=2)
    assert source.revision(NOW) != revision
