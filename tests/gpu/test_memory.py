# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which UUID was at which PCI address, over restarts."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.gpu.conftest import PATIENCE_SECONDS, address_of, view_of, wait_until
from tests.gpu.running import ALL_OK, UUIDS, Start
from veo_exporter.gpu.memory import (
    FILE_NAME,
    MAX_BYTES,
    MAX_GPUS,
    AddressMemory,
    BadMemory,
    name_from_memory,
    read_memory,
    write_memory,
)
from veo_exporter.gpu.readings import State

ONE, TWO = "0000:1b:00.0", "0000:4e:00.0"


def kept(folder: Path) -> dict[str, str]:
    return read_memory((folder / FILE_NAME).read_bytes())


def learn(memory: AddressMemory, **seen: str) -> None:
    memory.learn({{"one": ONE, "two": TWO}[slot]: uuid for slot, uuid in seen.items()})
    assert memory.settle(PATIENCE_SECONDS)


def test_what_was_learned_is_there_after_a_restart(tmp_path: Path) -> None:
    learn(AddressMemory(tmp_path), one="GPU-a", two="GPU-b")
    assert AddressMemory(tmp_path).gpus == {ONE: "GPU-a", TWO: "GPU-b"}
    # Whole or not at all: nothing but the file is left.
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_it_is_written_when_it_changes_and_not_else(tmp_path: Path) -> None:
    memory = AddressMemory(tmp_path)
    learn(memory)
    assert not (tmp_path / FILE_NAME).exists()
    learn(memory, one="GPU-a")
    (tmp_path / FILE_NAME).unlink()
    learn(memory, one="GPU-a")
    learn(memory)
    assert not (tmp_path / FILE_NAME).exists()
    learn(memory, two="GPU-b")
    assert kept(tmp_path) == {ONE: "GPU-a", TWO: "GPU-b"}


def test_a_gpu_that_is_not_seen_is_remembered(tmp_path: Path) -> None:
    memory = AddressMemory(tmp_path)
    learn(memory, one="GPU-a", two="GPU-b")
    learn(memory, one="GPU-a")
    assert kept(tmp_path) == {ONE: "GPU-a", TWO: "GPU-b"}


def test_a_board_that_was_changed_or_moved(tmp_path: Path) -> None:
    memory = AddressMemory(tmp_path)
    learn(memory, one="GPU-a")
    learn(memory, one="GPU-c")
    assert kept(tmp_path) == {ONE: "GPU-c"}
    learn(memory, two="GPU-c")
    assert kept(tmp_path) == {TWO: "GPU-c"}


def test_it_is_bounded(tmp_path: Path) -> None:
    memory = AddressMemory(tmp_path)
    for bus in range(MAX_GPUS + 3):
        memory.learn({f"{bus:04x}:1b:00.0": f"GPU-{bus}"})
    assert memory.settle(PATIENCE_SECONDS)
    # The oldest are forgotten.
    assert list(kept(tmp_path).values()) == [f"GPU-{bus}" for bus in range(3, MAX_GPUS + 3)]
    assert (tmp_path / FILE_NAME).stat().st_size < MAX_BYTES


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"", "it is not JSON"),
        (b'{"schema": 1, "gpus": {"0000:1b:0', "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[" * 100_000, "it is larger than 65536 bytes"),
        (b"[" * 60_000, "it is not JSON"),
        (b"[]", "it does not say that its schema is 1"),
        (b'{"schema": 2, "gpus": {}}', "it does not say that its schema is 1"),
        (b'{"schema": 1}', "it has no list"),
        (b'{"schema": 1, "gpus": {"no address": "GPU-a"}}', "is not a PCI address with a UUID"),
        (b'{"schema": 1, "gpus": {"0000:1b:00.0": 7}}', "is not a PCI address with a UUID"),
        (b'{"schema": 1, "gpus": {"0000:1b:00.0": "a\\nb"}}', "is not a PCI address with a UUID"),
    ],
)
def test_a_corrupt_file_is_set_aside_and_said(tmp_path: Path, written: bytes, reason: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(written)
    failures: list[int] = []
    with capture_logs() as lines:
        memory = AddressMemory(tmp_path, failed=lambda: failures.append(1))
    assert memory.gpus == {}
    assert failures == [1]
    [line] = lines
    assert line["log_level"] == "warning"
    assert reason in line["reason"]
    assert line["set_aside_as"] == str(tmp_path / "gpus.corrupt")
    assert (tmp_path / "gpus.corrupt").read_bytes() == written
    learn(memory, one="GPU-a")
    assert kept(tmp_path) == {ONE: "GPU-a"}


def test_a_folder_that_cannot_be_written_costs_the_memory_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    failures: list[int] = []
    memory = AddressMemory(folder, failed=lambda: failures.append(1))
    folder.rmdir()
    with capture_logs() as lines:
        learn(memory, one="GPU-a")
    assert failures == [1]
    assert [line["log_level"] for line in lines] == ["warning"]
    assert memory.gpus == {ONE: "GPU-a"}


@given(
    st.dictionaries(
        st.from_regex(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", fullmatch=True),
        st.from_regex(r"GPU-[0-9a-f-]{1,36}", fullmatch=True),
        max_size=MAX_GPUS,
    )
)
def test_what_is_written_is_read_back(gpus: dict[str, str]) -> None:
    assert read_memory(write_memory(gpus)) == gpus
    assert len(write_memory(gpus)) <= MAX_BYTES


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.just(1),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["schema", "gpus", "x"]), inner)
    ),
)


