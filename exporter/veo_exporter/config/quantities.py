# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Quantities with their unit written out: 100ms, 1m30s. A bare number is refused as ambiguous."""

import math
import re
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

MAX_SECONDS: Final = 100 * 366 * 86400.0
"""Up to here a float holds a duration well below the microsecond."""

_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
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
    seconds = math.fsum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(written))
    if seconds > MAX_SECONDS:
        raise ValueError(f"{written[:40]} is longer than any duration that makes sense here")
    return round(seconds, 9)


def format_duration(seconds: float) -> str:
    """A duration as one would write it; `parse_duration` reads the same one back."""
    if seconds < 1:
        return _decimal(seconds * 1000, 6) + "ms"
    if seconds != int(seconds):
        return _decimal(seconds, 9) + "s"
    whole = int(seconds)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def _decimal(number: float, places: int) -> str:
    return f"{number:.{places}f}".rstrip("0").rstrip(".")


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^{_WHOLE.pattern}$", "format": "duration"}),
]
"""Seconds, written with a unit."""
