# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What stands before a kernel message, in each of the forms in which it comes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.logs.kernel_lines import KernelRecord, read_kernel_line, read_kmsg

TEXT = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("record", "read"),
    [
        (f"3,7321,1500000000,-;{TEXT}\n", KernelRecord(TEXT, 1500.0, 7321)),
        (f"4,0,12,c,caller=T123;{TEXT}\n SUBSYSTEM=pci\n", KernelRecord(TEXT, 0.000012, 0)),
        ("6,1,1,-;a;b\n", KernelRecord("a;b", 0.000001, 1)),
        ("6,1,1,-;\n", KernelRecord("", 0.000001, 1)),
    ],
)
def test_records_of_the_device(record: str, read: KernelRecord) -> None:
    assert read_kmsg(record.encode()) == read


@pytest.mark.parametrize(
    "record",
    [
        # What a program wrote into the device: facility 1 (8 / 8) and 3 (30 / 8).
        f"12,7321,1500000000,-;{TEXT}",
        f"30,7321,1500000000,-;{TEXT}",
        TEXT,
        "",
        "3,7321;x",
        "x,1,1,-;y",
    ],
)
def test_what_is_no_record_of_the_kernels_own(record: str) -> None:
    assert read_kmsg(record.encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        f"[ 1500.000000] {TEXT}",
        f"[1500.000000] {TEXT}",
        f"[ 1500.000000][  T123] {TEXT}",
        f"[ 1500.000000] [C7] {TEXT}",
        f"<3>[ 1500.000000] {TEXT}",
        f"Nov 30 20:27:45 n1 kernel: {TEXT}",
        f"Nov  3 20:27:45 n1 kernel: [ 1500.000000] {TEXT}",
        f"<3>Nov  3 20:27:45 n1 kernel: [ 1500.000000][ T9] {TEXT}",
        f"2026-11-30T20:27:45.123456+00:00 n1 kernel: {TEXT}",
        json.dumps({"MESSAGE": TEXT, "_TRANSPORT": "kernel"}),
        json.dumps({"MESSAGE": list(TEXT.encode()), "_TRANSPORT": "kernel"}),
        json.dumps({"MESSAGE": TEXT, "SYSLOG_FACILITY": "0"}),
    ],
)
def test_lines_of_every_form(line: str) -> None:
    assert read_kernel_line(line) == KernelRecord(TEXT)


def test_lines_that_tell_the_kernels_time() -> None:
    journal = {"MESSAGE": "x", "_TRANSPORT": "kernel", "_SOURCE_MONOTONIC_TIMESTAMP": "2500000"}
    assert read_kernel_line(json.dumps(journal)) == KernelRecord("x", 2.5)
    assert read_kernel_line("3,7,2500000,-;x") == KernelRecord("x", 2.5, 7)


@pytest.mark.parametrize(
    "line",
    [
        # A program that puts the kernel's words into its own line.
        f"Nov 30 20:27:45 n1 app[12]: kernel: {TEXT}",
        f"Nov 30 20:27:45 n1 app: {TEXT}",
    ],
)
def test_a_programs_line_stays_whole_and_so_means_nothing(line: str) -> None:
    record = read_kernel_line(line)
    assert record is not None
    assert record.text == line


@pytest.mark.parametrize(
    "entry",
    [
        {"MESSAGE": TEXT, "_TRANSPORT": "journal"},
        {"MESSAGE": TEXT, "_TRANSPORT": "kernel", "SYSLOG_FACILITY": "1"},
        {"_TRANSPORT": "kernel"},
        {"MESSAGE": None, "_TRANSPORT": "kernel"},
        {"MESSAGE": [300], "_TRANSPORT": "kernel"},
        {"MESSAGE": ["a"], "_TRANSPORT": "kernel"},
    ],
)
def test_journal_entries_that_are_not_the_kernels(entry: dict[str, Any]) -> None:
    assert read_kernel_line(json.dumps(entry)) is None


@given(st.binary(max_size=400))
def test_any_bytes_give_a_record_or_none(raw: bytes) -> None:
    assert isinstance(read_kmsg(raw), KernelRecord | None)


@given(
    st.one_of(
        st.text(max_size=300),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(
            lambda value: json.dumps({"MESSAGE": value, "_SOURCE_MONOTONIC_TIMESTAMP": value})
        ),
        st.text(max_size=80).map(lambda text: "{" + text),
    )
)
def test_any_line_gives_a_record_or_none(line: str) -> None:
    assert isinstance(read_kernel_line(line), KernelRecord | None)


def test_a_line_of_nested_brackets_is_no_stack_overflow() -> None:
    assert read_kernel_line('{"MESSAGE":' + "[" * 100_000) is None
