# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

"""A GPU of a fake node: plain values, and methods that change it."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

State = Literal["ok", "lost", "reset_required", "hidden"]
ValueType = Literal["double", "uint", "ulong", "ulonglong", "longlong", "int", "ushort"]
Number = int | None

_FOLDER = Path(__file__).parent
FUNCTIONS = tuple(
    re.findall(r"^[A-Z]+\((nvml\w+)", (_FOLDER / "functions.inc").read_text(), re.MULTILINE)
)
_VALUES = re.findall(r"^(TEXT|NUMBER)\((\w+)", (_FOLDER / "values.inc").read_text(), re.MULTILINE)
TEXTS = tuple(name for kind, name in _VALUES if kind == "TEXT")
NUMBERS = tuple(name for kind, name in _VALUES if kind == "NUMBER")

# Field values that are a value of the GPU under another name.
_PLAIN_FIELDS: dict[int, tuple[ValueType, str]] = {
    1: ("uint", "ecc_mode"),
    2: ("uint", "ecc_mode_pending"),
    31: ("uint", "retired_pages_pending"),
    82: ("uint", "memory_temperature_celsius"),
    83: ("ulonglong", "energy_millijoules"),
    91: ("uint", "nvlink_count"),
    94: ("uint", "pcie_replays"),
    95: ("uint", "pcie_replay_rollovers"),
    142: ("uint", "remapped_rows_correctable"),
    143: ("uint", "remapped_rows_uncorrectable"),
    144: ("uint", "remapped_rows_pending"),
    145: ("uint", "remapped_rows_failure"),
    169: ("uint", "pcie_recoveries"),
    173: ("uint", "pcie_correctable_errors"),
    174: ("uint", "pcie_naks_received"),
    175: ("uint", "pcie_receiver_errors"),
    176: ("uint", "pcie_bad_tlp"),
    177: ("uint", "pcie_naks_sent"),
    178: ("uint", "pcie_bad_dllp"),
    179: ("uint", "pcie_non_fatal_errors"),
    180: ("uint", "pcie_fatal_errors"),
    181: ("uint", "pcie_unsupported_requests"),
    182: ("uint", "pcie_lcrc_errors"),
    183: ("uint", "pcie_lane_errors"),
    185: ("uint", "power_usage_milliwatts"),
    186: ("uint", "power_instant_milliwatts"),
    187: ("uint", "power_limit_min_milliwatts"),
    188: ("uint", "power_limit_max_milliwatts"),
    189: ("uint", "power_limit_default_milliwatts"),
    190: ("uint", "power_limit_enforced_milliwatts"),
    192: ("uint", "power_limit_milliwatts"),
    193: ("int", "temperature_limit_shutdown_celsius"),
    194: ("int", "temperature_limit_slowdown_celsius"),
    195: ("int", "temperature_limit_memory_max_celsius"),
    196: ("int", "temperature_limit_gpu_max_celsius"),
    197: ("ulonglong", "pcie_transmit_bytes"),
    198: ("ulonglong", "pcie_receive_bytes"),
    230: ("uint", "recovery_action"),
    269: ("ulonglong", "throttle_software_thermal_nanoseconds"),
    270: ("ulonglong", "throttle_hardware_thermal_nanoseconds"),
    271: ("ulonglong", "throttle_power_brake_nanoseconds"),
    301: ("uint", "remapped_rows_correctable_inactive"),
    302: ("uint", "remapped_rows_uncorrectable_inactive"),
}
# Field values of one NVLink each; the scope is the link, or all ones for the sum.
_LINK_FIELDS: dict[int, str] = {
    138: "nvlink_transmit_kib",
    139: "nvlink_receive_kib",
    140: "nvlink_transmit_raw_kib",
    141: "nvlink_receive_raw_kib",
    161: "nvlink_replay_errors",
    162: "nvlink_recovery_errors",
    163: "nvlink_crc_flit_errors",
}
_ALL_LINKS = 0xFFFFFFFF


@dataclass(frozen=True)
class Rule:
    """What the library does to calls of a function instead of, or before, answering them."""

    code: int | None = None
    delay_seconds: float = 0.0
    hang: bool = False

    def lines(self, scope: str, function: str) -> Iterator[str]:
        if self.code is not None:
            yield f"rule {scope} {function} return {self.code}"
        if self.delay_seconds:
            yield f"rule {scope} {function} delay {self.delay_seconds:.9f}"
        if self.hang:
            yield f"rule {scope} {function} hang"


class Rules:
    """Rules by function, and the methods that GPU and node share to set them.

    A name without a version means all versions of the function; `_v1` at its end means the
    unversioned one alone; `*` means every function.
    """

    rules: dict[str, Rule]

    def _changed(self) -> None:
        raise NotImplementedError

    def _change_rule(self, function: str, **values: Any) -> Self:
        bases = {re.sub(r"_v\d+$", "", name) for name in FUNCTIONS}
        unversioned = function.removesuffix("_v1")
        if function != "*" and unversioned not in bases and function not in FUNCTIONS:
            raise ValueError(f"the fake NVML has no function {function}")
        self.rules[function] = dataclasses.replace(self.rules.get(function, Rule()), **values)
        self._changed()
        return self

    def fail(self, function: str, code: int) -> Self:
        return self._change_rule(function, code=code)

    def unsupport(self, function: str) -> Self:
        return self.fail(function, 3)

    def delay(self, function: str, seconds: float) -> Self:
        return self._change_rule(function, delay_seconds=seconds)

    def hang(self, function: str = "*") -> Self:
        return self._change_rule(function, hang=True)

    def release(self, function: str = "*") -> Self:
        """End the hang of a function, or of every function that hangs."""
        for name, rule in self.rules.items():
            if function in ("*", name):
                self.rules[name] = dataclasses.replace(rule, hang=False)
        self._changed()
        return self

    def forget_rules(self, function: str = "*") -> Self:
        for name in list(self.rules):
            if function in ("*", name):
                del self.rules[name]
        self._changed()
        return self

    def rule_lines(self, scope: str) -> Iterator[str]:
        # A later line overrides an earlier one, so `*` goes first.
        for function, rule in sorted(self.rules.items(), key=lambda item: item[0] != "*"):
            yield from rule.lines(scope, function)


@dataclass
class FakeProcess:
    pid: int
    memory_bytes: int | None
    kind: Literal["compute", "graphics", "mps"] = "compute"
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass
class FakeProcessUtilization:
    """A row of the driver's process buffer; no timestamp: the moment of the call."""

    pid: int
    sm: int = 0
    memory: int = 0
    encoder: int = 0
    decoder: int = 0
    jpeg: int = 0
    ofa: int = 0
    timestamp_microseconds: int | None = None


