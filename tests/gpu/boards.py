# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Boards of four kinds as fake GPUs: what each supports, by its data sheet and NVML's documentation."""

from tests.fake_nvml.gpu import (
    FakeEncoderSession,
    FakeField,
    FakeGpu,
    FakeLicensableFeature,
    FakeMigDevice,
    h100,
)

ALL_LINKS = 0xFFFFFFFF
H264, HEVC, AV1 = range(3)

# Ampere and later count in device memory (2) and SRAM (7) alone.
_ECC_COUNTED = {
    (error, counter, location): 0 for error in (0, 1) for counter in (0, 1) for location in (2, 7)
}
_NO_NVLINK = {
    "nvlink_count": 0,
    "nvlink_active_mask": 0,
    "fabric": None,
}
_NO_REMAPPER = {
    "remapped_rows_correctable": None,
    "remapped_rows_uncorrectable": None,
    "remapped_rows_pending": None,
    "remapped_rows_failure": None,
    "remapper_banks_max": None,
}
_NO_MARGIN = {
    "temperature_margin_celsius": None,
    "temperature_limit_shutdown_celsius": None,
    "temperature_limit_slowdown_celsius": None,
    "temperature_limit_memory_max_celsius": None,
    "temperature_limit_gpu_max_celsius": None,
}


def data_centre() -> FakeGpu:
    """H100 SXM: NVLink, ECC, HBM, no encoder, no fan."""
    return h100(0)


def workstation() -> FakeGpu:
    """RTX A6000: Ampere, a fan, an encoder without AV1, ECC switched off, a bridge of four NVLinks."""
    return h100(0).set(
        name="NVIDIA RTX A6000",
        brand=13,
        architecture=7,
        compute_capability_major=8,
        compute_capability_minor=6,
        board_part_number="900-5G133-2200-000",
        encoder_capacity_h264_percent=100,
        encoder_capacity_hevc_percent=100,
        # Of this generation, GA100 alone has a JPEG decoder.
        jpeg_utilization_percent=None,
        memory_temperature_celsius=None,
        fan_count=1,
        fan_speed_percent=31,
        ecc_mode=0,
        ecc_mode_pending=0,
        ecc_errors={},
        nvlink_count=4,
        nvlink_active_mask=0b1111,
        pcie_generation=4,
        pcie_generation_max=4,
        **_NO_MARGIN,
        **_NO_REMAPPER,
    )


def consumer() -> FakeGpu:
    """GeForce RTX 4090: Ada, encoder with AV1, no NVLink, no ECC counters, no application clocks."""
    return h100(0).set(
        name="NVIDIA GeForce RTX 4090",
        brand=5,
        architecture=8,
        compute_capability_major=8,
        compute_capability_minor=9,
        # NVML gives a serial and a part number for boards of the data centre and the workstation.
        serial=None,
        board_part_number=None,
        encoder_capacity_h264_percent=100,
        encoder_capacity_hevc_percent=100,
        encoder_capacity_av1_percent=100,
        memory_temperature_celsius=None,
        fan_count=2,
        fan_speed_percent=104,
        clock_graphics_application_mhz=None,
        clock_sm_application_mhz=None,
        clock_memory_application_mhz=None,
        ecc_mode=None,
        ecc_mode_pending=None,
        ecc_errors={},
        pcie_generation=1,
        pcie_generation_max=4,
        performance_state=8,
        **_NO_NVLINK,
        **_NO_REMAPPER,
    )


def inference() -> FakeGpu:
    """L4: Ada in the data centre, three codecs at work, ECC, no fan, no NVLink."""
    return h100(0).set(
        name="NVIDIA L4",
        brand=14,
        architecture=8,
        compute_capability_major=8,
        compute_capability_minor=9,
        encoder_utilization_percent=74,
        encoder_capacity_h264_percent=20,
        encoder_capacity_hevc_percent=20,
        encoder_capacity_av1_percent=20,
        encoder_sessions=[
            FakeEncoderSession(1, 4_200_001, H264, frames_per_second=60, latency_microseconds=4000),
            FakeEncoderSession(2, 4_200_002, H264, frames_per_second=30, latency_microseconds=8000),
            FakeEncoderSession(3, 4_200_003, AV1, frames_per_second=24, latency_microseconds=9000),
        ],
        memory_temperature_celsius=None,
        ecc_errors=dict(_ECC_COUNTED),
        pcie_generation=4,
        pcie_generation_max=4,
        **_NO_NVLINK,
    )


def with_everything(gpu: FakeGpu) -> FakeGpu:
    """A board that no factory makes: it supports all that any board does."""
    errors = {
        (error, counter, place): 0 for error in (0, 1) for counter in (0, 1) for place in range(8)
    }
    return gpu.set(
        encoder_utilization_percent=50,
        encoder_capacity_h264_percent=50,
        encoder_sessions=[
            FakeEncoderSession(codec + 1, 4_200_000 + codec, codec) for codec in (H264, HEVC, AV1)
        ],
        fan_count=1,
        fan_speed_percent=40,
        ecc_errors=errors,
        retired_pages_pending=0,
        vgpu_license_supported=1,
        licensable_features=[FakeLicensableFeature(1, 1)],
        fields={
            **{(field_id, None): FakeField(0) for field_id in (29, 30, 74, 76, 45, 160)},
            **{
                (field_id, ALL_LINKS): FakeField(0)
                for field_id in (206, 207, 208, 209, 210, 211, 212, 214, 219, 221)
            },
        },
    )


def divide(gpu: FakeGpu) -> FakeGpu:
    """Switch MIG on: two GPU instances of three sevenths each, one of them with two compute instances."""
    half = {"memory_total_bytes": 42_949_672_960, "gpu_slices": 3}
    return gpu.set(
        mig_mode=1,
        mig_mode_pending=1,
        mig_devices=[
            FakeMigDevice(0, "MIG-0a", 1, 0, memory_used_bytes=1 << 30, compute_slices=1, **half),
            FakeMigDevice(1, "MIG-0b", 1, 1, memory_used_bytes=1 << 30, compute_slices=2, **half),
            FakeMigDevice(2, "MIG-0c", 2, 0, memory_used_bytes=2 << 30, compute_slices=3, **half),
        ],
        mig_gpm={
            (instance, metric): 10 * instance
            for instance in (1, 2)
            for metric in (1, 2, 3, 5, 10, 20, 21)
        },
    )
