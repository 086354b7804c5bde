# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""NVML's return codes and what they ask of us."""

import pynvml
import pytest

from veo_exporter.gpu.codes import (
    OVERDUE,
    UNREADABLE,
    Meaning,
    ReturnCode,
    code_name,
    meaning_of,
    remedy_for,
)


def test_numbers_are_those_of_the_bindings() -> None:
    for code in ReturnCode:
        name = "NVML_SUCCESS" if code is ReturnCode.SUCCESS else f"NVML_ERROR_{code.name}"
        assert getattr(pynvml, name) == code


@pytest.mark.parametrize(
    ("meaning", "codes"),
    [
        (Meaning.SUCCESS, [0]),
        (Meaning.UNSUPPORTED, [3, 13, 25, 26]),
        (Meaning.FORBIDDEN, [4, 17]),
        (Meaning.NO_VALUE, [6, 10, 21, 27]),
        (Meaning.GPU_GONE, [15, 16, 28]),
        (Meaning.GPU_ILL, [11, 14]),
        (Meaning.REINITIALISE, [1, 9]),
        (Meaning.RESTART, [18]),
        (Meaning.FAILED, [2, 7, 12, 19, 20, 999]),
    ],
)
def test_meanings(meaning: Meaning, codes: list[int]) -> None:
    assert {code: meaning_of(code) for code in codes} == dict.fromkeys(codes, meaning)


@pytest.mark.parametrize("code", [-1, -2, 5, 12345])
def test_a_code_that_no_table_knows_is_a_failure(code: int) -> None:
    assert meaning_of(code) is Meaning.FAILED


def test_names() -> None:
    assert code_name(15) == "GPU_IS_LOST"
    assert code_name(999) == "UNKNOWN"
    assert code_name(UNREADABLE) == "UNREADABLE"
    assert code_name(OVERDUE) == "OVERDUE"
    assert code_name(777) == "777"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "modprobe nvidia"),
        (12, "install the NVIDIA driver"),
        (18, "restart the exporter"),
        (999, "see nvidia-smi and the kernel log"),
        (17, "device cgroup"),
        (4, "/dev/nvidia"),
    ],
)
def test_remedies_say_what_helps(code: int, words: str) -> None:
    assert words in remedy_for(code)


@pytest.mark.parametrize(("code", "name"), [(20, "MEMORY"), (777, "777"), (-1, "UNREADABLE")])
def test_without_a_remedy_the_code_is_named(code: int, name: str) -> None:
    assert f"{name} ({code})" in remedy_for(code)
