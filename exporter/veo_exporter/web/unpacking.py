# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Packed bodies of requests, unpacked within a bound: what is small on the wire may be huge."""

import zlib
from typing import Final

from veo_exporter.jobs import BadBody, EventFault

PLAIN: Final = ("", "identity")
GZIP: Final = ("gzip", "x-gzip")
DEFLATE: Final = "deflate"

_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
_ZLIB_FORMAT: Final = zlib.MAX_WBITS
_BARE_FORMAT: Final = -zlib.MAX_WBITS
_ZLIB_METHOD: Final = 8
"""The lower half of the first byte of what zlib wrote."""


def unpack(body: bytes, coding: str, max_bytes: int) -> bytes:
    """The body as it was before `Content-Encoding`. Raises BadBody."""
    coding = coding.strip().lower()
    if coding in PLAIN:
        return body
    if coding in GZIP:
        return _inflate(body, coding, _GZIP_FORMAT, max_bytes)
    if coding == DEFLATE:
        # Some send the bare stream, though the standard wants zlib's frame around it.
        framed = body[:1] and body[0] & 0xF == _ZLIB_METHOD
        return _inflate(body, coding, _ZLIB_FORMAT if framed else _BARE_FORMAT, max_bytes)
    raise BadBody(
        EventFault.UNSUPPORTED_MEDIA_TYPE,
        f"Content-Encoding {coding[:60]!r} is not understood: send gzip, deflate, or the body as it is",
    )


def too_large(max_bytes: int) -> BadBody:
    """What is said of a body over the bound."""
    return BadBody(
        EventFault.BODY_TOO_LARGE,
        f"the body is larger than {max_bytes} bytes: send fewer events at once",
    )


def _inflate(body: bytes, coding: str, form: int, max_bytes: int) -> bytes:
    whole = bytearray()
    rest = body
    while True:
        inflater = zlib.decompressobj(form)
        try:
            # One more than allowed tells that there is more.
            whole += inflater.decompress(rest, max_bytes + 1 - len(whole))
        except zlib.error:
            raise _damaged(coding) from None
        if len(whole) > max_bytes:
            raise too_large(max_bytes)
        if not inflater.eof:
            raise _damaged(coding)
        rest = inflater.unused_data
        if not rest:
            return bytes(whole)
        # Packed files may be strung together, and are then one.
        if form != _GZIP_FORMAT:
            raise _damaged(coding)


def _damaged(coding: str) -> BadBody:
    return BadBody(
        EventFault.NOT_JSON,
        f"the body is damaged or not packed as its Content-Encoding says: {coding}",
    )
