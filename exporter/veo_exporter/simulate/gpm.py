# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated GPU's performance counters (GPM): means of its work between two looks."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.fields import PCIE_RECEIVED_SHARE, PCIE_SENT_BYTES_PER_JOULE
from veo_exporter.simulate.mig import MigDevice, mig_devices
from veo_exporter.simulate.node import Activity, activity_of, energy_joules
from veo_exporter.simulate.scenario import Scenario
from veo_exporter.simulate.session import Session, SimulatedNvmlError

_POINTS: Final = 10
"""So many moments between two looks make a mean."""
_MIB: Final = 1 << 20
_PCIE_TRANSMIT: Final = 20
_PCIE_RECEIVE: Final = 21
_DECODERS: Final = range(30, 37)
_JPEG_DECODERS: Final = range(40, 47)
_OFA: Final = 50

# Percent, by nvmlGpmMetricId_t. Shares are those of a job that denoises in BF16: the tensor pipes do
# half the work, most of the rest waits for memory.
_PERCENT: Final[dict[int, Callable[[Activity], float]]] = {
    1: lambda activity: 100 * activity.utilization,
    2: lambda activity: 86 * activity.utilization,
    3: lambda activity: 38 * activity.utilization,
    5: lambda activity: 52 * activity.utilization,
    10: lambda activity: 72 * activity.memory_copy_utilization,
    11: lambda _: 0.0,
    12: lambda activity: 9 * activity.utilization,
    13: lambda activity: 4 * activity.utilization,
    **dict.fromkeys(_DECODERS, lambda activity: 100 * activity.decoder_utilization),
    **dict.fromkeys((*_JPEG_DECODERS, _OFA), lambda _: 0.0),
}


@dataclass(slots=True)
class GpmSample:
    """A look at the counters, once it is taken: of which device, and when."""

    device: int | MigDevice | None = None
    at_seconds: float = 0.0


@dataclass(slots=True)
class _Metric:
    """nvmlGpmMetric_t, as far as anybody asks."""

    metricId: int = 0  # noqa: N815, NVML's name
    nvmlReturn: int = 0  # noqa: N815
    value: float = 0.0


@dataclass(slots=True)
class MetricsRequest:
    """nvmlGpmMetricsGet_t."""

    version: int = 0
    numMetrics: int = 0  # noqa: N815
    sample1: GpmSample = field(default_factory=GpmSample)
    sample2: GpmSample = field(default_factory=GpmSample)
    metrics: defaultdict[int, _Metric] = field(default_factory=lambda: defaultdict(_Metric))


class GpmCounters:
    """The functions that look, and compare."""

    NVML_GPM_METRICS_GET_VERSION: Final = 1
    c_nvmlGpmMetricsGet_t = MetricsRequest  # noqa: N815

    def __init__(self, session: Session) -> None:
        self._session = session

    def nvmlGpmQueryDeviceSupport(self, gpu: int) -> Any:
        self._session.ask(gpu, "nvmlGpmQueryDeviceSupport")
        return SimpleNamespace(isSupportedDevice=1)

    def nvmlGpmSampleAlloc(self) -> GpmSample:
        self._session.require()
        return GpmSample()

    def nvmlGpmSampleFree(self, sample: GpmSample) -> None:
        self._session.require()
        sample.device = None

    def nvmlGpmSampleGet(self, gpu: int, sample: GpmSample) -> GpmSample:
        self._session.ask(gpu, "nvmlGpmSampleGet")
        sample.device, sample.at_seconds = gpu, self._session.elapsed
        return sample

    def nvmlGpmMigSampleGet(self, gpu: int, instance: int, sample: GpmSample) -> GpmSample:
        self._session.ask(gpu, "nvmlGpmMigSampleGet")
        for part in mig_devices(self._session.scenario, gpu):
            if part.instance == instance:
                sample.device, sample.at_seconds = part, self._session.elapsed
                return sample
        raise SimulatedNvmlError(ReturnCode.NOT_FOUND)

    def nvmlGpmMetricsGet(self, request: MetricsRequest) -> MetricsRequest:
        self._session.require()
        first, second = request.sample1, request.sample2
        device = first.device
        if device is None or device != second.device or first.at_seconds >= second.at_seconds:
            raise SimulatedNvmlError(ReturnCode.INVALID_ARGUMENT)
        means = _means(self._session.scenario, device, first.at_seconds, second.at_seconds)
        for place in range(request.numMetrics):
            metric = request.metrics[place]
            known = means.get(metric.metricId)
            metric.nvmlReturn = ReturnCode.NOT_SUPPORTED if known is None else ReturnCode.SUCCESS
            metric.value = 0.0 if known is None else known
        return request


def _means(
    scenario: Scenario, device: int | MigDevice, first: float, second: float
) -> dict[int, float]:
    # An instance works as its GPU does, and has of the traffic what it has of the memory.
    gpu, share = (
        (device.gpu, device.memory_gib / scenario.board.memory_gib)
        if isinstance(device, MigDevice)
        else (device, 1.0)
    )
    seconds = second - first
    work = [
        activity_of(scenario, gpu, first + seconds * (point + 0.5) / _POINTS)
        for point in range(_POINTS)
    ]
    joules = energy_joules(scenario, gpu, second) - energy_joules(scenario, gpu, first)
    sent = share * joules * PCIE_SENT_BYTES_PER_JOULE / seconds / _MIB
    return {
        **{number: _mean(percent, work) for number, percent in _PERCENT.items()},
        _PCIE_TRANSMIT: sent,
        _PCIE_RECEIVE: sent * PCIE_RECEIVED_SHARE,
    }


def _mean(percent: Callable[[Activity], float], work: Sequence[Activity]) -> float:
    return sum(map(percent, work)) / len(work)
