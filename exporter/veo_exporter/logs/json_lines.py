# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Lines that are JSON objects: the texts in them, without JSON's own quotes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

MESSAGE_FIELDS: Final = ("msg", "message", "log", "event", "text")
"""Where loggers, and container runtimes around them, put what was said."""
MAX_FIELDS: Final = 100
"""Of an object this many are looked at."""
MAX_FILLED_CHARS: Final = 200
"""What fills in for a line is a name or a number, and no text."""
MOST_FILLED: Final = 1_000_000_000
_MAX_DEPTH: Final = 3
"""A runtime's object may hold a logger's, as a text."""


@dataclass(frozen=True, slots=True)
class Said:
    """The texts that a rule may fit, the likeliest first, and what stands beside them, by name."""

    texts: tuple[str, ...]
    fields: Mapping[str, str]


def read_json_line(line: str) -> Said | None:
    """What an object says; None if the line is none, and to be taken as it stands."""
    messages: list[str] = []
    others: list[str] = []
    fields: dict[str, str] = {}
    inner: str | None = line
    for _ in range(_MAX_DEPTH):
        found = _object(inner) if inner is not None else None
        if found is None:
            break
        inner = None
        for name, value in list(found.items())[:MAX_FIELDS]:
            # A frame or a GPU; but seconds since 1970 are no stamp that a rule knows.
            if type(value) is int and 0 <= value < MOST_FILLED:
                fields[name] = str(value)
            if not isinstance(value, str):
                continue
            text = value.rstrip("\r\n")
            if name not in MESSAGE_FIELDS:
                others.append(text)
            elif text[:1] == "{" and inner is None:
                inner = text
            # What the logger said stands nearer to the event than what a runtime added.
            if 0 < len(text) <= MAX_FILLED_CHARS:
                fields[name] = text
        messages += [found[name].rstrip("\r\n") for name in MESSAGE_FIELDS if _is_text(found, name)]
    if not messages and not others:
        return None
    # A message that holds another object is searched as it stands last.
    texts = sorted(messages, key=lambda text: text[:1] == "{")
    return Said((*texts, *others, line), fields)


def _is_text(found: Mapping[str, Any], name: str) -> bool:
    return isinstance(found.get(name), str)


def _object(text: str) -> dict[str, Any] | None:
    if text[:1] != "{":
        return None
    try:
        found = from_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
