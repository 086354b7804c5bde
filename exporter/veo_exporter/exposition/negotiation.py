# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a scraper accepts, from its request headers.

prometheus_client's own choice passes on what was asked for, whether we write it or not: version 2
of OpenMetrics, or dots in names. It also fails on a version that is no number.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from veo_exporter.exposition.text import Format

REMEMBERED_HEADERS: Final = 64
"""A scraper sends the same headers each time; strangers' are forgotten again."""

PLAIN_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

_KNOWN: Final = {
    ("application/openmetrics-text", "1.0.0"): Format.OPENMETRICS,
    ("application/openmetrics-text", ""): Format.OPENMETRICS,
    ("text/plain", "1.0.0"): Format.TEXT,
    ("text/plain", "0.0.4"): Format.TEXT,
    ("text/plain", ""): Format.TEXT,
    ("text/*", ""): Format.TEXT,
    ("*/*", ""): Format.TEXT,
}
_ALLOW_UTF8: Final = "allow-utf-8"
"""Our names need no escaping: written so, they are the same as with underscores."""


@lru_cache(REMEMBERED_HEADERS)
def choose_format(accept: str) -> tuple[Format, str]:
    """The format to answer in, and its content type; text that everyone reads if in doubt."""
    for kind, parameters in _by_preference(accept):
        version = parameters.get("version", "")
        form = _KNOWN.get((kind, version))
        if form is None:
            continue
        if version == "1.0.0":
            asked = parameters.get("escaping")
            escaping = _ALLOW_UTF8 if asked == _ALLOW_UTF8 else "underscores"
            return form, f"{kind}; version=1.0.0; charset=utf-8; escaping={escaping}"
        if form is Format.OPENMETRICS:
            return form, f"{kind}; version=1.0.0; charset=utf-8"
        break
    return Format.TEXT, PLAIN_TEXT


@lru_cache(REMEMBERED_HEADERS)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the answer may be compressed."""
    return any(coding == "gzip" for coding, _ in _by_preference(accept_encoding))


def _by_preference(header: str) -> list[tuple[str, dict[str, str]]]:
    """What is accepted at all, best first; among equals in the order given."""
    return [
        (name, parameters)
        for weight, name, parameters in sorted(_parts(header), key=lambda part: -part[0])
        if weight > 0
    ]


def _parts(header: str) -> Iterator[tuple[float, str, dict[str, str]]]:
    for part in header.split(","):
        name, *rest = (word.strip() for word in part.split(";"))
        pairs = (word.partition("=") for word in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        yield _weight(parameters.get("q", "1")), name.lower(), parameters


def _weight(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return 0.0
