# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""GPUs that are divided, through the real bindings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_nvml.gpu import FakeMigDevice
from tests.gpu.conftest import FakeClock
from tests.gpu.surveying import Surveyed, missing, surveying, told
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.mig import profile_in
from veo_exporter.gpu.readings import Failure, GpuInstance, WhyNot

GIB = 1 << 30
ON = ("veo_gpu_mig_mode",)
PENDING = ("veo_gpu_mig_mode_pending",)


@pytest.fixture
def surveyed(tmp_path: Path, clock: FakeClock) -> Iterator[Surveyed]:
    with surveying(tmp_path, clock) as one:
        yield one


def divide(surveyed: Surveyed, *devices: FakeMigDevice) -> None:
    surveyed.gpu.set(mig_mode=1, mig_mode_pending=1, mig_devices=list(devices))


def small(slot: int, uuid: str, gpu_instance: int, used_gib: int = 1) -> FakeMigDevice:
    return FakeMigDevice(slot, uuid, gpu_instance, 0, 10 * GIB, used_gib * GIB)


def memory_of(gpu_instance: str, uuid: str, *gibibytes: int) -> dict[tuple[str, ...], float]:
    kinds = ("total", "used", "free")
    return {
        (f"veo_gpu_mig_memory_{kind}_bytes", gpu_instance, uuid): number * GIB
        for kind, number in zip(kinds, gibibytes, strict=True)
    }


def test_a_whole_gpu(surveyed: Surveyed) -> None:
    assert told(surveyed.read(), "veo_gpu_mig_") == {ON: 0, PENDING: 0}
    assert surveyed.library.calls("nvmlDeviceGetMaxMigDeviceCount") == 0
    surveyed.gpu.set(mig_mode_pending=1)
    assert told(surveyed.read(), "veo_gpu_mig_") == {ON: 0, PENDING: 1}


def test_a_board_that_cannot_be_divided(surveyed: Surveyed) -> None:
    surveyed.gpu.set(mig_mode=None, mig_mode_pending=None)
    reading = surveyed.read()
    assert told(reading, "veo_gpu_mig_") == {}
    assert missing(reading, "veo_gpu_mig_") == {*ON, *PENDING}
    surveyed.read(skipped=reading.missing)
    assert surveyed.library.calls("nvmlDeviceGetMigMode") == 1


def test_instances_with_empty_slots_between(surveyed: Surveyed) -> None:
    divide(surveyed, small(0, "MIG-a", 9, used_gib=4), small(5, "MIG-b", 3, used_gib=1))
    reading = surveyed.read()
    assert told(reading, "veo_gpu_mig_") == {
        ON: 1,
        PENDING: 1,
        ("veo_gpu_mig_info", "MIG-a", "1g.10gb", "9", "0"): 1,
        ("veo_gpu_mig_info", "MIG-b", "1g.10gb", "3", "0"): 1,
        **memory_of("9", "MIG-a", 10, 4, 6),
        **memory_of("3", "MIG-b", 10, 1, 9),
    }
    assert (reading.failures, reading.code) == ((), 0)
    assert surveyed.device.bookmarks.gpu_instances == (
        GpuInstance(9, "MIG-a"),
        GpuInstance(3, "MIG-b"),
    )


@pytest.mark.parametrize("code", [2, 6])
def test_both_answers_of_an_empty_slot(surveyed: Surveyed, code: int) -> None:
    divide(surveyed, small(0, "MIG-a", 1))
    surveyed.gpu.fail("nvmlDeviceGetMigDeviceHandleByIndex", code)
    reading = surveyed.read()
    assert told(reading, "veo_gpu_mig_") == {ON: 1, PENDING: 1}
    assert reading.failures == ()