@dataclass
class FakeEncoderSession:
    session_id: int
    pid: int
    codec: int = 0
    width: int = 1920
    height: int = 1080
    frames_per_second: int = 60
    latency_microseconds: int = 5000
    vgpu_instance: int = 0


@dataclass
class FakeLicensableFeature:
    """What a virtual GPU may have a licence for; the state is 0 while it has none."""

    code: int = 1
    state: int = 0


@dataclass
class FakeSample:
    sampling_type: int
    timestamp_microseconds: int
    value: float
    value_type: ValueType = "uint"


@dataclass
class FakeSamples:
    """A buffer that moves on by itself: `rows` rows, one each period, with the values in turn."""

    sampling_type: int
    values: list[float]
    period_microseconds: int = 166_667
    rows: int = 100
    value_type: ValueType = "uint"


@dataclass
class FakeField:
    value: float
    value_type: ValueType = "ulonglong"
    code: int = 0


@dataclass
class FakeRetiredPage:
    cause: int
    address: int
    timestamp_microseconds: int = 0


@dataclass
class FakeMigDevice:
    slot: int
    uuid: str
    gpu_instance: int
    compute_instance: int
    memory_total_bytes: int
    memory_used_bytes: int
    gpu_slices: int = 1
    compute_slices: int = 1
    multiprocessors: int = 16


