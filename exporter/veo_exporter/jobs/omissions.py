# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Optional fields that cannot be read: each costs itself, is told and counted, and hides no neighbour.

A field that an event must have is another matter: without it there is no event. Pure.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from veo_exporter.jobs.faults import sentence_of

_MOST_ROUNDS: Final = 8
"""Lists that are too long hide what is wrong in them, until they are cut; nothing else hides."""
_CUT: Final = ("reason", "message")
"""Texts for people: of one that is too long, the beginning says what happened."""
_GONE: Final = object()

_Model = TypeVar("_Model", bound=BaseModel)
_Path = tuple[int | str, ...]


class Flaw(StrEnum):
    """Why a field, or a part of it, was left out; the reason in the counter of dropped things."""

    BAD_VALUE = "bad_value"
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class Omission:
    """What was left out of an event that was taken, in words for whoever sent it."""

    field: str
    flaw: Flaw
    message: str


class Unreadable(Exception):
    """What cannot be left out is wrong."""

    def __init__(self, details: Sequence[ErrorDetails]) -> None:
        super().__init__("cannot be read")
        self.details = details


def read_leniently(
    model: type[_Model], written: object, prefix: str, may_lack: Container[str]
) -> tuple[_Model, tuple[Omission, ...]]:
    """The model without those fields that are bad and may be missing. Raises Unreadable."""
    try:
        return model.model_validate(written), ()
    except ValidationError as error:
        first = details = error.errors(include_url=False)
    draft = _Draft(written, prefix, may_lack)
    for _ in range(_MOST_ROUNDS):
        try:
            draft.leave_out(details)
        except Unreadable:
            if details is first:
                raise
            # Without what was left out it says too little, which nobody wrote.
            raise Unreadable(first) from None
        try:
            return model.model_validate(draft.root), draft.omissions
        except ValidationError as error:
            details = error.errors(include_url=False)
    raise Unreadable(first)


class _Draft:
    """What was written, less what is bad in it; what the sender wrote stays as it is."""

    def __init__(self, written: object, prefix: str, may_lack: Container[str]) -> None:
        self.root: Any = written
        self._prefix = prefix
        self._may_lack = may_lack
        self._copied: set[_Path] = set()
        # By field and flaw: a list of bad values is told once.
        self._omissions: dict[tuple[str, Flaw], tuple[Omission, int]] = {}

    @property
    def omissions(self) -> tuple[Omission, ...]:
        return tuple(
            replace(first, message=f"{first.message} (and {count - 1} more)")
            if count > 1
            else first
            for first, count in self._omissions.values()
        )

    def leave_out(self, details: Sequence[ErrorDetails]) -> None:
        """Take away what is bad. Raises Unreadable."""
        placed = [(self._present(detail["loc"]), detail) for detail in details]
        needed = [detail for path, detail in placed if not self._is_optional(path)]
        if needed:
            raise Unreadable(needed)
        lists: set[_Path] = set()
        for path, detail in placed:
            container = self._own(path[:-1])
            container[path[-1]] = value = self._mended(path, detail)
            if value is _GONE:
                if isinstance(container, list):
                    lists.add(path[:-1])
                else:
                    del container[path[-1]]
        for path in lists:
            whole = self._own(path)
            whole[:] = [item for item in whole if item is not _GONE]

    def _is_optional(self, path: _Path) -> bool:
        # Within a field, each part may be missing.
        return len(path) > 1 or (bool(path) and path[0] in self._may_lack)

    def _mended(self, path: _Path, detail: ErrorDetails) -> object:
        value, kind = detail["input"], detail["type"]
        if kind == "int_type" and isinstance(value, float) and value.is_integer():
            # 1920.0 is 1920: there are languages that know no other numbers.
            return int(value)
        most = detail.get("ctx", {}).get("max_length", 0)
        where = self._prefix + ".".join(str(part) for part in path)
        if kind == "too_long" and isinstance(value, list):
            self._tell(path, Flaw.TOO_MANY, f"{where}: {len(value)} items, and {most} are taken")
            return value[:most]
        if kind == "string_too_long" and path[-1] in _CUT:
            told = f"{where}: {len(value)} characters, and {most} are taken"
            self._tell(path, Flaw.TOO_LONG, told)
            return value[:most]
        flaw = Flaw.TOO_LONG if kind == "string_too_long" else Flaw.BAD_VALUE
        self._tell(path, flaw, sentence_of(detail, self._prefix))
        # One file fewer could leave none that has any bytes: it came out, and nothing is known of it.
        return {} if path[0] == "outputs" and len(path) == 2 else _GONE

    def _tell(self, path: _Path, flaw: Flaw, message: str) -> None:
        field = self._prefix + ".".join(part for part in path if isinstance(part, str))
        first, count = self._omissions.get((field, flaw), (Omission(field, flaw, message), 0))
        self._omissions[field, flaw] = (first, count + 1)

    def _present(self, path: _Path) -> _Path:
        """The path as far as there is something."""
        value = self.root
        for depth, key in enumerate(path):
            if isinstance(value, dict):
                there = key in value
            else:
                there = isinstance(value, list) and isinstance(key, int) and key < len(value)
            if not there:
                return path[:depth]
            value = value[key]
        return path

    def _own(self, path: _Path) -> Any:
        """The object or array at a path, copied before it is changed for the first time."""
        value = self.root
        for depth in range(len(path) + 1):
            inner = value if depth == 0 else value[path[depth - 1]]
            if path[:depth] not in self._copied:
                self._copied.add(path[:depth])
                inner = dict(inner) if isinstance(inner, dict) else list(inner)
                if depth == 0:
                    self.root = inner
                else:
                    value[path[depth - 1]] = inner
            value = inner
        return value
