# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked, and how answers become base units."""

from collections import Counter
from types import SimpleNamespace

import pynvml
import pytest

from tests.gpu.conftest import ScriptedNvml
from veo_exporter.catalog import Series
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog import gpu_engines as engines
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu.answers import ask_listed
from veo_exporter.gpu.capability import SIGNALS
from veo_exporter.gpu.field_table import FIELDS
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.probes import PROBES, Probe, plausible_limits
from veo_exporter.gpu.readings import Cadence, Device, Raw, Signal, signal_name
from veo_exporter.gpu.texts import DRIVER_TEXTS, TEXTS

ALL = [(cadence, probe) for cadence, probes in PROBES.items() for probe in probes]


def probe_for(signal: Signal) -> Probe:
    (probe,) = [probe for _, probe in ALL if signal in probe.signals]
    return probe


def values(line: Line, device: Device, signal: Signal) -> dict[Signal, float | None]:
    probe = probe_for(signal)
    return dict(zip(probe.signals, probe.read(line, device.handle), strict=True))


def test_each_signal_is_asked_in_one_place() -> None:
    assert set(Counter(SIGNALS).values()) == {1}
    # Two objects may be one series.
    assert set(Counter(map(signal_name, SIGNALS)).values()) == {1}
    assert set(PROBES) == set(FIELDS) == set(Cadence)


def test_windowed_signals_belong_to_the_fast_sample() -> None:
    fast = {signal for probe in PROBES[Cadence.FAST] for signal in probe.signals}
    assert set(catalog.WINDOWS) <= fast
    assert Raw.CLOCK_EVENT_REASONS in fast


def test_base_units(line: Line, first: Device) -> None:
    expected: dict[Signal | str, float] = {
        catalog.UTILIZATION: 0.5,
        catalog.MEMORY_COPY_UTILIZATION: 0.25,
        catalog.MEMORY_TOTAL: 1000,
        catalog.MEMORY_USED: 600,
        catalog.MEMORY_FREE: 300,
        catalog.MEMORY_RESERVED: 100,
        catalog.POWER: 250.0,
        catalog.SM_CLOCK: 1.5e9,
        catalog.TEMPERATURE: 60,
        Raw.CLOCK_EVENT_REASONS: 0,
        catalog.ENERGY: 9000.0,
        catalog.MEMORY_CLOCK: 1.5e9,
        board.GRAPHICS_CLOCK: 1.5e9,
        board.VIDEO_CLOCK: 1.5e9,
        catalog.ENCODER_UTILIZATION: 0.1,
        engines.ENCODER_SESSIONS: 3,
        engines.ENCODER_FRAME_RATE: 30.0,
        engines.ENCODER_LATENCY: 0.004,
        'veo_gpu_encoder_codec_sessions{codec="h264"}': 1,
        'veo_gpu_encoder_codec_sessions{codec="hevc"}': 1,
        'veo_gpu_encoder_codec_sessions{codec="av1"}': 1,
        'veo_gpu_encoder_codec_frame_rate_hertz{codec="h264"}': 30.0,
        'veo_gpu_encoder_codec_frame_rate_hertz{codec="hevc"}': 30.0,
        'veo_gpu_encoder_codec_frame_rate_hertz{codec="av1"}': 30.0,
        'veo_gpu_encoder_codec_latency_seconds{codec="h264"}': 0.004,
        'veo_gpu_encoder_codec_latency_seconds{codec="hevc"}': 0.004,
        'veo_gpu_encoder_codec_latency_seconds{codec="av1"}': 0.004,
        catalog.DECODER_UTILIZATION: 0.2,
        engines.JPEG_UTILIZATION: 0.3,
        engines.OFA_UTILIZATION: 0.4,
        board.BAR1_TOTAL: 256,
        board.BAR1_USED: 16,
        board.PERFORMANCE_STATE: 2,
        board.FAN_SPEED: 0.5,
        board.TEMPERATURE_MARGIN: 25,
        links.PCIE_GENERATION: 4,
        links.PCIE_GENERATION_MAX: 5,
        links.PCIE_WIDTH: 8,
        links.PCIE_WIDTH_MAX: 16,
        board.POWER_LIMIT_MANAGEMENT: 690.0,
        board.POWER_LIMIT_DEFAULT: 680.0,
        board.POWER_LIMIT_MIN: 200.0,
        board.POWER_LIMIT_MAX: 710.0,
        board.GRAPHICS_CLOCK_APPLICATION: 1.4e9,
        board.MEMORY_CLOCK_APPLICATION: 1.4e9,
        Raw.VGPU_LICENSE: 2,
        health.ECC_MODE: 1,
        health.ECC_MODE_PENDING: 0,
        'veo_gpu_row_remap_banks{availability="max"}': 9,
        'veo_gpu_row_remap_banks{availability="high"}': 8,
        'veo_gpu_row_remap_banks{availability="partial"}': 7,
        'veo_gpu_row_remap_banks{availability="low"}': 6,
        'veo_gpu_row_remap_banks{availability="none"}': 5,
        **{
            f'veo_gpu_temperature_threshold_celsius{{threshold="{threshold}"}}': 90
            for threshold in THRESHOLDS
        },
        **{
            f'veo_gpu_ecc{spec}errors_total{{error="{error}",location="{location}"}}': 6
            for spec in ("_", "_aggregate_")
            for error in ECC_ERRORS
            for location in ECC_LOCATIONS
        },
        catalog.POWER_LIMIT: 700.0,
        catalog.SM_CLOCK_MAX: 1.98e9,
        catalog.MEMORY_CLOCK_MAX: 1.98e9,
        board.GRAPHICS_CLOCK_MAX: 1.98e9,
        board.VIDEO_CLOCK_MAX: 1.98e9,
    }
    read: dict[Signal, float | None] = {}
    for _, probe in ALL:
        read |= dict(zip(probe.signals, probe.read(line, first.handle), strict=True))
    assert {key_of(signal): value for signal, value in read.items()} == expected


