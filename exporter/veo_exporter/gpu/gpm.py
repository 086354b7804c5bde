# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""GPM: what the parts of a GPU did between two looks at the driver's performance counters.

A look fills a sample, and two samples make the metrics. NVML allocates samples; they are kept from
sweep to sweep, and given back before the session ends.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from veo_exporter.catalog import MetricSpec
from veo_exporter.clock import Clock
from veo_exporter.gpu.answers import Part
from veo_exporter.gpu.codes import Meaning, ReturnCode, meaning_of
from veo_exporter.gpu.findings import Finding, Survey
from veo_exporter.gpu.gpm_signals import ALL, FUNCTION, USUAL, GpmSignal, number_of
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.readings import Device

log = structlog.get_logger(__name__)

LEAST_SECONDS_APART: Final = 0.1
"""NVML wants two samples to be so far apart."""
LONGEST_SECONDS_APART: Final = 600.0
"""A mean over so long says nothing of now, and counters of 32 bits may have wrapped."""
_WHOLE_GPU: Final = ""
_GONE: Final = (ReturnCode.NOT_FOUND, ReturnCode.INVALID_ARGUMENT)
"""A GPU instance that was there when the GPU's parts were asked for, and is no more."""


@dataclass(slots=True)
class _Pair:
    """Two samples of a GPU or of a part of it: `newer` holds the last look."""

    newer: Any
    older: Any
    filled_monotonic_seconds: float | None = None
    signals: tuple[GpmSignal, ...] = ()
    parts: tuple[Part, ...] = ()
    """What the last two looks came to."""


