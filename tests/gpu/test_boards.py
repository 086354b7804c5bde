# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the page says of each kind of board, and what it says is missing; all through the real bindings."""

from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from tests.fake_nvml import FakeField, FakeGpu, FakeNode
from tests.gpu import boards
from tests.gpu.conftest import FakeClock
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog import gpu_engines as engines
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu.capability import SIGNALS, capabilities_missing
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Reading, Signal, WhyNot, signal_name
from veo_exporter.gpu.session import find_gpu, open_session

NOT_SUPPORTED = WhyNot.NOT_SUPPORTED
ENCODER_SESSIONS = {
    "veo_gpu_encoder_sessions",
    "veo_gpu_encoder_frame_rate_hertz",
    "veo_gpu_encoder_latency_seconds",
    "veo_gpu_encoder_codec_sessions",
    "veo_gpu_encoder_codec_frame_rate_hertz",
    "veo_gpu_encoder_codec_latency_seconds",
}
OLD_LOCATIONS = "l1_cache|l2_cache|register_file|texture_memory|texture_shared_memory|cbu"
ECC_OF_OLD_BOARDS = {
    f'veo_gpu_ecc_errors_total{{location=~"{OLD_LOCATIONS}"}}',
    f'veo_gpu_ecc_aggregate_errors_total{{location=~"{OLD_LOCATIONS}"}}',
}
ECC_COUNTERS = {"veo_gpu_ecc_errors_total", "veo_gpu_ecc_aggregate_errors_total"}
PAGES = {"veo_gpu_retired_pages_total", "veo_gpu_page_retirement_pending"}
ROWS = {
    "veo_gpu_remapped_rows_total",
    "veo_gpu_row_remap_pending",
    "veo_gpu_row_remap_failure",
    "veo_gpu_row_remap_banks",
}
NVLINK_TRAFFIC = {
    "veo_gpu_nvlink_transmit_bytes_total",
    "veo_gpu_nvlink_receive_bytes_total",
    "veo_gpu_nvlink_raw_transmit_bytes_total",
    "veo_gpu_nvlink_raw_receive_bytes_total",
    "veo_gpu_nvlink_errors_total",
}
MARGIN = {
    "veo_gpu_temperature_margin_celsius",
    "veo_gpu_temperature_margin_threshold_celsius",
}
# What the fake library has no answer for on any of them.
EVERYWHERE = {
    "veo_gpu_nvlink_packet_errors_total",
    'veo_gpu_throttle_driver_seconds_total{reason=~"sw_power_cap|sync_boost"}',
}
NVLINK_BEFORE_5 = {'veo_gpu_nvlink_errors_total{error=~"crc_data|ecc_data"}'}

Read = Callable[[FakeGpu], dict[Cadence, Reading]]


@pytest.fixture
def read(tmp_path: Path, clock: FakeClock) -> Read:
    """Reads all groups of a node's only GPU."""

    def read_all(gpu: FakeGpu) -> dict[Cadence, Reading]:
        FakeNode(tmp_path / "scenario", gpus=[gpu]).attach()
        line = Line(pynvml, clock)
        assert open_session(line).code == 0
        device = find_gpu(line, 0).device
        assert device is not None
        return {cadence: read_gpu(line, device, cadence, (), clock) for cadence in Cadence}

    return read_all


def values(readings: dict[Cadence, Reading]) -> dict[str, float]:
    return {
        signal_name(signal): value
        for reading in readings.values()
        for signal, value in reading.values.items()
    }


def missing(readings: dict[Cadence, Reading]) -> dict[str, WhyNot]:
    """Of what is asked for by name; surveys have tests of their own."""
    by_name = set(SIGNALS)
    return capabilities_missing(
        {signal: why for signal, why in reading.missing.items() if signal in by_name}
        for reading in readings.values()
    )


