# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What works on the GPUs, wired: processes, and the driver's performance counters."""

from collections.abc import Callable
from typing import Final

from veo_exporter.clock import Clock
from veo_exporter.config import GpmMode, Gpu
from veo_exporter.gpu import (
    ALL_GPM_SIGNALS,
    PROCESS_NAMES_DROPPED,
    USUAL_GPM_SIGNALS,
    Cadence,
    Gpm,
    GpmSignal,
    NameLimits,
    ProcessNames,
    ProcessSurveys,
    Sampler,
)

_KIND: Final = "process_name"
DROPPED_SEEDS: Final = tuple((_KIND, reason) for reason in PROCESS_NAMES_DROPPED)
_GPM_SIGNALS: Final = {
    GpmMode.OFF: (),
    GpmMode.AUTO: USUAL_GPM_SIGNALS,
    GpmMode.ON: ALL_GPM_SIGNALS,
}


class GpuWork:
    """Has the sampler ask, before it starts."""

    def __init__(
        self, gpu: Gpu, sampler: Sampler, drop: Callable[[str, str, int], None], clock: Clock
    ) -> None:
        self._names = ProcessNames(
            name_limits_of(gpu), lambda reason: drop(_KIND, reason, 1), clock
        )
        self._gpm = Gpm(clock, gpm_signals_of(gpu))
        for survey in (*ProcessSurveys(self._names, clock).surveys, self._gpm.survey):
            sampler.also_ask(Cadence.FULL, survey)
        sampler.before_closing(self._gpm.free)

    def reconfigure(self, names: NameLimits, gpm_signals: tuple[GpmSignal, ...]) -> None:
        """Take other settings; they hold from the next sweep on."""
        self._names.limits = names
        self._gpm.signals = gpm_signals


def gpm_signals_of(gpu: Gpu) -> tuple[GpmSignal, ...]:
    """Which of the driver's performance counters are read, as the settings say it."""
    return _GPM_SIGNALS[gpu.gpm]


def name_limits_of(gpu: Gpu) -> NameLimits:
    """How many names of processes are kept, as the settings say it."""
    return NameLimits(
        proc_root=gpu.proc_root, per_gpu=gpu.process_names, per_node=gpu.process_names_max
    )
