# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""doctor's look at the kernel log: whether it tells of Xids and OOM kills."""

from collections.abc import Iterator
from typing import Final

from veo_exporter.app.kernel import places_of
from veo_exporter.cli.findings import Finding, Grade
from veo_exporter.config import KernelLogMode, Settings
from veo_exporter.logs import KERNEL_LOG_REMEDY, open_kernel_log

_WHAT: Final = "kernel log"


def kernel_log(settings: Settings) -> Iterator[Finding]:
    """Opens what the exporter would open."""
    mode = settings.kernel.log
    if mode is KernelLogMode.OFF:
        yield Finding(
            Grade.GOOD, _WHAT, "not asked for (kernel.log is off): Xids from NVML's events alone"
        )
        return
    opening = open_kernel_log(places_of(settings.kernel))
    if opening.source is not None:
        yield Finding(Grade.GOOD, _WHAT, f"{opening.source.name} may be read")
        opening.source.close()
        return
    yield Finding(
        Grade.BAD if mode is KernelLogMode.ON else Grade.WARNING,
        _WHAT,
        f"{opening.fault}: Xids from NVML's events alone, and no OOM kills",
        KERNEL_LOG_REMEDY,
    )
