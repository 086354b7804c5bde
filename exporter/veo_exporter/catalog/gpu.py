# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of GPUs. Value series carry gpu and uuid; everything else is joined from info rows."""

from typing import Final

from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

GPU: Final = Label(
    "gpu",
    "NVML index of the GPU; it may change when the driver is loaded again",
    "GPUs of the node",
)
UUID: Final = Label("uuid", "the GPU's UUID: its identity, the one to join on", "GPUs of the node")
PCI_BUS_ID: Final = Label(
    "pci_bus_id",
    "PCI address as the kernel writes it (0000:1b:00.0): the only name of a GPU "
    "that was lost before the exporter started",
    "GPUs of the node",
)
STATE: Final = Label("state", "ok, lost, hung, reset_required, hidden or unknown", "6")
REASON: Final = Label("reason", "why the clocks were held down, in NVML's words", "9")
SIGNAL: Final = Label(
    "signal",
    "name of the metric that this board or these rights do not give, with a selector where they give a part of it",
    "GPU metrics",
)
WHY_NOT: Final = Label("why", "not_supported or not_permitted", "2")
FUNCTION: Final = Label("function", "name of the NVML function", "NVML functions called")
CODE: Final = Label(
    "code",
    "name of the NVML return code without NVML_ERROR_, or OVERDUE or UNREADABLE",
    "NVML return codes",
)

ERROR: Final = Label(
    "error", "kind of error; which there are, the metric's own text says", "11 of each metric"
)

IDENTITY: Final = (GPU, UUID)
PRESENCE: Final = (GPU, UUID, PCI_BUS_ID)


def gauge(name: str, unit: Unit, help: str, labels: tuple[Label, ...] = IDENTITY) -> MetricSpec:
    """A gauge of each GPU."""
    return MetricSpec(name, Kind.GAUGE, unit, help, labels)


def counter(name: str, unit: Unit, help: str, labels: tuple[Label, ...] = IDENTITY) -> MetricSpec:
    """A counter of each GPU."""
    return MetricSpec(name, Kind.COUNTER, unit, help, labels)


GPU_INFO: Final = gauge(
    "veo_gpu_info",
    Unit.INFO,
    "What the GPU is; always 1. Join on (instance, uuid).",
    (
        *PRESENCE,
        Label("name", "product name", "GPU models of the node"),
        Label("vbios_version", "version of the board's firmware", "GPUs of the node"),
    ),
)
DRIVER_INFO: Final = gauge(
    "veo_gpu_driver_info",
    Unit.INFO,
    "Versions of the driver and of the NVML library that is mapped into the exporter; always 1.",
    (
        Label("driver_version", "version of the kernel driver", "1"),
        Label("nvml_version", "version of the NVML library", "1"),
        Label("cuda_version", "CUDA version that the driver supports", "1"),
    ),
)

GPU_STATE: Final = gauge(
    "veo_gpu_state",
    Unit.NONE,
    "1 for the state the GPU is in, 0 for the others. It stays after the GPU is gone. "
    "hidden: on the PCI bus, but not listed by NVML.",
    (*PRESENCE, STATE),
)
GPU_NVML_RETURN_CODE: Final = gauge(
    "veo_gpu_nvml_return_code",
    Unit.NONE,
    "NVML return code that decided the GPU's state; 0 is success.",
    PRESENCE,
)
GPUS_EXPECTED: Final = gauge(
    "veo_gpus_expected",
    Unit.NONE,
    "GPUs that should be here: PCI functions bound to the nvidia driver, or what the configuration says.",
    (),
)
GPUS_VISIBLE: Final = gauge("veo_gpus_visible", Unit.NONE, "GPUs that NVML lists.", ())
GPUS_USABLE: Final = gauge(
    "veo_gpus_usable", Unit.NONE, "GPUs that answer: those whose state is ok.", ()
)
CAPABILITY_MISSING: Final = gauge(
    "veo_gpu_capability_missing",
    Unit.NONE,
    "1 for a metric that is absent because the board does not support it or the exporter may not read it.",
    (*IDENTITY, SIGNAL, WHY_NOT),
)
CALL_IN_FLIGHT_SECONDS: Final = gauge(
    "veo_gpu_nvml_call_in_flight_seconds",
    Unit.SECONDS,
    "How long an NVML call that is over its deadline has been running; absent when there is none.",
    (*IDENTITY, FUNCTION),
)
NVML_ERRORS: Final = counter(
    "veo_gpu_nvml_errors_total",
    Unit.NONE,
    "NVML calls that gave no value, unsupported ones aside. "
    "OVERDUE: over the exporter's deadline; UNREADABLE: the answer made no sense.",
    (GPU, UUID, FUNCTION, CODE),
)

