# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every setting, declared once: its default, its bounds and what it does."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_validator,
)

from veo_exporter.config.advice import Advice
from veo_exporter.config.dcgm import (
    DcgmHostnameLabel,
    DcgmNames,
    DcgmNamesSetting,
    DcgmUuidLabel,
)
from veo_exporter.config.gpm import GpmMode, WrittenGpmMode
from veo_exporter.config.jobs import Jobs, Logs
from veo_exporter.config.kernel import Kernel
from veo_exporter.config.kubernetes import Kubernetes
from veo_exporter.config.quantities import Duration, format_duration
from veo_exporter.config.section import OutOfOrder, Section
from veo_exporter.config.state import State
from veo_exporter.config.traces import Traces
from veo_exporter.config.video import Video
from veo_exporter.config.written import AbsolutePath

_PORT: Final = re.compile(r"[0-9]{1,5}")


def _listen_address(written: str) -> str:
    host, colon, port = written.rpartition(":")
    if not colon or not _PORT.fullmatch(port) or int(port) > 65535 or "[" in host.strip("[]"):
        raise ValueError(f"{written!r} is not host:port: write :9420, 127.0.0.1:9420 or [::1]:9420")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(
            f"{written!r}: write an IPv6 address in brackets, as [{host.strip('[]')}]:{port}"
        )
    return written


def _no_truth_value(written: object) -> object:
    if isinstance(written, bool):
        raise ValueError(f"must be a whole number, not {written}")
    return written


class LogLevel(StrEnum):
    """The least that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """What a log line looks like."""

    CONSOLE = "console"
    JSON = "json"


class Web(Section):
    """The doors: where it listens."""

    listen_address: Annotated[str, AfterValidator(_listen_address)] = Field(
        ":9420",
        description="host:port to serve on; without a host, all addresses; port 0 takes a free one. "
        "While no authentication is configured, other hosts get /metrics, /-/healthy and /-/ready only.",
    )
    unix_socket: AbsolutePath | None = Field(
        None,
        description="Unix socket to serve on as well (mode 0600). It alone may ask for a reload, a pause or "
        "its end over HTTP.",
    )


class Gpu(Section):
    """How NVIDIA GPUs are sampled."""

    enabled: bool = Field(True, description="Whether this node's GPUs are watched.")
    fast_interval: Duration = Field(
        1,
        ge=0.02,
        le=60,
        description="How often utilization, memory, power, SM clock, temperature and clock-event reasons are read. "
        "The driver itself refreshes them every 20 ms to 1 s: see docs/gpu.md.",
    )
    driver_samples: bool = Field(
        True,
        description="Whether the driver's own buffers of samples fill the time between two readings. "
        "Those of the fast signals are read when fast_interval is 500ms or more.",
    )
    full_interval: Duration = Field(
        5,
        ge=1,
        le=600,
        description="How often every other signal is read, and the GPUs are counted.",
    )
    static_interval: Duration = Field(
        60,
        ge=5,
        le=3600,
        description="How often names, limits and capabilities are read.",
    )
    window: Duration = Field(
        30,
        ge=1,
        le=3600,
        description="Length of the trailing window of minimum, mean and peak. At least the scrape interval, "
        "so that no peak falls between two scrapes.",
    )
    call_deadline: Duration = Field(
        2,
        ge=0.1,
        le=60,
        description="An NVML call that runs longer marks its GPU hung; the other GPUs go on without it.",
    )
    start_deadline: Duration = Field(
        30,
        ge=1,
        le=600,
        description="The same for calls that open the driver or a GPU, which take seconds without persistence mode.",
    )
    expected_count: Annotated[int | None, BeforeValidator(_no_truth_value)] = Field(
        None,
        ge=0,
        le=1024,
        description="GPUs this node should have. Unset: the PCI functions that are bound to the nvidia driver.",
    )
    sysfs_root: AbsolutePath = Field(
        Path("/sys"),
        description="Where the host's sysfs is mounted; PCI functions are counted there.",
    )

    device_root: AbsolutePath = Field(
        Path("/dev"),
        description="Where the device nodes nvidia* are, to tell why NVML gives no reason (999).",
    )
    pause_default: Duration = Field(
        600,
        ge=1,
        le=86400,
        description="How long a pause lasts (POST /-/pause) that does not say for how long.",
    )
    pause_max: Duration = Field(
        3600,
        ge=1,
        le=86400,
        description="How long a pause may last at most; it can be asked for again.",
    )
    dcgm_names: DcgmNamesSetting = Field(
        DcgmNames.OFF,
        description="Whether GPUs are also written as dcgm-exporter writes them, for dashboards and rules that "
        "exist: classic are the names up to DCGM 4.5, new those since. See docs/dcgm.md.",
    )
    dcgm_uuid_label: DcgmUuidLabel = Field(
        DcgmUuidLabel.CAPITAL, description="What the UUID is called in those rows: UUID or uuid."
    )
    dcgm_hostname_label: DcgmHostnameLabel = Field(
        DcgmHostnameLabel.CAPITAL,
        description="What the node is called in those rows: Hostname, or hostname as dcgm-exporter has it since "
        "May 2026. Its value is NODE_NAME of the environment, else the host's name.",
    )
    process_names: Annotated[int, BeforeValidator(_no_truth_value)] = Field(
        3,
        ge=0,
        le=50,
        description="Processes on a GPU are told apart by the name of their program: so many names of each GPU, "
        "those with the most memory; the rest is other.",
    )
    process_names_max: Annotated[int, BeforeValidator(_no_truth_value)] = Field(
        50,
        ge=0,
        le=1000,
        description="How many such names there may be on the node at a time; what comes on top is other. "
        "A name that was not used for ten minutes makes room.",
    )
    proc_root: AbsolutePath = Field(
        Path("/proc"),
        description="Where the host's /proc is: names of processes are read there. In a container without the "
        "host's PID namespace they are unknown.",
    )
    gpm: WrittenGpmMode = Field(
        GpmMode.AUTO,
        description="The driver's performance counters (GPM, Hopper and later): auto reads what is of use on most "
        "boards, on also FP64, FP32, FP16 and the video engines, off none.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for shorter, longer in (
            ("fast_interval", "full_interval"),
            ("full_interval", "static_interval"),
            ("fast_interval", "window"),
            ("pause_default", "pause_max"),
        ):
            if getattr(self, shorter) > getattr(self, longer):
                raise OutOfOrder(
                    f"{shorter} ({format_duration(getattr(self, shorter))}) is longer than "
                    f"{longer} ({format_duration(getattr(self, longer))}): raise {longer} or lower {shorter}",
                    shorter,
                    longer,
                )
        return self


class Log(Section):
    """What it says of itself, on standard error."""

    level: LogLevel = Field(LogLevel.INFO, description="The least that is logged.")
    format: LogFormat = Field(
        LogFormat.CONSOLE,
        description="console for people, json (one object a line) for log collectors.",
    )


class Settings(Section):
    """Everything that can be set."""

    web: Web = Web()
    gpu: Gpu = Gpu()
    advice: Advice = Advice()
    video: Video = Video()
    jobs: Jobs = Jobs()
    logs: Logs = Logs()
    traces: Traces = Traces()
    kubernetes: Kubernetes = Kubernetes()
    kernel: Kernel = Kernel()
    state: State = State()
    log: Log = Log()
