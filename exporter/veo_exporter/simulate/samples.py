# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The buffers of samples that a simulated driver keeps, from the same curves as the plain values."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.node import Activity, activity_of
from veo_exporter.simulate.scenario import Board
from veo_exporter.simulate.session import Session, SimulatedNvmlError

_FUNCTION: Final = "nvmlDeviceGetSamples"
_UNSIGNED_INT: Final = 1
_ROW: Final = Struct("=QI4x")
"""nvmlSample_t: the time and the value."""


@dataclass(frozen=True, slots=True)
class _Buffer:
    """What is kept of one kind; `function` gives the same as a plain value."""

    function: str
    value: Callable[[Activity, Board], float]
    interval_seconds: float = 1 / 6
    most: int = 100
    """Samples; the oldest make room."""


# By nvmlSamplingType_t. Utilization comes at 6 Hz, as from real drivers; their power, at up to 50 Hz,
# would cost the demo more than it shows.
_BUFFERS: Final = {
    0: _Buffer(
        "nvmlDeviceGetPowerUsage",
        lambda activity, board: 1000 * activity.power * board.power_limit_watts,
        interval_seconds=0.1,
        most=120,
    ),
    1: _Buffer("nvmlDeviceGetUtilizationRates", lambda activity, _: 100 * activity.utilization),
    2: _Buffer(
        "nvmlDeviceGetUtilizationRates", lambda activity, _: 100 * activity.memory_copy_utilization
    ),
    3: _Buffer("nvmlDeviceGetEncoderUtilization", lambda _activity, _board: 0),
    4: _Buffer(
        "nvmlDeviceGetDecoderUtilization", lambda activity, _: 100 * activity.decoder_utilization
    ),
}


class Samples:
    """The function that reads the buffers."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def nvmlDeviceGetSamples(
        self, gpu: int, kind: int, last_seen_microseconds: int
    ) -> tuple[int, bytes]:
        session = self._session
        session.ask(gpu, _FUNCTION)
        buffer = _BUFFERS.get(kind)
        if buffer is None:
            raise SimulatedNvmlError(ReturnCode.NOT_SUPPORTED)
        # What is not told plainly is not told by samples either.
        session.ask(gpu, buffer.function)
        scenario = session.scenario
        newest = math.floor(session.elapsed / buffer.interval_seconds)
        rows = []
        for number in range(newest, newest - buffer.most, -1):
            at = number * buffer.interval_seconds
            stamp = session.unix_microseconds(at)
            if stamp <= last_seen_microseconds:
                break
            value = round(buffer.value(activity_of(scenario, gpu, at), scenario.board))
            rows.append(_ROW.pack(stamp, value))
        if not rows:
            raise SimulatedNvmlError(ReturnCode.NOT_FOUND)
        rows.reverse()
        return _UNSIGNED_INT, b"".join(rows)