IMPLAUSIBLE_READINGS: Final = counter(
    "veo_gpu_implausible_readings_total",
    Unit.NONE,
    "Values that NVML gave and that cannot be true (above 100 %, above 200 degrees); they are left out.",
)

UTILIZATION: Final = gauge(
    "veo_gpu_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's window (1/6 s to 1 s, by product) in which a kernel ran.",
)
MEMORY_COPY_UTILIZATION: Final = gauge(
    "veo_gpu_memory_copy_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's window in which device memory was read or written; it says nothing of how full memory is.",
)
ENCODER_UTILIZATION: Final = gauge(
    "veo_gpu_encoder_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's window in which the video encoder (NVENC) was busy.",
)
DECODER_UTILIZATION: Final = gauge(
    "veo_gpu_decoder_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's window in which the video decoder (NVDEC) was busy.",
)
MEMORY_TOTAL: Final = gauge("veo_gpu_memory_total_bytes", Unit.BYTES, "Device memory of the board.")
MEMORY_USED: Final = gauge(
    "veo_gpu_memory_used_bytes",
    Unit.BYTES,
    "Device memory in use, the driver's reserve left out (drivers before 510 count it in).",
)
MEMORY_FREE: Final = gauge("veo_gpu_memory_free_bytes", Unit.BYTES, "Device memory that is free.")
MEMORY_RESERVED: Final = gauge(
    "veo_gpu_memory_reserved_bytes",
    Unit.BYTES,
    "Device memory that driver and firmware keep for themselves.",
)
POWER: Final = gauge(
    "veo_gpu_power_watts",
    Unit.WATTS,
    "Power draw of the board: a mean over 1 s on Ampere and later except GA100, else instantaneous.",
)
POWER_LIMIT: Final = gauge(
    "veo_gpu_power_limit_watts", Unit.WATTS, "Power limit in force, the lowest of all that apply."
)
ENERGY: Final = counter(
    "veo_gpu_energy_joules_total",
    Unit.JOULES,
    "Energy used since the driver was loaded (Volta and later).",
)
TEMPERATURE: Final = gauge(
    "veo_gpu_temperature_celsius", Unit.CELSIUS, "Temperature of the GPU core."
)
MEMORY_TEMPERATURE: Final = gauge(
    "veo_gpu_memory_temperature_celsius", Unit.CELSIUS, "Temperature of the device memory."
)
SM_CLOCK: Final = gauge(
    "veo_gpu_sm_clock_hertz", Unit.HERTZ, "Clock of the streaming multiprocessors."
)
SM_CLOCK_MAX: Final = gauge(
    "veo_gpu_sm_clock_max_hertz", Unit.HERTZ, "Highest clock of the streaming multiprocessors."
)
MEMORY_CLOCK: Final = gauge("veo_gpu_memory_clock_hertz", Unit.HERTZ, "Clock of the device memory.")
MEMORY_CLOCK_MAX: Final = gauge(
    "veo_gpu_memory_clock_max_hertz", Unit.HERTZ, "Highest clock of the device memory."
)
THROTTLE_SECONDS: Final = counter(
    "veo_gpu_throttle_seconds_total",
    Unit.SECONDS,
    "Time during which the clocks were held down, by reason, to the accuracy of the fast sample. Reasons overlap.",
    (*IDENTITY, REASON),
)


class Window:
    """A fast signal's trailing minimum, mean and peak, named after the signal."""

    def __init__(self, signal: MetricSpec) -> None:
        stem = signal.name.removesuffix("_" + signal.unit.suffix)
        what = signal.name

        def of(statistic: str, words: str) -> MetricSpec:
            name = f"{stem}_{statistic}_{signal.unit.suffix}"
            return gauge(
                name,
                signal.unit,
                f"{words} of {what} over the trailing window (30 s unless configured).",
            )

        self.minimum: Final = of("min", "Minimum")
        self.mean: Final = of("mean", "Mean over time")
        self.peak: Final = of("peak", "Peak")


WINDOWS: Final = {
    signal: Window(signal)
    for signal in (UTILIZATION, MEMORY_COPY_UTILIZATION, MEMORY_USED, POWER, SM_CLOCK, TEMPERATURE)
}
"""The signals of the fast sample that have a trailing window."""