@dataclass(slots=True)
class _Samples:
    """Of one GPU in one session. A thread holds the lock while it uses them; if it gets stuck, they
    stay its own, and are not freed under its feet."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    supported: bool = False
    unsupported: NvmlError | None = None
    freed: bool = False
    pairs: dict[str, _Pair] = field(default_factory=dict)


class Gpm:
    """Asks GPUs that support it, as long as `signals` are wanted; the samples of all of them are here."""

    def __init__(self, clock: Clock, signals: tuple[GpmSignal, ...] = USUAL) -> None:
        self.signals = signals
        self._clock = clock
        self._samples: dict[str, _Samples] = {}

    @property
    def survey(self) -> Survey:
        # Those of instances too: it goes on while a GPU that is divided answers for its parts alone.
        return Survey((*(one.whole for one in ALL), *(one.instance for one in ALL)), self.ask)

    def ask(self, line: Line, device: Device) -> list[Finding]:
        """Take a sample of the GPU and of each GPU instance; give what happened since the one before."""
        wanted = self.signals
        if not wanted:
            return []
        samples = self._samples.setdefault(device.uuid, _Samples())
        if not samples.lock.acquire(blocking=False):
            # The thread that has them is stuck; this one begins anew.
            samples = self._samples[device.uuid] = _Samples()
            samples.lock.acquire()
        try:
            return [] if samples.freed else self._ask(line, device, samples, wanted)
        finally:
            samples.lock.release()

    def free(self, line: Line) -> None:
        """Give all samples back; before the session ends."""
        for uuid, samples in list(self._samples.items()):
            # Also for a thread that was left behind, and may still come to them.
            samples.freed = True
            del self._samples[uuid]
            if not samples.lock.acquire(blocking=False):
                log.warning("GPM samples stay allocated: a call that hangs uses them", gpu=uuid)
                continue
            try:
                _free_pairs(line, samples, list(samples.pairs))
            finally:
                samples.lock.release()

    def _ask(
        self, line: Line, device: Device, samples: _Samples, wanted: tuple[GpmSignal, ...]
    ) -> list[Finding]:
        if (refusal := _refusal(line, device, samples)) is not None:
            return [(one.whole, (), refusal) for one in wanted]
        instances = device.bookmarks.gpu_instances
        there = {_WHOLE_GPU, *(instance.mig_uuid for instance in instances)}
        _free_pairs(line, samples, [key for key in samples.pairs if key not in there])

        def look(sample: Any) -> None:
            line.call("nvmlGpmSampleGet", device.handle, sample)

        findings: list[Finding] = []
        try:
            parts = self._measure(line, samples, _WHOLE_GPU, look, wanted)
            findings += [(one.whole, (), part) for one, part in zip(wanted, parts, strict=False)]
        except NvmlError as error:
            findings += [(one.whole, (), error) for one in wanted]
        for instance in instances:
            labels = (str(instance.id), instance.mig_uuid)

            def look_at_instance(sample: Any, number: int = instance.id) -> None:
                line.call("nvmlGpmMigSampleGet", device.handle, number, sample)

            try:
                parts = self._measure(line, samples, instance.mig_uuid, look_at_instance, wanted)
            except NvmlError as error:
                if error.code not in _GONE:
                    findings += [(one.instance, (), error) for one in wanted]
                continue
            findings += [
                _of_instance(one, labels, part) for one, part in zip(wanted, parts, strict=False)
            ]
        return findings

    def _measure(
        self,
        line: Line,
        samples: _Samples,
        key: str,
        look: Callable[[Any], None],
        wanted: tuple[GpmSignal, ...],
    ) -> tuple[Part, ...]:
        """A number for each signal; none as long as there is no sample before."""
        pair = samples.pairs.get(key)
        if pair is None:
            pair = samples.pairs[key] = _Pair(*_allocate(line))
        now = self._clock.monotonic_seconds()
        before = pair.filled_monotonic_seconds
        if before is not None and now - before < LEAST_SECONDS_APART and pair.signals == wanted:
            return pair.parts
        look(pair.older)
        pair.newer, pair.older = pair.older, pair.newer
        pair.filled_monotonic_seconds = now
        pair.signals, pair.parts = wanted, ()
        if before is not None and LEAST_SECONDS_APART <= now - before <= LONGEST_SECONDS_APART:
            pair.parts = _compare(line, pair, wanted)
        return pair.parts


def _refusal(line: Line, device: Device, samples: _Samples) -> NvmlError | None:
    """Why the GPU cannot be asked. A board that does not know GPM will not learn it in this session."""
    if samples.supported or samples.unsupported:
        return samples.unsupported
    try:
        answer = line.call("nvmlGpmQueryDeviceSupport", device.handle)
    except NvmlError as error:
        match meaning_of(error.code):
            case Meaning.UNSUPPORTED:
                samples.unsupported = error
            case Meaning.FORBIDDEN:
                return error
            case _:
                raise
    else:
        samples.supported = bool(answer.isSupportedDevice)
        if not samples.supported:
            samples.unsupported = NvmlError("nvmlGpmQueryDeviceSupport", ReturnCode.NOT_SUPPORTED)
    return samples.unsupported


def _of_instance(wanted: GpmSignal, labels: tuple[str, ...], part: Part) -> Finding:
    signal = wanted.instance
    if isinstance(signal, MetricSpec) or isinstance(part, NvmlError):
        return signal, labels, part
    return signal.spec, (*labels, *signal.labels), part


def _allocate(line: Line) -> tuple[Any, Any]:
    first = line.call("nvmlGpmSampleAlloc")
    try:
        return first, line.call("nvmlGpmSampleAlloc")
    except NvmlError:
        line.call("nvmlGpmSampleFree", first)
        raise


def _free_pairs(line: Line, samples: _Samples, keys: list[str]) -> None:
    for key in keys:
        pair = samples.pairs.pop(key)
        for sample in (pair.newer, pair.older):
            # If the session is over, they went with it.
            with suppress(NvmlError):
                line.call("nvmlGpmSampleFree", sample)


def _compare(line: Line, pair: _Pair, wanted: tuple[GpmSignal, ...]) -> tuple[Part, ...]:
    ids = [one for signal in wanted for one in signal.ids]
    request = line.library.c_nvmlGpmMetricsGet_t()
    request.version = line.library.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(ids)
    request.sample1, request.sample2 = pair.older, pair.newer
    for place, one in enumerate(ids):
        request.metrics[place].metricId = one
    # The bindings look at the code of the call alone; each row has its own.
    line.call(FUNCTION, request)
    answers = (request.metrics[place] for place in range(len(ids)))
    rows = {
        one: (int(answer.nvmlReturn), float(answer.value))
        for one, answer in zip(ids, answers, strict=True)
    }
    return tuple(number_of(signal, rows) for signal in wanted)
