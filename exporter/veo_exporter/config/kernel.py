# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel's log."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from veo_exporter.config.section import Section
from veo_exporter.config.written import AbsolutePath, OnOff, words


class KernelLogMode(StrEnum):
    """Whether the kernel's log is read."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Kernel(Section):
    """The kernel's log, which tells of Xids and of processes killed for want of memory."""

    log: Annotated[KernelLogMode, OnOff, words("auto", "on", "off", True, False)] = Field(
        KernelLogMode.AUTO,
        description="auto reads it where it may be read, and says so once where it may not; on warns if it may "
        "not; off leaves it alone.",
    )
    log_path: AbsolutePath | None = Field(
        None,
        description="Absolute path of the log: a device, a FIFO or a file. Unset: the first that may be read of "
        "/dev/kmsg, journald (through journalctl), /var/log/kern.log, /var/log/messages and /var/log/syslog.",
    )
