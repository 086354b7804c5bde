# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The encoder's sessions, and boards that have no encoder and say 0."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.gpu.conftest import FakeClock, ScriptedNvml
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_engines as engines
from veo_exporter.gpu.answers import Nothing, Part
from veo_exporter.gpu.encoder import ENCODER_SIGNALS, MAX_TRIES, ask_encoder
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.readings import Signal, signal_name


class Encoder:
    """A library's answers about one encoder: values, or codes to raise."""

    NVMLError = ScriptedNvml.NVMLError

    def __init__(
        self,
        utilization: int | Exception = 0,
        totals: tuple[int, int, int] | Exception = (0, 0, 0),
        capacities: tuple[int | Exception, ...] = (100, 100, 100),
        sessions: list[Any] | None = None,
    ) -> None:
        self.utilization, self.totals, self.capacities = utilization, totals, capacities
        self.sessions: list[list[Any] | Exception] = [sessions or []]
        self.calls: list[str] = []

    def _answer(self, function: str, answer: Any) -> Any:
        self.calls.append(function)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def nvmlDeviceGetEncoderUtilization(self, _gpu: object) -> Any:  # noqa: N802
        percent = self._answer("utilization", self.utilization)
        return [percent, 167_000]

    def nvmlDeviceGetEncoderStats(self, _gpu: object) -> Any:  # noqa: N802
        return self._answer("totals", self.totals)

    def nvmlDeviceGetEncoderCapacity(self, _gpu: object, codec: int) -> Any:  # noqa: N802
        return self._answer("capacity", self.capacities[codec])

    def nvmlDeviceGetEncoderSessions(self, _gpu: object) -> Any:  # noqa: N802
        answer = self.sessions[0] if len(self.sessions) == 1 else self.sessions.pop(0)
        return self._answer("sessions", answer)


def code(number: int) -> Exception:
    return ScriptedNvml.NVMLError(number)


def session(codec: int, rate: int, latency_microseconds: int) -> Any:
    return SimpleNamespace(codecType=codec, averageFps=rate, encodeLatency=latency_microseconds)


def ask(encoder: Encoder, clock: FakeClock) -> dict[Signal, Part]:
    return dict(zip(ENCODER_SIGNALS, ask_encoder(Line(encoder, clock), object()), strict=True))


def codes(parts: dict[Signal, Part]) -> set[int]:
    return {part.code for part in parts.values() if isinstance(part, NvmlError)}


def test_zeros_and_no_capacity_are_no_encoder(clock: FakeClock) -> None:
    """As captured of an H100, which has none."""
    parts = ask(Encoder(capacities=(0, 0, 0)), clock)
    assert codes(parts) == {3}
    assert all(isinstance(part, NvmlError) for part in parts.values())


@pytest.mark.parametrize("missing", [code(3), code(2)])
def test_no_codec_at_all_is_no_encoder(clock: FakeClock, missing: Exception) -> None:
    assert codes(ask(Encoder(capacities=(missing,) * 3), clock)) == {3}


def test_an_encoder_at_rest_is_one_whose_capacity_is_left(clock: FakeClock) -> None:
    encoder = Encoder(capacities=(code(3), 100, code(2)))
    parts = ask(encoder, clock)
    assert parts[catalog.ENCODER_UTILIZATION] == parts[engines.ENCODER_SESSIONS] == 0
    # A mean of nothing is nothing.
    assert isinstance(parts[engines.ENCODER_FRAME_RATE], Nothing)
    assert isinstance(parts[engines.ENCODER_LATENCY], Nothing)
    by_name = {signal_name(signal): part for signal, part in parts.items()}
    assert by_name['veo_gpu_encoder_codec_sessions{codec="av1"}'] == 0
    assert "sessions" not in encoder.calls


@pytest.mark.parametrize(
    "busy",
    [
        Encoder(utilization=100, capacities=(0, 0, 0)),
        Encoder(totals=(1, 30, 5000), capacities=(0, 0, 0), sessions=[session(0, 30, 5000)]),
    ],
)
def test_a_full_encoder_has_no_capacity_left_and_is_there(clock: FakeClock, busy: Encoder) -> None:
    assert codes(ask(busy, clock)) == set()
    assert "capacity" not in busy.calls


@pytest.mark.parametrize("fault", [code(13), code(999), code(4)])
def test_where_the_capacity_cannot_be_told_there_may_be_an_encoder(
    clock: FakeClock, fault: Exception
) -> None:
    parts = ask(Encoder(capacities=(fault, 0, 0)), clock)
    assert parts[catalog.ENCODER_UTILIZATION] == 0


def test_one_of_the_two_answers_is_enough_to_tell(clock: FakeClock) -> None:
    assert codes(ask(Encoder(utilization=code(3), capacities=(0, 0, 0)), clock)) == {3}
    assert codes(ask(Encoder(totals=code(999), capacities=(0, 0, 0)), clock)) == {3}
    # Nothing was told that the capacity could contradict.
    encoder = Encoder(utilization=code(999), totals=code(999), capacities=(0, 0, 0))
    assert codes(ask(encoder, clock)) == {999}


def test_utilization_without_sessions_and_sessions_without_utilization(clock: FakeClock) -> None:
    parts = ask(Encoder(utilization=40, totals=code(3)), clock)
    assert parts[catalog.ENCODER_UTILIZATION] == 0.4
    assert len([part for part in parts.values() if isinstance(part, NvmlError)]) == 12
    parts = ask(Encoder(utilization=code(3), totals=(0, 0, 0)), clock)
    assert parts[engines.ENCODER_SESSIONS] == 0
    assert codes(parts) == {3}


def test_a_session_of_a_codec_that_nobody_knows_counts_in_the_whole_alone(
    clock: FakeClock,
) -> None:
    sessions = [session(255, 30, 5000), session(1, 50, 3000)]
    parts = ask(Encoder(60, (2, 40, 4000), sessions=sessions), clock)
    by_name = {signal_name(signal): part for signal, part in parts.items()}
    assert parts[engines.ENCODER_SESSIONS] == 2
    assert parts[engines.ENCODER_LATENCY] == 0.004
    assert by_name['veo_gpu_encoder_codec_sessions{codec="hevc"}'] == 1
    assert by_name['veo_gpu_encoder_codec_frame_rate_hertz{codec="hevc"}'] == 50
    assert by_name['veo_gpu_encoder_codec_latency_seconds{codec="hevc"}'] == 0.003
    assert by_name['veo_gpu_encoder_codec_sessions{codec="h264"}'] == 0


def test_a_session_that_opens_between_two_calls_is_asked_for_again(clock: FakeClock) -> None:
    encoder = Encoder(10, (1, 60, 2000))
    encoder.sessions = [code(7), code(7), [session(0, 60, 2000)]]
    parts = ask(encoder, clock)
    assert codes(parts) == set()
    encoder.sessions, encoder.calls = [code(7)], []
    parts = ask(encoder, clock)
    assert codes(parts) == {7}
    # The totals do not suffer from it.
    assert parts[engines.ENCODER_FRAME_RATE] == 60
    assert encoder.calls.count("sessions") == MAX_TRIES
