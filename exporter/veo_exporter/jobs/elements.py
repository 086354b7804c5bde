# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The elements of a JSON array, each by itself: one that is no JSON ends where its brackets close.

Good ones are read by the decoder, which says where each stops. Only a bad one is searched for its end,
and only as far as quotes and brackets leave no doubt: a guess could take one event for two. Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

_MOST_SIGNS: Final = 200_000
"""Quotes and brackets that are looked at of one body, lest a bad one keep everybody waiting: 0.1 s."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SIGN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|["\[\]{},]', re.DOTALL)
_BETWEEN_OBJECTS: Final = re.compile(r"\}\s*,\s*\{")
_VALUE: Final = re.compile(r'\s*:\s*"([^"\\]{1,200})"')
_OPENED_BY: Final = {"}": "{", "]": "["}


class NoElements(Exception):
    """It is no array, or where its elements end is anybody's guess."""


@dataclass(frozen=True, slots=True)
class Bad:
    """Stands where an element would."""

    message: str
    name: str
    """Its `id`, as far as it can be seen."""


def split_elements(text: str, decoder: JSONDecoder) -> Iterator[Any]:
    """What stands in an array; Bad for what is no JSON. Raises NoElements."""
    at = _skip(text, 0)
    if text[at : at + 1] != "[":
        raise NoElements
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        _expect_end(text, at)
        return
    signs_left = _MOST_SIGNS
    while True:
        part, end, message = _decode(text, at, decoder)
        if message:
            name, end, signs_left = _find_end(text, at, signs_left)
            part = Bad(message, name)
        yield part
        if text[end] == "]":
            _expect_end(text, end)
            return
        at = _skip(text, end + 1)


def _decode(text: str, at: int, decoder: JSONDecoder) -> tuple[Any, int, str]:
    """The element at a place, the comma or bracket behind it, and what is wrong instead."""
    try:
        part, end = decoder.raw_decode(text, at)
    except JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        return None, at, f"{message}, at character {error.pos - at + 1} of it"
    except RecursionError:
        return None, at, "it is nested too deeply"
    end = _skip(text, end)
    if text[end : end + 1] not in (",", "]"):
        return None, at, f"something stands behind its end, at character {end - at + 1} of it"
    return part, end, ""


def _find_end(text: str, at: int, signs_left: int) -> tuple[str, int, int]:
    """The id of the bad element at a place, the comma or bracket behind it, and signs still allowed."""
    name, depth = "", [""]
    for sign in _SIGN.finditer(text, at):
        signs_left -= 1
        if signs_left < 0:
            break
        said = sign[0]
        if said[0] == '"':
            # A quote too few or too many turns everything behind it inside out.
            if said == '"' or _BETWEEN_OBJECTS.search(said):
                break
            if said == '"id"' and len(depth) == 2 and (value := _VALUE.match(text, sign.end())):
                name = name or value[1]
        elif said in "[{":
            depth.append(said)
        elif len(depth) == 1 and said in ",]":
            return name, sign.start(), signs_left
        elif said != "," and depth.pop() != _OPENED_BY[said]:
            break
    raise NoElements


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _expect_end(text: str, at: int) -> None:
    if _skip(text, at + 1) != len(text):
        raise NoElements
