# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""MIG on a simulated node: the parts of a GPU that is divided."""

from dataclasses import dataclass
from typing import Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.scenario import Scenario, memory_gib_of
from veo_exporter.simulate.session import Session, SimulatedNvmlError

NO_INSTANCE: Final = 0xFFFFFFFF
_SLOTS: Final = 7


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A GPU instance with the one compute instance in it: the handle of a MIG device."""

    gpu: int
    instance: int
    profile: str

    @property
    def memory_gib(self) -> int:
        return memory_gib_of(self.profile)

    @property
    def uuid(self) -> str:
        return f"MIG-51000000-0000-4000-8000-{self.gpu:06x}{self.instance:06x}"


def mig_devices(scenario: Scenario, gpu: int) -> tuple[MigDevice, ...]:
    """The parts of a GPU; none if it is whole."""
    return tuple(
        MigDevice(gpu, number, profile)
        for division in scenario.mig
        if division.gpu == gpu
        for number, profile in enumerate(division.profiles, start=1)
    )


class Mig:
    """The functions that tell of the parts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def nvmlDeviceGetMigMode(self, gpu: int) -> tuple[int, int]:
        mode = int(bool(self._parts(gpu, "nvmlDeviceGetMigMode")))
        return mode, mode

    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: int) -> int:
        return _SLOTS if self._parts(gpu, "nvmlDeviceGetMaxMigDeviceCount") else 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: int, slot: int) -> MigDevice:
        parts = self._parts(gpu, "nvmlDeviceGetMigDeviceHandleByIndex")
        if slot >= len(parts):
            raise SimulatedNvmlError(ReturnCode.NOT_FOUND)
        return parts[slot]

    def nvmlDeviceGetGpuInstanceId(self, part: MigDevice) -> int:
        self._session.ask(part.gpu, "nvmlDeviceGetGpuInstanceId")
        return part.instance

    def nvmlDeviceGetComputeInstanceId(self, part: MigDevice) -> int:
        self._session.ask(part.gpu, "nvmlDeviceGetComputeInstanceId")
        return 0

    def _parts(self, gpu: int, function: str) -> tuple[MigDevice, ...]:
        self._session.ask(gpu, function)
        return mig_devices(self._session.scenario, gpu)
