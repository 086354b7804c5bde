# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies to JSON. What is no JSON in one event of many costs that one.

A NaN, half a surrogate pair or bytes that are no UTF-8 spoil a value, a comma too many or a number as 01
the object around it, and leave no doubt where it stops; a missing brace does, and costs the body.
"""

import base64
import binascii
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from veo_exporter.jobs.elements import Bad, NoElements, split_elements
from veo_exporter.jobs.faults import BadBody, BadEvent, EventFault

_MOST_DIGITS: Final = 1000
"""Longer than any number that is meant, and short enough for Python to read."""


@dataclass(frozen=True, slots=True)
class Spoilt:
    """Stands where an event would, and says why there is none."""

    message: str
    event_id: str = ""


def parse_document(body: bytes, max_events: int) -> Any:
    """What a body says; in an array, Spoilt for each part that is no JSON. Raises BadBody."""
    try:
        document = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        return _parse_leniently(body, max_events, f"not JSON: {error}")
    if isinstance(document, list) and len(document) > max_events:
        raise _too_many(str(len(document)), max_events)
    return document


def parse_data(body: bytes) -> Any:
    """What a body says that is the data of one event. Raises BadBody."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise BadBody(EventFault.NOT_JSON, f"not JSON: {error}") from None


def decode_data(encoded: str) -> dict[str, Any]:
    """The JSON object in an event's data_base64. Raises BadEvent."""
    try:
        found = from_json(base64.b64decode(encoded, validate=True), allow_inf_nan=False)
    except (binascii.Error, ValueError):
        found = None
    if not isinstance(found, dict):
        raise BadEvent(
            EventFault.BAD_DATA, "data_base64: is not the base64 of a JSON object: send it as data"
        )
    return found


def _parse_leniently(body: bytes, max_events: int, message: str) -> list[Any]:
    """The parts of an array, each by itself; only what is no array at all is refused whole."""
    # Bytes that are no UTF-8 become halves of surrogate pairs, and are found with those.
    text = body.decode("utf-8", "surrogateescape")
    parts: list[Any] = []
    try:
        for part in split_elements(text, _DECODER):
            if len(parts) == max_events:
                raise _too_many(f"more than {max_events}", max_events)
            parts.append(_spoilt(part) if isinstance(part, Bad) else _sound(part))
    except NoElements:
        raise BadBody(EventFault.NOT_JSON, message) from None
    return parts


def _too_many(count: str, max_events: int) -> BadBody:
    return BadBody(
        EventFault.TOO_MANY,
        f"{count} events at once, and {max_events} are taken: send them in parts",
    )


def _spoilt(bad: Bad) -> Spoilt:
    return Spoilt(f"not JSON: {bad.message}", "" if _has_surrogate(bad.name) else bad.name)


def _no_number(word: str) -> Spoilt:
    return Spoilt(f"{word} is no JSON number")


def _whole(digits: str) -> int | Spoilt:
    return int(digits) if len(digits) <= _MOST_DIGITS else Spoilt("a number has no end")


def _real(digits: str) -> float | Spoilt:
    return float(digits) if math.isfinite(float(digits)) else Spoilt("a number is out of range")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number, parse_int=_whole, parse_float=_real)


def _sound(part: Any) -> Any:
    """The part itself, or what is wrong in it."""
    for value in _walk(part):
        if isinstance(value, Spoilt):
            return Spoilt(f"not JSON: {value.message}", _id_of(part))
        if isinstance(value, str) and not value.isascii() and _has_surrogate(value):
            return Spoilt(
                "not JSON: a text holds half a surrogate pair, or bytes that are no UTF-8",
                _id_of(part),
            )
    return part


def _walk(part: Any) -> Iterator[Any]:
    coming = [part]
    while coming:
        value = coming.pop()
        yield value
        if isinstance(value, dict):
            coming += value.keys()
            coming += value.values()
        elif isinstance(value, list):
            coming += value


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _id_of(part: Any) -> str:
    known = part.get("id") if isinstance(part, dict) else None
    return known if isinstance(known, str) and not _has_surrogate(known) else ""
