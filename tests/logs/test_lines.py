# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to lines, however they are torn."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.logs.lines import Blemish, LineSplitter


@pytest.mark.parametrize(
    ("chunks", "lines", "left"),
    [
        ([b"a\nb\n"], ["a", "b"], []),
        ([b"a", b"b\nc"], ["ab"], ["c"]),
        ([b"\n\n"], [], []),
        ([b"a\r\nb\r\n"], ["a", "b"], []),
        ([b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"], ["a", "\ufeffb"], []),
        # What was lost is no glue.
        ([b"\0\0\0a\0\0b\n"], ["a b"], []),
        ([b"a\0", b"\0b\0", b"\n\0c\0\r\n"], ["a b", "c"], []),
        # NULs take nobody's place.
        ([b"\0" * 99 + b"01234" + b"\0" * 99 + b"6789\n"], ["01234 6789"], []),
        # The two halves of an e with an accent come in two chunks.
        ([b"caf\xc3", b"\xa9\n"], ["café"], []),
        ([b"caf\xc3\n", b"\xa9\n"], ["caf�", "�"], []),
        # Only a newline ends a line: Python knows ten more ways.
        ([b"a\x0bb\xc2\x85c\xe2\x80\xa8d\n"], ["a\x0bb\x85c\u2028d"], []),
        # Ten bytes are the bound.
        ([b"0123456789\n"], ["0123456789"], []),
        ([b"0123456789x\nnext\n"], ["0123456789", "next"], []),
        ([b"01234", b"56789", b"xxxx", b"x\nnext\n"], ["0123456789", "next"], []),
    ],
)
def test_lines(chunks: list[bytes], lines: list[str], left: list[str]) -> None:
    splitter = LineSplitter(10)
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert (found, splitter.flush()) == (lines, left)
    cut = any(b"x" in chunk for chunk in chunks) and b"0123" in chunks[0]
    assert splitter.blemishes[Blemish.CUT] == cut


@pytest.mark.parametrize(
    ("content", "blemishes"),
    [
        (b"a\nb\n", {}),
        # The hole that a truncated file begins with.
        (b"\0\0a\n", {}),
        (b"a\n\0\0b\n", {Blemish.NUL: 1}),
        (b"a\0b\0c\nd\0\n\0\0\n", {Blemish.NUL: 3}),
        (b"caf\xc3\n\xa9 \xa9\ncaf\xc3\xa9\n", {Blemish.ENCODING: 2}),
        (b"a\0\xff\n", {Blemish.NUL: 1, Blemish.ENCODING: 1}),
        # Fifteen characters of two bytes: the cut goes through one.
        (b"x" + "é".encode() * 15 + b"\n", {Blemish.CUT: 1}),
    ],
)
def test_what_is_wrong_with_lines_is_counted_line_by_line(
    content: bytes, blemishes: dict[Blemish, int]
) -> None:
    for torn in (False, True):
        splitter = LineSplitter(20)
        for chunk in [bytes([byte]) for byte in content] if torn else [content]:
            splitter.feed(chunk)
        assert splitter.blemishes == blemishes


def test_a_line_of_a_megabyte_costs_the_bound_and_no_neighbour() -> None:
    splitter = LineSplitter(1000)
    lines = splitter.feed(b"before\n" + b"x" * (1 << 20))
    lines += splitter.feed(b"x\nafter\n")
    assert [len(line) for line in lines] == [6, 1000, 5]
    assert splitter.blemishes == {Blemish.CUT: 1}


@given(
    st.binary(max_size=300) | st.text("a\0\n\ré", max_size=60).map(str.encode),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_how_it_is_torn_makes_no_difference(content: bytes, cuts: list[int]) -> None:
    whole, torn = LineSplitter(20), LineSplitter(20)
    expected = [*whole.feed(content), *whole.flush()]
    edges = [0, *sorted(cuts), len(content)]
    found: list[str] = []
    for start, end in pairwise(edges):
        found += torn.feed(content[start:end])
    assert [*found, *torn.flush()] == expected
    assert torn.blemishes == whole.blemishes
