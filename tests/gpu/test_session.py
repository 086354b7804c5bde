# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Opening, counting, finding, closing."""

from types import SimpleNamespace

import pytest

from tests.gpu.conftest import ScriptedNvml
from veo_exporter.gpu.codes import UNREADABLE
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.readings import Device
from veo_exporter.gpu.session import (
    Closed,
    Counted,
    Found,
    Opened,
    close_session,
    count_gpus,
    ends_session,
    find_gpu,
    open_session,
)


def test_opening_tells_the_versions(line: Line) -> None:
    # CUDA's 12080 is 12.8.
    assert open_session(line) == Opened(
        code=0,
        texts={"driver_version": "570.1", "nvml_version": "12.570.1", "cuda_version": "12.8"},
    )


@pytest.mark.parametrize("code", [9, 12, 18, 999])
def test_no_session(line: Line, nvml: ScriptedNvml, code: int) -> None:
    nvml.codes["nvmlInit", ""] = code
    assert open_session(line) == Opened(code=code)
    assert [function for function, _ in nvml.calls] == ["nvmlInit"]


def test_a_version_that_is_not_to_be_had_is_no_reason_to_go_without_gpus(
    line: Line, nvml: ScriptedNvml
) -> None:
    nvml.codes["nvmlSystemGetDriverVersion", ""] = 999
    nvml.absent.add("nvmlSystemGetCudaDriverVersion_v2")
    assert open_session(line) == Opened(
        code=0, texts={"driver_version": "", "nvml_version": "12.570.1", "cuda_version": ""}
    )


@pytest.mark.parametrize(("number", "text"), [(13000, "13.0"), (12040, "12.4"), (11080, "11.8")])
def test_cuda_versions(line: Line, nvml: ScriptedNvml, number: int, text: str) -> None:
    nvml.answers["nvmlSystemGetCudaDriverVersion_v2", ""] = number
    assert open_session(line).texts["cuda_version"] == text


def test_counting(line: Line, nvml: ScriptedNvml) -> None:
    assert count_gpus(line) == Counted(code=0, count=2)
    nvml.codes["nvmlDeviceGetCount", ""] = 999
    assert count_gpus(line) == Counted(code=999)


@pytest.mark.parametrize("bus_id", ["00000000:02:00.0", b"00000000:02:00.0"])
def test_finding(line: Line, nvml: ScriptedNvml, bus_id: object) -> None:
    nvml.answers["nvmlDeviceGetPciInfo", "GPU-2"] = SimpleNamespace(busId=bus_id)
    found = find_gpu(line, 1)
    # Handles are not compared; that it is one of this session the next call shows.
    assert found == Found(index=1, device=Device(1, "GPU-2", "0000:02:00.0", None))
    assert found.device is not None
    assert line.call("nvmlDeviceGetName", found.device.handle) == "board of GPU-2"


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo"]
)
def test_one_ill_gpu_fails_alone(line: Line, nvml: ScriptedNvml, function: str) -> None:
    nvml.codes[function, "GPU-1"] = 15
    assert find_gpu(line, 0) == Found(index=0, code=15, function=function)
    assert find_gpu(line, 1).device is not None


@pytest.mark.parametrize("bus_id", ["", "no address", b"\xff\xfe"])
def test_an_address_that_makes_no_sense(line: Line, nvml: ScriptedNvml, bus_id: object) -> None:
    nvml.answers["nvmlDeviceGetPciInfo", "GPU-1"] = SimpleNamespace(busId=bus_id)
    assert find_gpu(line, 0) == Found(index=0, code=UNREADABLE, function="nvmlDeviceGetPciInfo")


def test_closing(line: Line, nvml: ScriptedNvml) -> None:
    assert close_session(line) == Closed()
    assert not nvml.open
    # It was over already; that is no trouble.
    assert close_session(line) == Closed()


def test_what_ends_a_session() -> None:
    assert [code for code in (0, 1, 2, 3, 9, 15, 16, 18, 28, 999) if ends_session(code)] == [
        1,
        9,
        18,
    ]
