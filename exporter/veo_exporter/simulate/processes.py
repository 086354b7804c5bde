# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The processes on a simulated node's GPUs, and a folder that knows their names as /proc does."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.memory import memory_used_bytes
from veo_exporter.simulate.mig import NO_INSTANCE, MigDevice, mig_devices
from veo_exporter.simulate.node import activity_of
from veo_exporter.simulate.scenario import Scenario
from veo_exporter.simulate.session import Session, SimulatedNvmlError

FIRST_PID: Final = 1 << 22
"""Linux gives no such number to a process of its own: its limit on 64 bits lies just below."""
ENGINE: Final = "veo-engine"
_PIDS_OF_A_GPU: Final = 8
"""One for the GPU, and one for each instance that it may be divided into."""
_ROW_SECONDS: Final = 1.0


class Processes:
    """The functions that list them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: int) -> list[Any]:
        """One of the engine while it has memory, and on a divided GPU one on each of its instances."""
        session = self._session
        session.ask(gpu, "nvmlDeviceGetComputeRunningProcesses")
        return [
            SimpleNamespace(
                pid=_pid(gpu, part),
                usedGpuMemory=used,
                gpuInstanceId=part.instance if part else NO_INSTANCE,
                computeInstanceId=0 if part else NO_INSTANCE,
            )
            for part in mig_devices(session.scenario, gpu) or (None,)
            if (used := memory_used_bytes(session.scenario, part or gpu, session.elapsed))
        ]

    def nvmlDeviceGetGraphicsRunningProcesses(self, gpu: int) -> list[Any]:
        self._session.ask(gpu, "nvmlDeviceGetGraphicsRunningProcesses")
        return []

    def nvmlDeviceGetMPSComputeRunningProcesses(self, gpu: int) -> list[Any]:
        self._session.ask(gpu, "nvmlDeviceGetMPSComputeRunningProcesses")
        return []

    def nvmlDeviceGetProcessesUtilizationInfo(
        self, gpu: int, last_seen_microseconds: int
    ) -> list[Any]:
        """A row each second while there is a process."""
        session = self._session
        session.ask(gpu, "nvmlDeviceGetProcessesUtilizationInfo")
        at = math.floor(session.elapsed / _ROW_SECONDS) * _ROW_SECONDS
        stamp = session.unix_microseconds(at)
        activity = activity_of(session.scenario, gpu, at)
        if stamp <= last_seen_microseconds or not activity.memory_used:
            raise SimulatedNvmlError(ReturnCode.NOT_FOUND)
        row = SimpleNamespace(
            pid=_pid(gpu, None),
            timeStamp=stamp,
            smUtil=round(100 * activity.utilization),
            memUtil=round(100 * activity.memory_copy_utilization),
            encUtil=0,
            decUtil=round(100 * activity.decoder_utilization),
            jpgUtil=0,
            ofaUtil=0,
        )
        return [row]


def lay_out_process_names(scenario: Scenario, folder: Path) -> None:
    """Make the folder so that it names all these processes, and no real one."""
    for gpu in range(scenario.gpus):
        for part in mig_devices(scenario, gpu) or (None,):
            process = folder / str(_pid(gpu, part))
            process.mkdir(parents=True, exist_ok=True)
            (process / "comm").write_text(f"{ENGINE}\n")


def _pid(gpu: int, part: MigDevice | None) -> int:
    return FIRST_PID + _PIDS_OF_A_GPU * gpu + (part.instance if part else 0)
