# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of GPUs that are divided (MIG). None of them is named as one of a whole GPU: no sum counts twice."""

from typing import Final

from veo_exporter.catalog.gpu import IDENTITY, gauge
from veo_exporter.catalog.gpu_profiling import PART
from veo_exporter.catalog.spec import Label
from veo_exporter.units import Unit

GPU_INSTANCE: Final = Label(
    "gpu_instance",
    "id of the GPU instance; after a new division another instance may have it",
    "GPU instances of a GPU",
)
MIG_UUID: Final = Label(
    "mig_uuid",
    "UUID of the MIG device, of the first where several share a GPU instance; empty for a whole GPU, "
    "unknown where only the GPU is known",
    "MIG devices of the node",
)
INSTANCE: Final = (*IDENTITY, GPU_INSTANCE, MIG_UUID)

MIG_MODE: Final = gauge("veo_gpu_mig_mode", Unit.NONE, "1 while the GPU is divided (MIG), else 0.")
MIG_MODE_PENDING: Final = gauge(
    "veo_gpu_mig_mode_pending", Unit.NONE, "The same as it will be after the next reset of the GPU."
)
MIG_INFO: Final = gauge(
    "veo_gpu_mig_info",
    Unit.INFO,
    "A MIG device: a compute instance of a GPU instance; always 1. Join on (instance, mig_uuid), or on "
    "(instance, uuid, gpu_instance) where several share a GPU instance.",
    (
        *IDENTITY,
        MIG_UUID,
        Label("mig_profile", "how the device was cut, as 1g.10gb", "profiles in use"),
        GPU_INSTANCE,
        Label("compute_instance", "id within the GPU instance", "7"),
    ),
)
MIG_MEMORY_TOTAL: Final = gauge(
    "veo_gpu_mig_memory_total_bytes",
    Unit.BYTES,
    "Device memory of the GPU instance. Its compute instances share it: it is counted once.",
    INSTANCE,
)
MIG_MEMORY_USED: Final = gauge(
    "veo_gpu_mig_memory_used_bytes",
    Unit.BYTES,
    "Device memory of the GPU instance in use; veo_gpu_memory_used_bytes of the GPU contains it.",
    INSTANCE,
)
MIG_MEMORY_FREE: Final = gauge(
    "veo_gpu_mig_memory_free_bytes",
    Unit.BYTES,
    "Device memory of the GPU instance that is free.",
    INSTANCE,
)
MIG_PROFILING_ACTIVE: Final = gauge(
    "veo_gpu_mig_profiling_active_ratio",
    Unit.RATIO,
    "As veo_gpu_profiling_active_ratio, of the GPU instance alone.",
    (*INSTANCE, PART),
)
MIG_PROFILING_OCCUPANCY: Final = gauge(
    "veo_gpu_mig_profiling_sm_occupancy_ratio",
    Unit.RATIO,
    "As veo_gpu_profiling_sm_occupancy_ratio, of the GPU instance alone.",
    INSTANCE,
)
MIG_PROFILING_PCIE_TRANSMIT: Final = gauge(
    "veo_gpu_mig_profiling_pcie_transmit_bytes_per_second",
    Unit.BYTES_PER_SECOND,
    "As veo_gpu_profiling_pcie_transmit_bytes_per_second, of the GPU instance alone.",
    INSTANCE,
)
MIG_PROFILING_PCIE_RECEIVE: Final = gauge(
    "veo_gpu_mig_profiling_pcie_receive_bytes_per_second",
    Unit.BYTES_PER_SECOND,
    "As veo_gpu_profiling_pcie_receive_bytes_per_second, of the GPU instance alone.",
    INSTANCE,
)