@pytest.mark.parametrize(
    ("gpu", "absent"),
    [
        (
            boards.data_centre,
            EVERYWHERE
            | NVLINK_BEFORE_5
            | ENCODER_SESSIONS
            | {"veo_gpu_encoder_utilization_ratio"}
            | ECC_OF_OLD_BOARDS
            | PAGES
            | {"veo_gpu_fan_speed_ratio"},
        ),
        (
            boards.workstation,
            EVERYWHERE
            | NVLINK_BEFORE_5
            | ECC_COUNTERS
            | PAGES
            | ROWS
            | MARGIN
            | {"veo_gpu_jpeg_utilization_ratio", "veo_gpu_memory_temperature_celsius"},
        ),
        (
            boards.consumer,
            EVERYWHERE
            | NVLINK_TRAFFIC
            | ECC_COUNTERS
            | PAGES
            | ROWS
            | {
                "veo_gpu_memory_temperature_celsius",
                "veo_gpu_ecc_mode",
                "veo_gpu_ecc_mode_pending",
                "veo_gpu_graphics_clock_application_hertz",
                "veo_gpu_memory_clock_application_hertz",
            },
        ),
        (
            boards.inference,
            EVERYWHERE
            | NVLINK_TRAFFIC
            | ECC_OF_OLD_BOARDS
            | PAGES
            | {"veo_gpu_fan_speed_ratio", "veo_gpu_memory_temperature_celsius"},
        ),
    ],
)
def test_what_is_absent_has_a_capability_row_and_nothing_else_is(
    read: Read, gpu: Callable[[], FakeGpu], absent: set[str]
) -> None:
    readings = read(gpu())
    assert missing(readings) == dict.fromkeys(absent, NOT_SUPPORTED)
    for reading in readings.values():
        assert (reading.failures, reading.implausible, reading.code) == ((), 0, 0)
    told: set[Signal] = {signal for reading in readings.values() for signal in reading.values}
    unsupported: set[Signal] = {
        signal for reading in readings.values() for signal in reading.missing
    }
    # The frame rates of codecs at rest are neither: there is nothing to tell now.
    at_rest = set(SIGNALS) - told - unsupported
    assert told & unsupported == set()
    assert {signal_name(signal).split("{")[0] for signal in at_rest} <= ENCODER_SESSIONS


def test_units_and_numbers_of_a_data_centre_board(read: Read) -> None:
    told = values(
        read(
            boards.data_centre().set(
                throttle_software_thermal_nanoseconds=2_500_000_000,
                remapped_rows_uncorrectable=3,
                remapper_banks_max=2557,
                remapper_banks_low=3,
                ecc_errors={
                    **boards.data_centre().ecc_errors,
                    (0, 0, 2): 11,
                    (1, 0, 7): 12,
                    (0, 1, 7): 13,
                    (1, 1, 2): 14,
                },
                pcie_bad_tlp=21,
                pcie_lane_errors=22,
                pcie_replays=23,
                pcie_replay_rollovers=24,
                nvlink_replay_errors=2,
                nvlink_active_mask=(1 << 18) - 1 - (1 << 7),
                recovery_action=4,
            )
        )
    )
    assert told[board.BAR1_TOTAL.name] == 137_438_953_472
    assert told[board.BAR1_USED.name] == 31_457_280
    assert told[catalog.MEMORY_TEMPERATURE.name] == 70
    assert told[board.POWER_INSTANT.name] == 615
    assert told[board.POWER_LIMIT_MIN.name] == 200
    assert told[board.POWER_LIMIT_MAX.name] == 700
    assert told[board.POWER_LIMIT_DEFAULT.name] == 700
    assert told[board.POWER_LIMIT_MANAGEMENT.name] == 700
    assert told['veo_gpu_temperature_threshold_celsius{threshold="gpu_max"}'] == 87
    assert told['veo_gpu_temperature_margin_threshold_celsius{threshold="shutdown"}'] == -8
    assert told[board.TEMPERATURE_MARGIN.name] == 25
    assert told[board.VIDEO_CLOCK.name] == 1_545e6
    assert told[board.GRAPHICS_CLOCK_APPLICATION.name] == 1_980e6
    assert told[board.PERFORMANCE_STATE.name] == 0
    assert told['veo_gpu_throttle_driver_seconds_total{reason="sw_thermal_slowdown"}'] == 2.5
    assert told['veo_gpu_ecc_errors_total{error="corrected",location="device_memory"}'] == 11
    assert told['veo_gpu_ecc_errors_total{error="uncorrected",location="sram"}'] == 12
    assert told['veo_gpu_ecc_aggregate_errors_total{error="corrected",location="sram"}'] == 13
    name = 'veo_gpu_ecc_aggregate_errors_total{error="uncorrected",location="device_memory"}'
    assert told[name] == 14
    assert told[health.ECC_MODE.name] == told[health.ECC_MODE_PENDING.name] == 1
    assert told['veo_gpu_remapped_rows_total{error="uncorrectable"}'] == 3
    assert told['veo_gpu_row_remap_banks{availability="max"}'] == 2557
    assert told['veo_gpu_row_remap_banks{availability="low"}'] == 3
    actions = {name: value for name, value in told.items() if "recovery_action" in name}
    assert len(actions) == 9
    assert [name for name, value in actions.items() if value == 1] == [
        'veo_gpu_recovery_action{action="drain_and_reset"}'
    ]
    assert told['veo_gpu_pcie_errors_total{error="bad_tlp"}'] == 21
    assert told['veo_gpu_pcie_errors_total{error="lane"}'] == 22
    assert told[links.PCIE_REPLAYS.name] == 23
    assert told[links.PCIE_REPLAY_ROLLOVERS.name] == 24
    assert told[links.PCIE_RECOVERIES.name] == 3
    assert told[links.PCIE_TRANSMIT.name] == 3_000_000_000
    assert told[links.PCIE_RECEIVE.name] == 7_000_000_000
    assert told[links.PCIE_WIDTH.name] == told[links.PCIE_WIDTH_MAX.name] == 16
    assert told[links.NVLINK_LINKS.name] == 18
    assert told[links.NVLINK_LINKS_UP.name] == 17
    # 18 links of 50,000,000 KiB each, and of 75,000,000 with the protocol.
    assert told[links.NVLINK_TRANSMIT.name] == 18 * 50_000_000 * 1024
    assert told[links.NVLINK_RAW_RECEIVE.name] == 18 * 75_000_000 * 1024
    # The sum over 18 links that had two each.
    assert told['veo_gpu_nvlink_errors_total{error="replay"}'] == 36


