# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Device ids of all plugins, to the GPUs that they mean."""

import pytest

from veo_exporter.kubernetes import Allocation, GpuIdentity, MigIdentity
from veo_exporter.kubernetes.devices import Row, bounded, resolve

GPU_A = "GPU-8f3a1c00-5d2e-4b71-9c06-3e7700a1b200"
GPU_B = "GPU-8f3a1c01-5d2e-4b71-9c06-3e7700a1b201"
MIG_1 = "MIG-1a2b3c4d-0000-5e6f-8a9b-0c1d2e3f4a5b"
MIG_2 = "MIG-1a2b3c4d-0000-5e6f-8a9b-0c1d2e3f4a5c"
MIG_3 = "MIG-1a2b3c4d-0000-5e6f-8a9b-0c1d2e3f4a5d"

# The second GPU's device node is nvidia5 though its index is 1, and it is cut up: instance 7 is one MIG
# device, instance 9 two.
GPUS = (
    GpuIdentity(index=0, uuid=GPU_A, minor=0),
    GpuIdentity(
        index=1,
        uuid=GPU_B,
        minor=5,
        mig=(MigIdentity(MIG_1, 7), MigIdentity(MIG_2, 9), MigIdentity(MIG_3, 9)),
    ),
)


def rows(*devices: str) -> tuple[Row, ...]:
    return resolve([Allocation("video", "pod", "main", name) for name in devices], GPUS).rows


@pytest.mark.parametrize(
    ("device", "place"),
    [
        (GPU_A, ("0", GPU_A, "")),
        (GPU_B, ("1", GPU_B, "")),
        # Shares, of NVIDIA's plugin (by time and by MPS) and of GKE's.
        (f"{GPU_A}::0", ("0", GPU_A, "")),
        (f"{GPU_A}::13", ("0", GPU_A, "")),
        ("nvidia5/vgpu2", ("1", GPU_B, "")),
        ("nvidia0", ("0", GPU_A, "")),
        ("nvidia5", ("1", GPU_B, "")),
        # MIG: by UUID, by GPU instance, in shares, and as drivers before 470 wrote it.
        (MIG_1, ("1", GPU_B, MIG_1)),
        (f"{MIG_1}::2", ("1", GPU_B, MIG_1)),
        ("nvidia5/gi7", ("1", GPU_B, MIG_1)),
        ("nvidia5/gi7/vgpu1", ("1", GPU_B, MIG_1)),
        ("nvidia5/gi9", ("1", GPU_B, "unknown")),
        ("nvidia0/gi1", ("0", GPU_A, "unknown")),
        (f"MIG-{GPU_A}/1/0", ("0", GPU_A, f"MIG-{GPU_A}/1/0")),
        # Dynamic Resource Allocation.
        ("gpu-5", ("1", GPU_B, "")),
        ("gpu-5-mig-19-2-1", ("1", GPU_B, "unknown")),
        # NVML knows nothing of these: they name themselves.
        ("GPU-0badcafe", ("", "GPU-0badcafe", "")),
        ("MIG-0badcafe", ("", "", "MIG-0badcafe")),
        ("MIG-GPU-0badcafe/1/0", ("", "GPU-0badcafe", "MIG-GPU-0badcafe/1/0")),
    ],
)
def test_a_device_is_found(device: str, place: tuple[str, str, str]) -> None:
    assert rows(device) == (Row(*place, "pod", "video", "main"),)


@pytest.mark.parametrize(
    "device",
    ["", "nvidia1", "nvidia", "nvidia5/x", "nvidia5/gi", "nvidiactl", "mlx5_0", "0", "gpu-1", "gpu-",
     "0000:1b:00.0", "GPU-", "GPU-a/b", "MIG-", "::1", "nvidia99999999999999999999", f"x{GPU_A}"]
)  # fmt: skip
def test_what_is_no_known_gpu_has_no_row_and_is_named(device: str) -> None:
    found = resolve([Allocation("video", "pod", "main", device)], GPUS)
    assert found.rows == ()
    assert found.unresolved == (device,)


def test_a_shared_gpu_has_a_row_for_each_holder() -> None:
    found = resolve(
        [
            Allocation("video", "b", "main", f"{GPU_A}::0"),
            Allocation("video", "a", "main", f"{GPU_A}::1"),
            Allocation("video", "a", "sidecar", f"{GPU_A}::2"),
        ],
        GPUS,
    )
    assert [(row.uuid, row.pod, row.container) for row in found.rows] == [
        (GPU_A, "a", "main"),
        (GPU_A, "a", "sidecar"),
        (GPU_A, "b", "main"),
    ]


def test_a_container_with_many_shares_of_a_gpu_has_one_row() -> None:
    assert len(rows(f"{GPU_A}::0", f"{GPU_A}::1", "nvidia0", f"{GPU_B}::0")) == 2


def test_a_gpu_that_only_the_bus_knows_is_not_taken_for_another() -> None:
    nameless = GpuIdentity(index=3, uuid="", minor=3)
    held = [Allocation("video", "pod", "main", "nvidia3")]
    assert resolve(held, [nameless]).unresolved == ("nvidia3",)
    lost = GpuIdentity(index=None, uuid=GPU_A, minor=None)
    held = [Allocation("video", "pod", "main", GPU_A)]
    assert resolve(held, [lost]).rows == (Row("", GPU_A, "", "pod", "video", "main"),)


def test_rows_beyond_the_bound_are_left_out_and_the_shown_ones_stay() -> None:
    row = {name: Row("0", GPU_A, "", name, "video", "main") for name in "abcdef"}
    first = bounded([row["d"], row["e"], row["f"]], (), 2)
    assert first == (row["d"], row["e"])
    # Newcomers whose names come first take no place that is taken.
    assert bounded([row[name] for name in "abcdef"], first, 3) == (row["a"], row["d"], row["e"])
    # One went: its place is free.
    assert bounded([row[name] for name in "abdf"], first, 2) == (row["a"], row["d"])
    assert bounded([row["a"]], first, 1) == (row["a"],)
