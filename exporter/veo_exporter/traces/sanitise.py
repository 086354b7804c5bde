# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What others say, made fit for OTLP: one value that cannot be encoded loses its whole batch."""

from collections.abc import Sequence
from typing import Final

from veo_exporter.traces.spans import Attributes, AttributeValue

MAX_CHARACTERS: Final = 1024
MAX_ITEMS: Final = 32
"""Of a text, and of a list of texts."""

_INT64: Final = range(-(2**63), 2**63)
_LAST_UNIX_NS: Final = 2**63 - 1


def clean_attributes(attributes: Attributes) -> dict[str, AttributeValue]:
    """Texts of a bounded length that are Unicode, numbers of 64 bits."""
    return {name: _clean(value) for name, value in attributes.items()}


def clean_time(unix_ns: int) -> int:
    """A time that OTLP can hold."""
    return min(max(unix_ns, 0), _LAST_UNIX_NS)


def _clean(value: AttributeValue) -> AttributeValue:
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else float(value) if abs(value) < 10**300 else str(value)
    return _clean_texts(value)


def _clean_texts(values: Sequence[str]) -> list[str]:
    return [_clean_text(value) for value in values[:MAX_ITEMS]]


def _clean_text(text: str) -> str:
    # JSON may carry half a surrogate pair, which is no Unicode.
    return text[:MAX_CHARACTERS].encode(errors="replace").decode()
