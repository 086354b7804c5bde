# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Protocol Buffers' wire format, as much of it as a reader of strings and nested messages needs.

A message is a row of fields: a tag (number * 8 + wire type) and a value. Everything that we read has
wire type 2, a length and so many bytes; the others are stepped over. Nothing is copied.
"""

from collections.abc import Iterator
from typing import Final

from veo_exporter.kubernetes.faults import garbled

Span = tuple[int, int]
"""Where a value begins and ends in the whole answer."""

_VARINT: Final = 0
_LENGTH: Final = 2
_FIXED_BYTES: Final = {1: 8, 5: 4}
_VARINT_BITS: Final = 64


def blocks(data: bytes, span: Span) -> Iterator[tuple[int, Span]]:
    """Number and place of each field with a length, in the order written. Raises KubeletFault."""
    position, end = span
    while position < end:
        tag, position = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        if not number:
            raise garbled("the answer has a field without a number")
        if wire_type == _LENGTH:
            length, position = _varint(data, position, end)
            stop = position + length
            if stop > end:
                raise garbled("the answer ends within a field")
            yield number, (position, stop)
            position = stop
        elif wire_type == _VARINT:
            _, position = _varint(data, position, end)
        elif wire_type in _FIXED_BYTES:
            position += _FIXED_BYTES[wire_type]
            if position > end:
                raise garbled("the answer ends within a field")
        else:
            raise garbled(f"the answer has a field of wire type {wire_type}")


def text(data: bytes, span: Span) -> str:
    """A string. Raises KubeletFault if it is not UTF-8."""
    try:
        return data[span[0] : span[1]].decode()
    except UnicodeDecodeError:
        raise garbled("the answer has a name that is not UTF-8") from None


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    # Nearly all are below 128: one byte.
    value = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift >= _VARINT_BITS + 6:
            raise garbled("the answer has a number of more than 64 bits")
    raise garbled("the answer ends within a number")