def test_compute_instances_share_the_memory_of_their_gpu_instance(surveyed: Surveyed) -> None:
    """It is counted once, under the UUID of the lowest of them."""
    shared = {"gpu_slices": 3, "memory_total_bytes": 40 * GIB, "memory_used_bytes": 30 * GIB}
    divide(
        surveyed,
        FakeMigDevice(0, "MIG-b", 1, 1, compute_slices=2, **shared),
        FakeMigDevice(1, "MIG-a", 1, 0, compute_slices=1, **shared),
    )
    assert told(surveyed.read(), "veo_gpu_mig_") == {
        ON: 1,
        PENDING: 1,
        ("veo_gpu_mig_info", "MIG-b", "2c.3g.40gb", "1", "1"): 1,
        ("veo_gpu_mig_info", "MIG-a", "1c.3g.40gb", "1", "0"): 1,
        **memory_of("1", "MIG-a", 40, 30, 10),
    }


def test_divided_anew_while_running(surveyed: Surveyed) -> None:
    """The id of a GPU instance is used again; the UUID tells the two apart."""
    divide(surveyed, small(0, "MIG-a", 1), small(1, "MIG-b", 2))
    surveyed.read()
    divide(
        surveyed, FakeMigDevice(0, "MIG-c", 1, 0, 80 * GIB, 2 * GIB, gpu_slices=7, compute_slices=7)
    )
    assert told(surveyed.read(), "veo_gpu_mig_") == {
        ON: 1,
        PENDING: 1,
        ("veo_gpu_mig_info", "MIG-c", "7g.80gb", "1", "0"): 1,
        **memory_of("1", "MIG-c", 80, 2, 78),
    }
    surveyed.gpu.set(mig_mode=0, mig_mode_pending=0, mig_devices=[])
    assert told(surveyed.read(), "veo_gpu_mig_") == {ON: 0, PENDING: 0}
    assert surveyed.device.bookmarks.gpu_instances == ()


def test_a_device_met_in_two_slots_has_one_row(surveyed: Surveyed) -> None:
    divide(surveyed, small(0, "MIG-a", 1), small(1, "MIG-a", 1))
    infos = list(told(surveyed.read(), "veo_gpu_mig_info"))
    assert infos == [("veo_gpu_mig_info", "MIG-a", "1g.10gb", "1", "0")]


def test_memory_that_fails_costs_the_memory(surveyed: Surveyed) -> None:
    divide(surveyed, small(0, "MIG-a", 1))
    surveyed.gpu.fail("nvmlDeviceGetMemoryInfo", 999)
    reading = surveyed.read()
    assert ("veo_gpu_mig_info", "MIG-a", "1g.10gb", "1", "0") in told(reading, "veo_gpu_mig_")
    assert reading.failures == (Failure(function="nvmlDeviceGetMemoryInfo", code=999),)
    assert reading.code == 0


def test_instances_that_we_may_not_see(surveyed: Surveyed) -> None:
    divide(surveyed, small(0, "MIG-a", 1))
    surveyed.gpu.fail("nvmlDeviceGetMigDeviceHandleByIndex", 4)
    reading = surveyed.read()
    assert told(reading, "veo_gpu_mig_") == {ON: 1, PENDING: 1}
    assert missing(reading, "veo_gpu_mig_") == {"veo_gpu_mig_info"}
    assert set(reading.missing.values()) >= {WhyNot.NOT_PERMITTED}


def test_a_gpu_lost_meanwhile_says_nothing_more(surveyed: Surveyed) -> None:
    divide(surveyed, small(0, "MIG-a", 1))
    surveyed.gpu.fail("nvmlDeviceGetMigDeviceHandleByIndex", 15)
    reading = surveyed.read()
    assert (reading.code, reading.values, reading.rows) == (15, {}, ())


def test_what_stays_with_the_gpu(surveyed: Surveyed) -> None:
    divide(surveyed, small(0, "MIG-a", 1))
    assert surveyed.read().values[catalog.MEMORY_CLOCK] == 2619e6


def test_profiles_are_read_from_names() -> None:
    assert profile_in("NVIDIA H100 80GB HBM3 MIG 1g.10gb") == "1g.10gb"
    assert profile_in("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb") == "1c.3g.20gb"
    assert profile_in("NVIDIA H100 80GB HBM3") == "unknown"
