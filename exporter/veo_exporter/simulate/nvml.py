# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated NVML, of the shape of the bindings, to stand behind the same gate.

It answers what the probes ask and nothing more; another function is FUNCTION_NOT_FOUND, as with an
old driver.
"""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.board import SLOWDOWN_CELSIUS, STEADY
from veo_exporter.simulate.fields import answer_fields
from veo_exporter.simulate.node import (
    Activity,
    activity_of,
    condition_of,
    driver_loaded,
    energy_joules,
)
from veo_exporter.simulate.scenario import Scenario

GIB: Final = 1024**3
_CLOCK_MEM: Final = 2
_POLL_SECONDS: Final = 0.05
_GPUS_OF_A_DOMAIN: Final = 8


class SimulatedNvmlError(Exception):
    """A return code, as the bindings raise it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class SimulatedNvml:
    """The library of a scenario's node. A GPU's handle is its number in the scenario."""

    NVMLError = SimulatedNvmlError

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        self._scenario = scenario
        self._clock = clock
        self._started = clock.monotonic_seconds()
        self._session = False

    def pci_functions(self) -> frozenset[str]:
        """The PCI bus of the simulated node, bound to the driver while that is loaded."""
        if not driver_loaded(self._scenario, self._elapsed):
            return frozenset()
        return frozenset(pci_address(gpu) for gpu in range(self._scenario.gpus))

    def __getattr__(self, name: str) -> Any:
        """The functions whose answer never changes."""
        answer = STEADY.get(name)
        if answer is None:
            raise AttributeError(name)

        def ask(gpu: int, *arguments: int) -> Any:
            self._ask(gpu, name)
            value = answer(self._scenario.board, *arguments)
            if value is None:
                raise SimulatedNvmlError(ReturnCode.NOT_SUPPORTED)
            return value

        return ask

    @property
    def _elapsed(self) -> float:
        return self._clock.monotonic_seconds() - self._started

    def nvmlInit(self) -> None:
        if not driver_loaded(self._scenario, self._elapsed):
            raise SimulatedNvmlError(ReturnCode.DRIVER_NOT_LOADED)
        self._session = True

    def nvmlShutdown(self) -> None:
        self._require_session()
        self._session = False

    def nvmlSystemGetDriverVersion(self) -> str:
        return "simulated"

    def nvmlSystemGetNVMLVersion(self) -> str:
        return "simulated"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        self._require_session()
        return len(self._listed())

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self._require_session()
        listed = self._listed()
        if index >= len(listed):
            raise SimulatedNvmlError(ReturnCode.INVALID_ARGUMENT)
        gpu = listed[index]
        self._ask(gpu, "nvmlDeviceGetHandleByIndex")
        return gpu

    def nvmlDeviceGetUUID(self, gpu: int) -> str:
        self._ask(gpu, "nvmlDeviceGetUUID")
        return f"GPU-51000000-0000-4000-8000-{gpu:012x}"

    def nvmlDeviceGetPciInfo(self, gpu: int) -> Any:
        self._ask(gpu, "nvmlDeviceGetPciInfo")
        return SimpleNamespace(busId="0000" + pci_address(gpu).upper())

    def nvmlDeviceGetName(self, gpu: int) -> str:
        self._ask(gpu, "nvmlDeviceGetName")
        return f"Simulated {self._scenario.board.name}"

    def nvmlDeviceGetVbiosVersion(self, gpu: int) -> str:
        self._ask(gpu, "nvmlDeviceGetVbiosVersion")
        return "simulated"

    def nvmlDeviceGetUtilizationRates(self, gpu: int) -> Any:
        activity = self._doing(gpu, "nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(
            gpu=round(100 * activity.utilization),
            memory=round(100 * activity.memory_copy_utilization),
        )

    def nvmlDeviceGetMemoryInfo(self, gpu: int, version: int) -> Any:
        activity = self._doing(gpu, "nvmlDeviceGetMemoryInfo")
        total = int(self._scenario.board.memory_gib * GIB)
        reserved = int(self._scenario.board.reserved_gib * GIB)
        used = int((total - reserved) * activity.memory_used)
        return SimpleNamespace(
            total=total, reserved=reserved, used=used, free=total - reserved - used
        )

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> int:
        activity = self._doing(gpu, "nvmlDeviceGetPowerUsage")
        return round(1000 * activity.power * self._scenario.board.power_limit_watts)

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: int) -> int:
        self._ask(gpu, "nvmlDeviceGetEnforcedPowerLimit")
        return round(1000 * self._scenario.board.power_limit_watts)

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: int) -> int:
        self._ask(gpu, "nvmlDeviceGetTotalEnergyConsumption")
        return round(1000 * energy_joules(self._scenario, gpu, self._elapsed))

    def nvmlDeviceGetTemperature(self, gpu: int, sensor: int) -> int:
        return round(self._doing(gpu, "nvmlDeviceGetTemperature").temperature_celsius)

    def nvmlDeviceGetClockInfo(self, gpu: int, kind: int) -> int:
        activity = self._doing(gpu, "nvmlDeviceGetClockInfo")
        board = self._scenario.board
        if kind == _CLOCK_MEM:
            return board.memory_clock_megahertz
        held_down = bool(condition_of(self._scenario, gpu, self._elapsed).throttle_mask)
        share = 0.6 if held_down else 1.0 if activity.utilization > 0 else 0.17
        return round(board.sm_clock_max_megahertz * share)

    def nvmlDeviceGetMaxClockInfo(self, gpu: int, kind: int) -> int:
        self._ask(gpu, "nvmlDeviceGetMaxClockInfo")
        board = self._scenario.board
        return board.memory_clock_megahertz if kind == _CLOCK_MEM else board.sm_clock_max_megahertz

    def nvmlDeviceGetCurrentClocksEventReasons(self, gpu: int) -> int:
        self._ask(gpu, "nvmlDeviceGetCurrentClocksEventReasons")
        return condition_of(self._scenario, gpu, self._elapsed).throttle_mask

    def nvmlDeviceGetEncoderUtilization(self, gpu: int) -> tuple[int, int]:
        self._ask(gpu, "nvmlDeviceGetEncoderUtilization")
        return 0, 167_000

    def nvmlDeviceGetDecoderUtilization(self, gpu: int) -> tuple[int, int]:
        activity = self._doing(gpu, "nvmlDeviceGetDecoderUtilization")
        return round(100 * activity.decoder_utilization), 167_000

    def nvmlDeviceGetPerformanceState(self, gpu: int) -> int:
        activity = self._doing(gpu, "nvmlDeviceGetPerformanceState")
        return 0 if activity.utilization > 0 else 2

    def nvmlDeviceGetMarginTemperature(self, gpu: int) -> int:
        activity = self._doing(gpu, "nvmlDeviceGetMarginTemperature")
        return round(SLOWDOWN_CELSIUS - activity.temperature_celsius)

    def nvmlDeviceGetFieldValues(self, gpu: int, asked: Sequence[tuple[int, int]]) -> bytes:
        self._ask(gpu, "nvmlDeviceGetFieldValues")
        return answer_fields(self._scenario, gpu, self._elapsed, asked)

    def _listed(self) -> list[int]:
        return [
            gpu
            for gpu in range(self._scenario.gpus)
            if not condition_of(self._scenario, gpu, self._elapsed).hidden
        ]

    def _doing(self, gpu: int, function: str) -> Activity:
        self._ask(gpu, function)
        return activity_of(self._scenario, gpu, self._elapsed)

    def _ask(self, gpu: int, function: str) -> None:
        self._require_session()
        while condition_of(self._scenario, gpu, self._elapsed).hangs(function):
            # This is the call that does not return; the sampler leaves this thread behind.
            time.sleep(_POLL_SECONDS)
        if code := condition_of(self._scenario, gpu, self._elapsed).code(function):
            raise SimulatedNvmlError(code)

    def _require_session(self) -> None:
        if not self._session or not driver_loaded(self._scenario, self._elapsed):
            raise SimulatedNvmlError(ReturnCode.UNINITIALIZED)


def pci_address(gpu: int) -> str:
    """Where a simulated GPU sits on the bus: in the order of the indexes, as NVML lists."""
    domain, place = divmod(gpu, _GPUS_OF_A_DOMAIN)
    return f"{domain:04x}:{0x1B + 0x11 * place:02x}:00.0"
