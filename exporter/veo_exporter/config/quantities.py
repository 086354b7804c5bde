# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Quantities with their unit written out: 100ms, 1m30s. A bare number is refused as ambiguous."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(written: object) -> float:
    """Seconds in a duration as Prometheus writes it, such as 100ms, 5s or 1m30s.

    Raises ValueError with a sentence that says how to write it.
    """
    if isinstance(written, (int, float)) and not isinstance(written, bool):
        raise ValueError(f"{written} has no unit: write {written}ms, {written}s or {written}m")
    if not isinstance(written, str) or not _WHOLE.fullmatch(written):
        raise ValueError(
            f"{written!r} is not a duration: write a number with ms, s, m, h or d, such as 100ms or 1m30s"
        )
    return round(sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(written)), 9)


def format_duration(seconds: float) -> str:
    """The shortest way to write a duration that `parse_duration` reads back."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    if seconds != int(seconds):
        return f"{seconds:g}s"
    whole = int(seconds)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^{_WHOLE.pattern}$", "format": "duration"}),
]
"""Seconds, written with a unit."""
