# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel's log."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from veo_exporter.config.section import Section


class KernelLogMode(StrEnum):
    """Whether the kernel's log is read."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


def _no_truth_value(written: object) -> object:
    # YAML reads a bare on or off as a truth value.
    return {True: "on", False: "off"}[written] if isinstance(written, bool) else written


def _absolute(path: Path | None) -> Path | None:
    if path is not None and not path.is_absolute():
        raise ValueError(f"{str(path)!r} is not an absolute path")
    return path


class Kernel(Section):
    """The kernel's log, which tells of Xids and of processes killed for want of memory."""

    log: Annotated[KernelLogMode, BeforeValidator(_no_truth_value)] = Field(
        KernelLogMode.AUTO,
        description="auto reads it where it may be read, and says so once where it may not; on warns if it may "
        "not; off leaves it alone.",
    )
    log_path: Annotated[Path | None, AfterValidator(_absolute)] = Field(
        None,
        description="Absolute path of the log: a device, a FIFO or a file. Unset: the first that may be read of "
        "/dev/kmsg, journald (through journalctl), /var/log/kern.log, /var/log/messages and /var/log/syslog.",
    )