def test_encoder_of_an_inference_board(read: Read) -> None:
    told = values(read(boards.inference()))
    assert told[catalog.ENCODER_UTILIZATION.name] == 0.74
    assert told[engines.ENCODER_SESSIONS.name] == 3
    # (60 + 30 + 24) / 3, and (4 + 8 + 9) ms / 3.
    assert told[engines.ENCODER_FRAME_RATE.name] == 38
    assert told[engines.ENCODER_LATENCY.name] == 0.007
    by_codec = {name: value for name, value in told.items() if "_codec_" in name}
    assert by_codec == {
        'veo_gpu_encoder_codec_sessions{codec="h264"}': 2,
        'veo_gpu_encoder_codec_sessions{codec="hevc"}': 0,
        'veo_gpu_encoder_codec_sessions{codec="av1"}': 1,
        'veo_gpu_encoder_codec_frame_rate_hertz{codec="h264"}': 45,
        'veo_gpu_encoder_codec_frame_rate_hertz{codec="av1"}': 24,
        'veo_gpu_encoder_codec_latency_seconds{codec="h264"}': 0.006,
        'veo_gpu_encoder_codec_latency_seconds{codec="av1"}': 0.009,
    }


def test_an_encoder_at_rest_is_zero_and_not_absent(read: Read) -> None:
    told = values(read(boards.workstation()))
    assert told[catalog.ENCODER_UTILIZATION.name] == told[engines.ENCODER_SESSIONS.name] == 0
    assert told['veo_gpu_encoder_codec_sessions{codec="hevc"}'] == 0
    assert engines.ENCODER_FRAME_RATE.name not in told


def test_a_fan_may_be_louder_than_intended(read: Read) -> None:
    assert values(read(boards.consumer()))[board.FAN_SPEED.name] == 1.04


def test_a_board_without_nvlink_has_none_of_them_up(read: Read) -> None:
    told = values(read(boards.inference()))
    assert (told[links.NVLINK_LINKS.name], told[links.NVLINK_LINKS_UP.name]) == (0, 0)


def test_an_idle_board_is_below_its_best_link_and_state(read: Read) -> None:
    told = values(read(boards.consumer()))
    assert (told[links.PCIE_GENERATION.name], told[links.PCIE_GENERATION_MAX.name]) == (1, 4)
    assert told[board.PERFORMANCE_STATE.name] == 8