@dataclass
class FakeGpu(Rules):
    """The defaults are those of a busy H100 SXM; None: the board does not support it."""

    number: int
    uuid: str
    pci_bus_id: str
    serial: str

    name: str | None = "NVIDIA H100 80GB HBM3"
    vbios_version: str | None = "96.00.99.00.01"
    board_part_number: str | None = "692-2G520-0200-000"
    inforom_image_version: str | None = "G520.0200.00.05"
    gsp_firmware_version: str | None = "570.86.15"
    state: State = "ok"

    brand: Number = 14
    architecture: Number = 9
    compute_capability_major: Number = 9
    compute_capability_minor: Number = 0
    minor_number: Number = 0
    module_id: Number = 1
    board_id: Number = 0
    multi_gpu_board: Number = 0
    numa_node: Number = 0
    pci_device_id: Number = 0x233010DE
    pci_subsystem_id: Number = 0x16C110DE
    core_count: Number = 16896
    memory_bus_width_bits: Number = 5120
    bus_type: Number = 2
    irq: Number = 200
    power_source: Number = 0
    virtualization_mode: Number = 0
    # Not one of a machine of its own: it says so, and has no features.
    vgpu_license_supported: Number = 0
    gsp_firmware_mode: Number = 1
    gsp_firmware_mode_default: Number = 1
    accounting_mode: Number = 0
    auto_boost: Number = None
    auto_boost_default: Number = None
    driver_model: Number = None
    driver_model_pending: Number = None
    gpu_operation_mode: Number = None
    gpu_operation_mode_pending: Number = None

    utilization_gpu_percent: Number = 97
    utilization_memory_percent: Number = 61
    encoder_utilization_percent: Number = 0
    decoder_utilization_percent: Number = 0
    jpeg_utilization_percent: Number = 0
    ofa_utilization_percent: Number = 0
    utilization_period_microseconds: Number = 166_667

    memory_total_bytes: Number = 85_520_809_984
    memory_reserved_bytes: Number = 526_385_152
    memory_used_bytes: Number = 64_424_509_440
    bar1_total_bytes: Number = 137_438_953_472
    bar1_used_bytes: Number = 31_457_280
    protected_memory_kib: Number = 0
    unprotected_memory_kib: Number = 83_516_416

    power_usage_milliwatts: Number = 612_000
    power_instant_milliwatts: Number = 615_000
    power_limit_milliwatts: Number = 700_000
    power_limit_enforced_milliwatts: Number = 700_000
    power_limit_default_milliwatts: Number = 700_000
    power_limit_min_milliwatts: Number = 200_000
    power_limit_max_milliwatts: Number = 700_000
    power_management_mode: Number = 1
    energy_millijoules: Number = 1_000_000_000

    temperature_celsius: Number = 62
    memory_temperature_celsius: Number = 70
    temperature_margin_celsius: Number = 25
    temperature_shutdown_celsius: Number = 92
    temperature_slowdown_celsius: Number = 89
    temperature_memory_max_celsius: Number = 95
    temperature_gpu_max_celsius: Number = 87
    temperature_acoustic_min_celsius: Number = None
    temperature_acoustic_current_celsius: Number = None
    temperature_acoustic_max_celsius: Number = None
    temperature_gps_current_celsius: Number = None
    temperature_limit_shutdown_celsius: Number = -8
    temperature_limit_slowdown_celsius: Number = -2
    temperature_limit_memory_max_celsius: Number = 0
    temperature_limit_gpu_max_celsius: Number = 0
    fan_count: Number = 0
    fan_speed_percent: Number = None

    clock_graphics_mhz: Number = 1980
    clock_sm_mhz: Number = 1980
    clock_memory_mhz: Number = 2619
    clock_video_mhz: Number = 1545
    clock_graphics_max_mhz: Number = 1980
    clock_sm_max_mhz: Number = 1980
    clock_memory_max_mhz: Number = 2619
    clock_video_max_mhz: Number = 1545
    clock_graphics_application_mhz: Number = 1980
    clock_sm_application_mhz: Number = 1980
    clock_memory_application_mhz: Number = 2619
    clock_video_application_mhz: Number = None
    clock_event_reasons: Number = 0
    clock_event_reasons_supported: Number = 0x1FF
    performance_state: Number = 0
    throttle_software_thermal_nanoseconds: Number = 0
    throttle_hardware_thermal_nanoseconds: Number = 0
    throttle_power_brake_nanoseconds: Number = 0

    persistence_mode: Number = 1
    compute_mode: Number = 0
    display_mode: Number = 0
    display_active: Number = 0
    mig_mode: Number = 0
    mig_mode_pending: Number = 0
    mig_device_count_max: Number = 7
    ecc_mode: Number = 1
    ecc_mode_pending: Number = 1
    ecc_mode_default: Number = 1
    recovery_action: Number = 0

    retired_pages_pending: Number = None
    remapped_rows_correctable: Number = 0
    remapped_rows_uncorrectable: Number = 0
    remapped_rows_correctable_inactive: Number = 0
    remapped_rows_uncorrectable_inactive: Number = 0
    remapped_rows_pending: Number = 0
    remapped_rows_failure: Number = 0
    remapper_banks_max: Number = 2560
    remapper_banks_high: Number = 0
    remapper_banks_partial: Number = 0
    remapper_banks_low: Number = 0
    remapper_banks_none: Number = 0

    pcie_transmit_kib_per_second: Number = 1_250_000
    pcie_receive_kib_per_second: Number = 2_500_000
    pcie_transmit_bytes: Number = 3_000_000_000
    pcie_receive_bytes: Number = 7_000_000_000
    pcie_generation: Number = 5
    pcie_generation_max: Number = 5
    pcie_generation_gpu_max: Number = 5
    pcie_width: Number = 16
    pcie_width_max: Number = 16
    pcie_speed_mbps: Number = 32_000
    pcie_speed_max: Number = 5
    pcie_replays: Number = 0
    pcie_replay_rollovers: Number = 0
    pcie_recoveries: Number = 3
    pcie_correctable_errors: Number = 0
    pcie_naks_received: Number = 0
    pcie_receiver_errors: Number = 0
    pcie_bad_tlp: Number = 0
    pcie_naks_sent: Number = 0
    pcie_bad_dllp: Number = 0
    pcie_non_fatal_errors: Number = 0
    pcie_fatal_errors: Number = 0
    pcie_unsupported_requests: Number = 0
    pcie_lcrc_errors: Number = 0
    pcie_lane_errors: Number = 0

    # Counters of each link; the fake gives all links of a GPU the same ones.
    nvlink_count: Number = 18
    nvlink_active_mask: Number = (1 << 18) - 1
    nvlink_version: Number = 6
    nvlink_remote_device_type: Number = 2
    nvlink_speed_mbps: Number = 26_562
    nvlink_transmit_kib: Number = 50_000_000
    nvlink_receive_kib: Number = 60_000_000
    nvlink_transmit_raw_kib: Number = 65_000_000
    nvlink_receive_raw_kib: Number = 75_000_000
    nvlink_replay_errors: Number = 0
    nvlink_recovery_errors: Number = 0
    nvlink_crc_flit_errors: Number = 0
    nvlink_crc_data_errors: Number = None
    nvlink_ecc_data_errors: Number = None

    encoder_capacity_h264_percent: Number = 0
    encoder_capacity_hevc_percent: Number = 0
    encoder_capacity_av1_percent: Number = 0
    frame_capture_sessions: Number = 0
    frame_capture_fps: Number = 0
    frame_capture_latency_microseconds: Number = 0

    event_types_supported: Number = 0x1F | 0x100 | 0xFE00
    gpm_supported: Number = 1
    gpm_streaming: Number = 0
    ignore_last_seen: Number = 0

    processes: list[FakeProcess] = field(default_factory=list)
    process_utilization: list[FakeProcessUtilization] = field(default_factory=list)
    encoder_sessions: list[FakeEncoderSession] = field(default_factory=list)
    licensable_features: list[FakeLicensableFeature] = field(default_factory=list)
    # Rows with times of their own, and buffers that move on by themselves.
    samples: list[FakeSample | FakeSamples] = field(default_factory=list)
    # (field id, scope or None for any) to what it answers; wins over the values above.
    fields: dict[tuple[int, int | None], FakeField] = field(default_factory=dict)
    # (error type, counter type, location) to a count; a location left out is not supported.
    ecc_errors: dict[tuple[int, int, int], int] = field(
        default_factory=lambda: {
            (error, counter, location): 0
            for error in (0, 1)
            for counter in (0, 1)
            for location in (2, 7)
        }
    )
    # Eleven counters in the order of NVML's structure, and whether the threshold is exceeded.
    sram_ecc: tuple[int, ...] | None = (0,) * 12
    retired_pages: list[FakeRetiredPage] = field(default_factory=list)
    violations_nanoseconds: dict[int, int] = field(
        default_factory=lambda: dict.fromkeys((0, 1, 2, 3, 4, 5, 10, 11), 0)
    )
    gpm: dict[int, float] = field(
        default_factory=lambda: {
            1: 96.5,
            2: 88.25,
            3: 41.5,
            5: 62.75,
            10: 57.25,
            20: 1220,
            21: 2441,
        }
    )
    # Metric to the return code of its row; and (GPU instance, metric) to a value.
    gpm_codes: dict[int, int] = field(default_factory=dict)
    mig_gpm: dict[tuple[int, int], float] = field(default_factory=dict)
    # Status, clique, state, health mask, health summary.
    fabric: tuple[int, int, int, int, int] | None = (0, 0, 3, 0, 0)
    mig_devices: list[FakeMigDevice] = field(default_factory=list)

    rules: dict[str, Rule] = field(default_factory=dict)
    on_change: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def _changed(self) -> None:
        if self.on_change:
            self.on_change()

    def set(self, **values: Any) -> Self:
        known = {item.name for item in dataclasses.fields(self)} - {"number", "on_change"}
        if unknown := set(values) - known:
            raise ValueError(f"a fake GPU has no {', '.join(sorted(unknown))}")
        for name, value in values.items():
            setattr(self, name, value)
        self._changed()
        return self

    def lose(self) -> Self:
        """Off the bus: every call says GPU_IS_LOST, looking it up too."""
        return self.set(state="lost")

    def require_reset(self) -> Self:
        """It can be looked up, and every other call says RESET_REQUIRED."""
        return self.set(state="reset_required")

    def hide(self) -> Self:
        """NVML does not list it, though it is in PCI; its old handles say GPU_IS_LOST."""
        return self.set(state="hidden")

    def recover(self) -> Self:
        return self.set(state="ok")

    @property
    def sysfs_address(self) -> str:
        """As the kernel writes it: 0000:1b:00.0."""
        domain, rest = self.pci_bus_id.split(":", 1)
        return f"{int(domain, 16):04x}:{rest.lower()}"

    def lines(self) -> Iterator[str]:
        """This GPU's part of the scenario file."""
        start = f"gpu {self.number}"
        yield f"{start} state {self.state}"
        for name in TEXTS + NUMBERS:
            value = getattr(self, name)
            yield f"{start} {name} {'unsupported' if value is None else value}"
        for part in (self._activity_lines(), self._field_lines(), self._fault_lines()):
            for line in part:
                yield f"{start} {line}"
        yield from self.rule_lines(str(self.number))

    def _activity_lines(self) -> Iterator[str]:
        for process in self.processes:
            ids = (process.gpu_instance, process.compute_instance)
            memory = "unavailable" if process.memory_bytes is None else process.memory_bytes
            instances = " ".join("unavailable" if number is None else str(number) for number in ids)
            yield f"process {process.kind} {process.pid} {memory} {instances}"
        for row in self.process_utilization:
            time = row.timestamp_microseconds
            yield (
                f"process_utilization {row.pid} {'now' if time is None else time} {row.sm}"
                f" {row.memory} {row.encoder} {row.decoder} {row.jpeg} {row.ofa}"
            )
        for session in self.encoder_sessions:
            yield (
                f"encoder_session {session.session_id} {session.pid} {session.vgpu_instance}"
                f" {session.codec} {session.width} {session.height}"
                f" {session.frames_per_second} {session.latency_microseconds}"
            )
        for feature in self.licensable_features:
            yield f"licensable_feature {feature.code} {feature.state}"
        for sample in self.samples:
            kind = f"{sample.sampling_type} {sample.value_type}"
            if isinstance(sample, FakeSample):
                yield f"sample {kind} {sample.timestamp_microseconds} {sample.value}"
            else:
                values = " ".join(str(value) for value in sample.values)
                yield f"samples {kind} {sample.period_microseconds} {sample.rows} {values}"
        for metric, value in self.gpm.items():
            yield f"gpm {metric} {value} {self.gpm_codes.get(metric, 0)}"
        for (instance, metric), value in self.mig_gpm.items():
            yield f"gpm {metric} {value} 0 {instance}"
        for mig in self.mig_devices:
            yield (
                f"mig {mig.slot} {mig.uuid} {mig.gpu_instance} {mig.compute_instance}"
                f" {mig.memory_total_bytes} {mig.memory_used_bytes} {mig.gpu_slices}"
                f" {mig.compute_slices} {mig.multiprocessors}"
            )

    def _field_lines(self) -> Iterator[str]:
        for (field_id, scope), item in (self._derived_fields() | self.fields).items():
            scope_text = "any" if scope is None else scope
            yield f"field {field_id} {scope_text} {item.value_type} {item.value} {item.code}"

    def _fault_lines(self) -> Iterator[str]:
        for (error, counter, location), count in self.ecc_errors.items():
            yield f"ecc {error} {counter} {location} {count}"
        if self.sram_ecc:
            yield f"sram_ecc {' '.join(str(number) for number in self.sram_ecc)}"
        for page in self.retired_pages:
            yield f"retired_page {page.cause} {page.address} {page.timestamp_microseconds}"
        for policy, nanoseconds in self.violations_nanoseconds.items():
            yield f"violation {policy} {nanoseconds}"
        if self.fabric:
            yield f"fabric {' '.join(str(number) for number in self.fabric)}"

    def _derived_fields(self) -> dict[tuple[int, int | None], FakeField]:
        derived: dict[tuple[int, int | None], FakeField] = {}
        for field_id, (value_type, name) in _PLAIN_FIELDS.items():
            value = getattr(self, name)
            if value is not None:
                derived[field_id, None] = FakeField(value, value_type)
        links = self.nvlink_count or 0
        for field_id, name in _LINK_FIELDS.items():
            value = getattr(self, name)
            if value is None or not links:
                continue
            derived[field_id, _ALL_LINKS] = FakeField(value * links)
            for link in range(links):
                derived[field_id, link] = FakeField(value)
        for link in range(links):
            active = (self.nvlink_active_mask or 0) >> link & 1
            derived[165, link] = FakeField(active, "uint")
            derived[164, link] = FakeField((self.nvlink_speed_mbps or 0) * active, "uint")
        return derived


