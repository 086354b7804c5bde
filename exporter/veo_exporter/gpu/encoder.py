# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The video encoder (NVENC): how busy, its sessions, and whether there is one at all."""

from collections.abc import Mapping
from typing import Any, Final

from veo_exporter.catalog import Series
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_engines as engines
from veo_exporter.gpu.answers import NOTHING, Part
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.nvml import Handle, Line, NvmlError
from veo_exporter.gpu.readings import Signal
from veo_exporter.units import microseconds_to_seconds, percent_to_ratio

_BY_CODEC: Final = (engines.CODEC_SESSIONS, engines.CODEC_FRAME_RATE, engines.CODEC_LATENCY)

ENCODER_SIGNALS: Final[tuple[Signal, ...]] = (
    catalog.ENCODER_UTILIZATION,
    engines.ENCODER_SESSIONS,
    engines.ENCODER_FRAME_RATE,
    engines.ENCODER_LATENCY,
    *(spec.series(codec) for spec in _BY_CODEC for codec in engines.CODECS),
)
"""In the order in which `ask_encoder` gives their numbers."""
SESSIONS_BY_CODEC: Final = tuple(
    one for one in ENCODER_SIGNALS if isinstance(one, Series) and one.spec is engines.CODEC_SESSIONS
)

MAX_TRIES: Final = 3
"""A session that opens between the call for their number and the call for them makes the second fail."""


def ask_encoder(line: Line, gpu: Handle) -> tuple[Part, ...]:
    """A number, an error or nothing for each of the encoder's signals.

    Boards without an encoder (A100, H100) have been seen to answer 0 throughout.
    """
    utilization, sessions, rate, latency = _utilization(line, gpu), *_totals(line, gpu)
    told = [part for part in (utilization, sessions) if not isinstance(part, NvmlError)]
    if told and not any(told) and _has_none(line, gpu):
        utilization = sessions = rate = latency = NvmlError(
            "nvmlDeviceGetEncoderCapacity", ReturnCode.NOT_SUPPORTED
        )
    if isinstance(sessions, NvmlError):
        by_codec: tuple[Part, ...] = (sessions,) * (len(_BY_CODEC) * len(engines.CODECS))
    else:
        by_codec = _by_codec(line, gpu) if sessions else _describe([])
    return utilization, sessions, rate, latency, *by_codec


def without_unused_codecs(
    values: Mapping[Signal, float], used: set[Signal]
) -> Mapping[Signal, float]:
    """The values, less the sessions of codecs that never had any. Notes in `used` those that have."""
    used.update(one for one in SESSIONS_BY_CODEC if values.get(one))
    unused = [one for one in SESSIONS_BY_CODEC if one in values and one not in used]
    if not unused:
        return values
    return {signal: value for signal, value in values.items() if signal not in unused}


def _utilization(line: Line, gpu: Handle) -> Part:
    try:
        percent, _window_microseconds = line.call("nvmlDeviceGetEncoderUtilization", gpu)
    except NvmlError as error:
        return error
    return percent_to_ratio(percent)


def _totals(line: Line, gpu: Handle) -> tuple[Part, Part, Part]:
    try:
        sessions, rate, latency = line.call("nvmlDeviceGetEncoderStats", gpu)
    except NvmlError as error:
        return error, error, error
    if not sessions:
        return 0, NOTHING, NOTHING
    return sessions, rate, microseconds_to_seconds(latency)


def _has_none(line: Line, gpu: Handle) -> bool:
    """Whether an encoder that does nothing is none: it can take on nothing either.

    The capacity is what is left of it, so that a busy encoder says 0 too; this one is not busy. Where
    the question itself fails, there may be one.
    """
    for codec in range(len(engines.CODECS)):
        try:
            if line.call("nvmlDeviceGetEncoderCapacity", gpu, codec) > 0:
                return False
        except NvmlError as error:
            # Not this codec: AV1 is younger than the function.
            if error.code not in (ReturnCode.NOT_SUPPORTED, ReturnCode.INVALID_ARGUMENT):
                return False
    return True


def _by_codec(line: Line, gpu: Handle) -> tuple[Part, ...]:
    for tries in range(1, MAX_TRIES + 1):
        try:
            return _describe(line.call("nvmlDeviceGetEncoderSessions", gpu))
        except NvmlError as error:
            if error.code != ReturnCode.INSUFFICIENT_SIZE or tries == MAX_TRIES:
                return (error,) * (len(_BY_CODEC) * len(engines.CODECS))
    raise AssertionError("unreachable")


def _describe(sessions: list[Any]) -> tuple[Part, ...]:
    """Number, mean frame rate and mean latency of each codec's sessions."""
    own = [
        [one for one in sessions if one.codecType == codec] for codec in range(len(engines.CODECS))
    ]
    return (
        *(len(of_codec) for of_codec in own),
        *(_mean([one.averageFps for one in of_codec]) for of_codec in own),
        *(
            _mean([microseconds_to_seconds(one.encodeLatency) for one in of_codec])
            for of_codec in own
        ),
    )


def _mean(values: list[float]) -> Part:
    return sum(values) / len(values) if values else NOTHING