def key_of(signal: Signal) -> Signal | str:
    """Series are known by their names: another object is another series."""
    return str(signal) if isinstance(signal, Series) else signal


def test_constants_and_functions_are_those_of_the_bindings(
    nvml: ScriptedNvml, first: Device
) -> None:
    calls: list[tuple[str, tuple[object, ...]]] = []

    class Listening(Line):
        def call(self, function: str, *arguments: object) -> object:
            calls.append((function, arguments[1:]))
            return super().call(function, *arguments)

    listening = Listening(nvml, SimpleNamespace(monotonic_seconds=float))
    for _, probe in ALL:
        probe.read(listening, first.handle)
    texts = [function for function, _ in TEXTS.values()]
    for function in [*texts, *DRIVER_TEXTS.values(), *(name for name, _ in calls)]:
        assert hasattr(pynvml, function)
    arguments = {(function, *more) for function, more in calls if more}
    assert arguments == {
        ("nvmlDeviceGetMemoryInfo", pynvml.nvmlMemory_v2),
        ("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU),
        *(("nvmlDeviceGetClockInfo", clock) for clock in CLOCKS),
        *(("nvmlDeviceGetMaxClockInfo", clock) for clock in CLOCKS),
        ("nvmlDeviceGetApplicationsClock", pynvml.NVML_CLOCK_GRAPHICS),
        ("nvmlDeviceGetApplicationsClock", pynvml.NVML_CLOCK_MEM),
        *(("nvmlDeviceGetTemperatureThreshold", threshold) for threshold in THRESHOLDS.values()),
        *(
            ("nvmlDeviceGetMemoryErrorCounter", error, counter, location)
            for error in ECC_ERRORS.values()
            for counter in (pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC)
            for location in ECC_LOCATIONS.values()
        ),
    }


CLOCKS = (
    pynvml.NVML_CLOCK_GRAPHICS,
    pynvml.NVML_CLOCK_SM,
    pynvml.NVML_CLOCK_MEM,
    pynvml.NVML_CLOCK_VIDEO,
)
THRESHOLDS = {
    "shutdown": pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    "slowdown": pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    "memory_max": pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
    "gpu_max": pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
}
ECC_ERRORS = {
    "corrected": pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
    "uncorrected": pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
}
ECC_LOCATIONS = {
    "l1_cache": pynvml.NVML_MEMORY_LOCATION_L1_CACHE,
    "l2_cache": pynvml.NVML_MEMORY_LOCATION_L2_CACHE,
    "device_memory": pynvml.NVML_MEMORY_LOCATION_DEVICE_MEMORY,
    "register_file": pynvml.NVML_MEMORY_LOCATION_REGISTER_FILE,
    "texture_memory": pynvml.NVML_MEMORY_LOCATION_TEXTURE_MEMORY,
    "texture_shared_memory": pynvml.NVML_MEMORY_LOCATION_TEXTURE_SHM,
    "cbu": pynvml.NVML_MEMORY_LOCATION_CBU,
    "sram": pynvml.NVML_MEMORY_LOCATION_SRAM,
}


def test_names_stand_at_the_numbers_of_the_header() -> None:
    assert {name: place for place, name in enumerate(board.THRESHOLDS)} == THRESHOLDS
    assert {name: place for place, name in enumerate(health.ECC_ERRORS_KNOWN)} == ECC_ERRORS
    assert {name: place for place, name in enumerate(health.ECC_LOCATIONS)} == ECC_LOCATIONS
    assert {name: place for place, name in enumerate(engines.CODECS)} == {
        "h264": pynvml.NVML_ENCODER_QUERY_H264,
        "hevc": pynvml.NVML_ENCODER_QUERY_HEVC,
        "av1": pynvml.NVML_ENCODER_QUERY_AV1,
    }
    actions = {
        name.removeprefix("NVML_GPU_RECOVERY_ACTION_").lower(): value
        for name, value in vars(pynvml).items()
        if name.startswith("NVML_GPU_RECOVERY_ACTION_")
    }
    assert {name: place for place, name in enumerate(health.RECOVERY_ACTIONS)} == actions


@pytest.mark.parametrize(("code", "seen"), [(2, 3), (3, 3), (999, 999)])
def test_a_number_that_an_older_library_does_not_list_is_not_supported(
    line: Line, first: Device, nvml: ScriptedNvml, code: int, seen: int
) -> None:
    nvml.codes["nvmlDeviceGetMaxClockInfo", "GPU-1"] = code
    with pytest.raises(NvmlError) as caught:
        ask_listed(float, "nvmlDeviceGetMaxClockInfo", 77)(line, first.handle)
    assert caught.value.code == seen


class OldMemory:
    """A library that knows one form of memory alone."""

    NVMLError = ScriptedNvml.NVMLError

    def __init__(self, code: int) -> None:
        self.code = code

    def nvmlDeviceGetMemoryInfo(self, _gpu: object, version: int | None = None) -> object:  # noqa: N802
        if version is not None:
            raise self.NVMLError(self.code)
        return SimpleNamespace(total=1000, used=700, free=300)


@pytest.mark.parametrize("code", [13, 25])
def test_drivers_before_510_count_the_reserve_in(code: int, first: Device) -> None:
    line = Line(OldMemory(code), SimpleNamespace(monotonic_seconds=float))
    assert values(line, first, catalog.MEMORY_USED) == {
        catalog.MEMORY_TOTAL: 1000,
        catalog.MEMORY_USED: 700,
        catalog.MEMORY_FREE: 300,
        catalog.MEMORY_RESERVED: None,
    }


@pytest.mark.parametrize("code", [3, 15, 999])
def test_other_failures_of_memory_are_no_reason_to_ask_in_the_old_way(
    code: int, first: Device
) -> None:
    line = Line(OldMemory(code), SimpleNamespace(monotonic_seconds=float))
    with pytest.raises(NvmlError) as caught:
        values(line, first, catalog.MEMORY_USED)
    assert caught.value.code == code


def test_clock_event_reasons_under_their_older_name(first: Device) -> None:
    older = SimpleNamespace(
        NVMLError=ScriptedNvml.NVMLError, nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x20
    )
    line = Line(older, SimpleNamespace(monotonic_seconds=float))
    assert values(line, first, Raw.CLOCK_EVENT_REASONS) == {Raw.CLOCK_EVENT_REASONS: 0x20}


def test_a_library_without_either_name(line: Line, first: Device, nvml: ScriptedNvml) -> None:
    nvml.absent.add("nvmlDeviceGetCurrentClocksEventReasons")
    with pytest.raises(NvmlError) as caught:
        values(line, first, Raw.CLOCK_EVENT_REASONS)
    assert caught.value.code == 13


@pytest.mark.parametrize(
    ("signal", "value", "can_be"),
    [
        (catalog.UTILIZATION, 0.0, True),
        (catalog.UTILIZATION, 1.0, True),
        (catalog.UTILIZATION, 1.01, False),
        (catalog.ENCODER_UTILIZATION, -0.01, False),
        (catalog.TEMPERATURE, 200.0, True),
        (catalog.TEMPERATURE, 255.0, False),
        (catalog.TEMPERATURE, -5.0, True),
        (board.FAN_SPEED, 1.04, True),
        (board.FAN_SPEED, -0.1, False),
        (board.TEMPERATURE_MARGIN_THRESHOLD.series("shutdown"), -8.0, True),
        (catalog.MEMORY_TEMPERATURE, 255.0, False),
        (catalog.POWER, -1.0, False),
        (catalog.POWER, float("nan"), False),
        (catalog.TEMPERATURE, float("nan"), False),
        (catalog.UTILIZATION, float("nan"), False),
        (Raw.CLOCK_EVENT_REASONS, 0x1FF, True),
    ],
)
def test_what_can_be_true(signal: Signal, value: float, can_be: bool) -> None:
    low, high = plausible_limits(signal)
    assert (low <= value <= high) is can_be
