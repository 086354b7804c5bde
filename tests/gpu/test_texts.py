# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a board says of itself."""

from pathlib import Path

import pynvml
import pytest

from tests.fake_nvml import FakeGpu, FakeNode
from tests.gpu import boards
from tests.gpu.conftest import FakeClock, device_of
from veo_exporter.gpu.codes import UNREADABLE
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.readings import Failure
from veo_exporter.gpu.session import find_gpu, open_session
from veo_exporter.gpu.texts import read_texts


def read(tmp_path: Path, clock: FakeClock, gpu: FakeGpu) -> tuple[dict[str, str], list[Failure]]:
    FakeNode(tmp_path / "scenario", gpus=[gpu]).attach()
    line = Line(pynvml, clock)
    open_session(line)
    device = find_gpu(line, 0).device
    assert device is not None
    return read_texts(line, device)


def test_a_data_centre_board(tmp_path: Path, clock: FakeClock) -> None:
    assert read(tmp_path, clock, boards.data_centre()) == (
        {
            "name": "NVIDIA H100 80GB HBM3",
            "vbios_version": "96.00.99.00.01",
            "minor_number": "0",
            "brand": "NVIDIA",
            "architecture": "Hopper",
            "compute_capability": "9.0",
            "board_part_number": "692-2G520-0200-000",
            "serial": "1653423000000",
        },
        [],
    )


def test_a_consumer_board_has_no_serial(tmp_path: Path, clock: FakeClock) -> None:
    texts, failures = read(tmp_path, clock, boards.consumer())
    assert texts.keys() & {"serial", "board_part_number"} == set()
    assert (texts["brand"], texts["architecture"]) == ("GeForce", "Ada")
    assert texts["compute_capability"] == "8.9"
    assert failures == []


@pytest.mark.parametrize(
    ("architecture", "text"), [(10, "Blackwell"), (77, "77"), (0xFFFFFFFF, "")]
)
def test_a_generation_newer_than_the_table_is_a_number(
    tmp_path: Path, clock: FakeClock, architecture: int, text: str
) -> None:
    texts, _ = read(tmp_path, clock, boards.data_centre().set(architecture=architecture))
    assert texts["architecture"] == text


def test_names_are_at_the_numbers_of_the_header(tmp_path: Path, clock: FakeClock) -> None:
    for name in ("VOLTA", "TURING", "AMPERE", "ADA", "HOPPER", "BLACKWELL", "RUBIN"):
        gpu = boards.data_centre().set(architecture=getattr(pynvml, f"NVML_DEVICE_ARCH_{name}"))
        assert read(tmp_path, clock, gpu)[0]["architecture"].upper() == name
    for name in ("QUADRO", "TESLA", "GEFORCE", "TITAN", "QUADRO_RTX", "NVIDIA_RTX", "NVIDIA"):
        gpu = boards.data_centre().set(brand=getattr(pynvml, f"NVML_BRAND_{name}"))
        assert read(tmp_path, clock, gpu)[0]["brand"].upper() == name.replace("_", " ")


def test_a_text_that_fails_costs_that_text(tmp_path: Path, clock: FakeClock) -> None:
    gpu = boards.data_centre().fail("nvmlDeviceGetSerial", 999)
    texts, failures = read(tmp_path, clock, gpu)
    assert "serial" not in texts
    assert texts["name"] == "NVIDIA H100 80GB HBM3"
    assert failures == [Failure(function="nvmlDeviceGetSerial", code=999)]


def test_a_text_that_makes_no_sense_costs_that_text(clock: FakeClock) -> None:
    class Odd:
        NVMLError = pynvml.NVMLError

        def __getattr__(self, name: str) -> object:
            return lambda _: None

    texts, failures = read_texts(Line(Odd(), clock), device_of("GPU-1", 0))
    assert failures == [Failure(function="nvmlDeviceGetCudaComputeCapability", code=UNREADABLE)]
    assert "compute_capability" not in texts
