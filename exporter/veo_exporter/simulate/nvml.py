# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated NVML, of the shape of the bindings, to stand behind the same gate.

It answers what is asked of it and nothing more; another function is FUNCTION_NOT_FOUND, as with an
old driver. The plain values are here; samples, processes, gpm, mig and xids have the rest.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.board import CLOCK_MEM, SLOWDOWN_CELSIUS, STEADY
from veo_exporter.simulate.fields import answer_fields
from veo_exporter.simulate.gpm import GpmCounters
from veo_exporter.simulate.memory import memory_used_bytes, reserved_bytes, usable_bytes
from veo_exporter.simulate.mig import Mig, MigDevice
from veo_exporter.simulate.node import condition_of, energy_joules
from veo_exporter.simulate.processes import Processes
from veo_exporter.simulate.samples import Samples
from veo_exporter.simulate.scenario import Scenario
from veo_exporter.simulate.session import Session, SimulatedNvmlError
from veo_exporter.simulate.xids import Events

_GPUS_OF_A_DOMAIN: Final = 8


class SimulatedNvml:
    """The library of a scenario's node. A GPU's handle is its number in the scenario."""

    NVMLError = SimulatedNvmlError

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        self._scenario = scenario
        self._session = session = Session(scenario, clock)
        self._parts = (
            Samples(session),
            Processes(session),
            GpmCounters(session),
            Mig(session),
            Events(session),
        )

    def pci_functions(self) -> frozenset[str]:
        """The PCI bus of the simulated node, bound to the driver while that is loaded."""
        if not self._session.driver_loaded:
            return frozenset()
        return frozenset(pci_address(gpu) for gpu in range(self._scenario.gpus))

    def __getattr__(self, name: str) -> Any:
        """The functions of the parts, and those whose answer never changes."""
        if name.startswith("_"):
            raise AttributeError(name)
        for part in self._parts:
            if (found := getattr(part, name, None)) is not None:
                return found
        answer = STEADY.get(name)
        if answer is None:
            raise AttributeError(name)

        def ask(gpu: int, *arguments: int) -> Any:
            self._session.ask(gpu, name)
            value = answer(self._scenario.board, *arguments)
            if value is None:
                raise SimulatedNvmlError(ReturnCode.NOT_SUPPORTED)
            return value

        return ask

    def nvmlInit(self) -> None:
        self._session.open()

    def nvmlShutdown(self) -> None:
        self._session.close()

    def nvmlSystemGetDriverVersion(self) -> str:
        return "simulated"

    def nvmlSystemGetNVMLVersion(self) -> str:
        return "simulated"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        self._session.require()
        return len(self._listed())

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self._session.require()
        listed = self._listed()
        if index >= len(listed):
            raise SimulatedNvmlError(ReturnCode.INVALID_ARGUMENT)
        gpu = listed[index]
        self._session.ask(gpu, "nvmlDeviceGetHandleByIndex")
        return gpu

    def nvmlDeviceGetUUID(self, device: int | MigDevice) -> str:
        self._session.ask(_gpu_of(device), "nvmlDeviceGetUUID")
        if isinstance(device, MigDevice):
            return device.uuid
        return f"GPU-51000000-0000-4000-8000-{device:012x}"

    def nvmlDeviceGetPciInfo(self, gpu: int) -> Any:
        self._session.ask(gpu, "nvmlDeviceGetPciInfo")
        return SimpleNamespace(busId="0000" + pci_address(gpu).upper())

    def nvmlDeviceGetName(self, device: int | MigDevice) -> str:
        self._session.ask(_gpu_of(device), "nvmlDeviceGetName")
        name = f"Simulated {self._scenario.board.name}"
        return f"{name} MIG {device.profile}" if isinstance(device, MigDevice) else name

    def nvmlDeviceGetVbiosVersion(self, gpu: int) -> str:
        self._session.ask(gpu, "nvmlDeviceGetVbiosVersion")
        return "simulated"

    def nvmlDeviceGetUtilizationRates(self, gpu: int) -> Any:
        activity = self._session.doing(gpu, "nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(
            gpu=round(100 * activity.utilization),
            memory=round(100 * activity.memory_copy_utilization),
        )

    def nvmlDeviceGetMemoryInfo(self, device: int | MigDevice, version: int) -> Any:
        self._session.ask(_gpu_of(device), "nvmlDeviceGetMemoryInfo")
        board = self._scenario.board
        part = device if isinstance(device, MigDevice) else None
        usable = usable_bytes(board, part)
        reserved = 0 if part else reserved_bytes(board)
        used = memory_used_bytes(self._scenario, device, self._session.elapsed)
        return SimpleNamespace(
            total=usable + reserved, reserved=reserved, used=used, free=usable - used
        )

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> int:
        activity = self._session.doing(gpu, "nvmlDeviceGetPowerUsage")
        return round(1000 * activity.power * self._scenario.board.power_limit_watts)

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: int) -> int:
        self._session.ask(gpu, "nvmlDeviceGetEnforcedPowerLimit")
        return round(1000 * self._scenario.board.power_limit_watts)

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: int) -> int:
        self._session.ask(gpu, "nvmlDeviceGetTotalEnergyConsumption")
        return round(1000 * energy_joules(self._scenario, gpu, self._session.elapsed))

    def nvmlDeviceGetTemperature(self, gpu: int, sensor: int) -> int:
        return round(self._session.doing(gpu, "nvmlDeviceGetTemperature").temperature_celsius)

    def nvmlDeviceGetClockInfo(self, gpu: int, kind: int) -> int:
        activity = self._session.doing(gpu, "nvmlDeviceGetClockInfo")
        board = self._scenario.board
        if kind == CLOCK_MEM:
            return board.memory_clock_megahertz
        condition = condition_of(self._scenario, gpu, self._session.elapsed)
        share = 0.6 if condition.throttle_mask else 1.0 if activity.utilization > 0 else 0.17
        return round(board.sm_clock_max_megahertz * share)

    def nvmlDeviceGetCurrentClocksEventReasons(self, gpu: int) -> int:
        self._session.ask(gpu, "nvmlDeviceGetCurrentClocksEventReasons")
        return condition_of(self._scenario, gpu, self._session.elapsed).throttle_mask

    def nvmlDeviceGetEncoderUtilization(self, gpu: int) -> tuple[int, int]:
        self._session.ask(gpu, "nvmlDeviceGetEncoderUtilization")
        return 0, 167_000

    def nvmlDeviceGetDecoderUtilization(self, gpu: int) -> tuple[int, int]:
        activity = self._session.doing(gpu, "nvmlDeviceGetDecoderUtilization")
        return round(100 * activity.decoder_utilization), 167_000

    def nvmlDeviceGetPerformanceState(self, gpu: int) -> int:
        activity = self._session.doing(gpu, "nvmlDeviceGetPerformanceState")
        return 0 if activity.utilization > 0 else 2

    def nvmlDeviceGetMarginTemperature(self, gpu: int) -> int:
        activity = self._session.doing(gpu, "nvmlDeviceGetMarginTemperature")
        return round(SLOWDOWN_CELSIUS - activity.temperature_celsius)

    def nvmlDeviceGetFieldValues(self, gpu: int, asked: Sequence[tuple[int, int]]) -> bytes:
        self._session.ask(gpu, "nvmlDeviceGetFieldValues")
        return answer_fields(self._scenario, gpu, self._session.elapsed, asked)

    def _listed(self) -> list[int]:
        return [
            gpu
            for gpu in range(self._scenario.gpus)
            if not condition_of(self._scenario, gpu, self._session.elapsed).hidden
        ]


def pci_address(gpu: int) -> str:
    """Where a simulated GPU sits on the bus: in the order of the indexes, as NVML lists."""
    domain, place = divmod(gpu, _GPUS_OF_A_DOMAIN)
    return f"{domain:04x}:{0x1B + 0x11 * place:02x}:00.0"


def _gpu_of(device: int | MigDevice) -> int:
    return device.gpu if isinstance(device, MigDevice) else device