_HGX_BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)


def h100(number: int) -> FakeGpu:
    """A busy H100 whose values differ from those of every other number."""
    bus = _HGX_BUSES[number] if number < len(_HGX_BUSES) else 0xE0 + number
    gpu = FakeGpu(
        number=number,
        uuid=f"GPU-{0x8F3A1C00 + number:08x}-5d2e-4b71-9c06-{0x3E7700A1B200 + number:012x}",
        pci_bus_id=f"00000000:{bus:02X}:00.0",
        serial=f"16534230{number:05d}",
        minor_number=number,
        module_id=number + 1,
        board_id=bus << 8,
        numa_node=0 if number < 4 else 1,
        irq=200 + number,
        utilization_gpu_percent=97 - number,
        utilization_memory_percent=61 - number,
        decoder_utilization_percent=number,
        jpeg_utilization_percent=2 * number,
        ofa_utilization_percent=3 * number,
        memory_used_bytes=64_424_509_440 + number * 268_435_456,
        bar1_used_bytes=31_457_280 + number * 1_048_576,
        power_usage_milliwatts=612_000 + number * 1_000,
        power_instant_milliwatts=615_000 + number * 1_000,
        energy_millijoules=1_000_000_000 + number * 1_000_000,
        temperature_celsius=62 + number,
        memory_temperature_celsius=70 + number,
        temperature_margin_celsius=25 - number,
        clock_graphics_mhz=1980 - 15 * number,
        clock_sm_mhz=1980 - 15 * number,
        clock_video_mhz=1545 - 15 * number,
        pcie_transmit_kib_per_second=1_250_000 + number,
        pcie_receive_kib_per_second=2_500_000 + number,
        pcie_transmit_bytes=3_000_000_000 + number,
        pcie_receive_bytes=7_000_000_000 + number,
        nvlink_transmit_kib=50_000_000 + number,
        nvlink_receive_kib=60_000_000 + number,
    )
    # Above the kernel's greatest pid, so never a process of the machine that runs the tests.
    pid = 4_200_000 + number
    gpu.processes = [FakeProcess(pid, 63_350_767_616 + number * 268_435_456)]
    gpu.process_utilization = [FakeProcessUtilization(pid, sm=95 - number, memory=60 - number)]
    power, utilization, memory, sm, memory_clock = (
        gpu.power_usage_milliwatts or 0,
        gpu.utilization_gpu_percent or 0,
        gpu.utilization_memory_percent or 0,
        gpu.clock_sm_mhz or 0,
        gpu.clock_memory_mhz or 0,
    )
    gpu.samples = [
        FakeSamples(0, [power - 4_000, power, power + 4_000, power], 20_000, 120),
        FakeSamples(1, [utilization - 2, utilization, utilization + 2, utilization]),
        FakeSamples(2, [memory - 1, memory, memory + 1, memory]),
        FakeSamples(3, [0]),
        FakeSamples(4, [gpu.decoder_utilization_percent or 0]),
        FakeSamples(5, [sm], 20_000, 100),
        FakeSamples(6, [memory_clock], 20_000, 100),
    ]
    return gpu
