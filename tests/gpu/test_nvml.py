# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The gate: whatever happens in a call comes out as a value or an NvmlError."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gpu.conftest import FakeClock, ScriptedError, ScriptedNvml, wait_until
from veo_exporter.gpu.codes import UNREADABLE
from veo_exporter.gpu.nvml import Line, NvmlError, load_library


def library(**functions: Any) -> SimpleNamespace:
    return SimpleNamespace(NVMLError=ScriptedError, **functions)


def raising(error: Exception) -> Any:
    def call(*_arguments: Any) -> None:
        raise error

    return call


def test_gives_what_the_function_gives(clock: FakeClock) -> None:
    line = Line(library(nvmlAdd=lambda one, two: one + two), clock)
    assert line.call("nvmlAdd", 2, 3) == 5


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ScriptedError(15), 15),
        # Inside a function this is the bindings' trouble with an answer, not an old driver's gap.
        (AttributeError("'NoneType' object has no attribute 'decode'"), UNREADABLE),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), UNREADABLE),
        (OSError("library vanished"), UNREADABLE),
    ],
)
def test_every_exception_becomes_an_nvml_error(
    clock: FakeClock, error: Exception, code: int
) -> None:
    line = Line(library(nvmlAsk=raising(error)), clock)
    with pytest.raises(NvmlError) as caught:
        line.call("nvmlAsk")
    assert (caught.value.function, caught.value.code) == ("nvmlAsk", code)
    assert line.flight is None


def test_a_function_that_the_library_lacks(clock: FakeClock) -> None:
    with pytest.raises(NvmlError, match="nvmlNewerThanThis: FUNCTION_NOT_FOUND") as caught:
        Line(library(), clock).call("nvmlNewerThanThis")
    assert caught.value.code == 13


def test_an_unreadable_answer_is_told_in_the_message(clock: FakeClock) -> None:
    line = Line(library(nvmlAsk=raising(ValueError("strange bytes"))), clock)
    with pytest.raises(NvmlError, match=r"nvmlAsk: UNREADABLE .*strange bytes"):
        line.call("nvmlAsk")


def test_another_thread_sees_what_is_being_waited_for(nvml: ScriptedNvml, clock: FakeClock) -> None:
    line = Line(nvml, clock)
    nvml.hang(function="nvmlDeviceGetCount")
    thread = threading.Thread(target=line.call, args=("nvmlDeviceGetCount",), daemon=True)
    clock.now = 1234.5
    thread.start()
    wait_until(lambda: nvml.waiting)
    assert line.flight is not None
    assert line.flight.function == "nvmlDeviceGetCount"
    assert line.flight.started_monotonic_seconds == 1234.5
    nvml.release(function="nvmlDeviceGetCount")
    thread.join(5)
    assert line.flight is None


def test_the_bindings_are_those_of_nvidia_ml_py() -> None:
    bindings = load_library()
    assert bindings.__name__ == "pynvml"
    assert issubclass(bindings.NVMLError, Exception)