def test_a_performance_state_that_the_driver_cannot_tell_is_no_capability(read: Read) -> None:
    readings = read(boards.consumer().set(performance_state=32))
    assert board.PERFORMANCE_STATE.name not in values(readings)
    assert board.PERFORMANCE_STATE.name not in missing(readings)


def test_nvlink_5_counts_bytes_and_packets_errors(read: Read) -> None:
    gpu = boards.with_everything(boards.data_centre()).set(
        nvlink_transmit_kib=None, nvlink_receive_kib=None
    )
    gpu.fields[202, boards.ALL_LINKS] = FakeField(4_294_967_296)
    gpu.fields[204, boards.ALL_LINKS] = FakeField(8_589_934_592)
    gpu.fields[219, boards.ALL_LINKS] = FakeField(5)
    told = values(read(gpu))
    assert told[links.NVLINK_TRANSMIT.name] == 4_294_967_296
    assert told[links.NVLINK_RECEIVE.name] == 8_589_934_592
    assert told['veo_gpu_nvlink_packet_errors_total{error="effective"}'] == 5


def test_mig_takes_utilization_away_and_leaves_the_rest(read: Read) -> None:
    functions = ("UtilizationRates", "DecoderUtilization", "JpgUtilization", "OfaUtilization")
    gpu = boards.data_centre().set(mig_mode=1)
    for function in functions:
        gpu.unsupport(f"nvmlDeviceGet{function}")
    readings = read(gpu)
    absent = {
        "veo_gpu_utilization_ratio",
        "veo_gpu_memory_copy_utilization_ratio",
        "veo_gpu_decoder_utilization_ratio",
        "veo_gpu_jpeg_utilization_ratio",
        "veo_gpu_ofa_utilization_ratio",
    }
    assert absent <= set(missing(readings))
    told = values(readings)
    assert absent & set(told) == set()
    assert told[catalog.POWER.name] == 612
    assert told[catalog.TEMPERATURE.name] == 62


def test_a_board_with_everything_has_no_capability_rows(read: Read) -> None:
    readings = read(boards.with_everything(boards.data_centre()))
    assert missing(readings) == {}
    assert set(SIGNALS) <= {signal for one in readings.values() for signal in one.values}


CALLS_OF_A_FULL_SWEEP = {
    "nvmlDeviceGetTotalEnergyConsumption": 1,
    # Memory, graphics and video.
    "nvmlDeviceGetClockInfo": 3,
    "nvmlDeviceGetDecoderUtilization": 1,
    "nvmlDeviceGetJpgUtilization": 1,
    "nvmlDeviceGetOfaUtilization": 1,
    "nvmlDeviceGetBAR1MemoryInfo": 1,
    "nvmlDeviceGetPerformanceState": 1,
    "nvmlDeviceGetMarginTemperature": 1,
    "nvmlDeviceGetCurrPcieLinkGeneration": 1,
    "nvmlDeviceGetCurrPcieLinkWidth": 1,
    # Corrected and uncorrected, in device memory and in SRAM.
    "nvmlDeviceGetMemoryErrorCounter": 4,
    # All fields at once.
    "nvmlDeviceGetFieldValues": 1,
    # What is known to be missing is not asked for.
    "nvmlDeviceGetEncoderUtilization": 0,
    "nvmlDeviceGetEncoderStats": 0,
    "nvmlDeviceGetEncoderCapacity": 0,
    "nvmlDeviceGetFanSpeed": 0,
    # It blocks for 20 ms.
    "nvmlDeviceGetPcieThroughput": 0,
}


def test_calls_of_a_full_sweep(tmp_path: Path, clock: FakeClock) -> None:
    library = FakeNode(tmp_path / "scenario", gpus=[boards.data_centre()]).attach()
    line = Line(pynvml, clock)
    open_session(line)
    device = find_gpu(line, 0).device
    assert device is not None
    known = read_gpu(line, device, Cadence.FULL, (), clock).missing
    before = {function: library.calls(function) for function in CALLS_OF_A_FULL_SWEEP}
    read_gpu(line, device, Cadence.FULL, known, clock)
    calls = {function: library.calls(function) - count for function, count in before.items()}
    assert calls == CALLS_OF_A_FULL_SWEEP