@given(JSON)
def test_whatever_stands_in_it_is_read_or_refused(content: Any) -> None:
    with suppress(BadMemory):
        assert isinstance(read_memory(json.dumps(content).encode()), dict)


def test_only_gpus_without_a_name_get_one_and_no_name_is_given_twice() -> None:
    remembered = {
        address_of("GPU-1"): "GPU-old",
        address_of("GPU-2"): "GPU-two",
        # It stands in another slot now, and is well.
        address_of("GPU-3"): "GPU-1",
    }
    gpus = [
        view_of("GPU-1", 0),
        view_of("GPU-2", 1, uuid="", state=State.LOST),
        view_of("GPU-3", None, uuid="", state=State.HIDDEN),
        view_of("GPU-4", 3, uuid="", pci_bus_id="", state=State.LOST),
    ]
    assert [(gpu.uuid, gpu.state) for gpu in name_from_memory(gpus, remembered)] == [
        ("GPU-1", State.OK),
        ("GPU-two", State.LOST),
        ("", State.HIDDEN),
        ("", State.LOST),
    ]


def test_a_gpu_that_is_lost_before_the_start_has_the_uuid_it_had(
    start: Start, tmp_path: Path
) -> None:
    memory = AddressMemory(tmp_path)
    first = start(memory=memory)
    first.wait_for(ALL_OK)
    wait_until(lambda: len(memory.gpus) == 3)
    assert memory.settle(PATIENCE_SECONDS)
    first.sampler.stop(5)

    second = start(memory=AddressMemory(tmp_path), prepare=lambda nvml: nvml.lose("GPU-2"))
    second.wait_for({"GPU-1": State.OK, "GPU-2": State.LOST, "GPU-3": State.OK})
    lost = second.known("GPU-2")
    assert (lost.index, lost.pci_bus_id) == (1, address_of("GPU-2"))
    # Nothing else is said of it.
    assert (lost.texts, lost.readings, lost.windows) == ({}, (), {})
    second.nvml.recover("GPU-2")
    second.wait_for(ALL_OK)
    assert len(second.sampler.latest.gpus) == 3


def test_so_has_one_that_nvml_does_not_list(start: Start, tmp_path: Path) -> None:
    memory = AddressMemory(tmp_path)
    memory.learn({address_of(uuid): uuid for uuid in UUIDS})
    running = start("GPU-1", "GPU-3", memory=memory)
    running.wait_for({"GPU-1": State.OK, "GPU-2": State.HIDDEN, "GPU-3": State.OK})
    assert memory.gpus == {address_of(uuid): uuid for uuid in UUIDS}
