# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Asking many numbers of a GPU in one call (nvmlDeviceGetFieldValues), each with a code of its own."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple

from veo_exporter.gpu.answers import Part
from veo_exporter.gpu.codes import UNREADABLE, Meaning, ReturnCode, meaning_of
from veo_exporter.gpu.nvml import Handle, Line, NvmlError
from veo_exporter.gpu.probes import Checks, checks_of
from veo_exporter.gpu.readings import Signal

FUNCTION: Final = "nvmlDeviceGetFieldValues"
ALL_LINKS: Final = 0xFFFFFFFF
"""The scope that asks for the sum over all NVLinks."""

ROW: Final = Struct("@IIqqII8s")
"""nvmlFieldValue_t: field, scope, time, latency, type of the value, return code, value. Read from memory
as it is: through the bindings' structures, which look at each attribute in Python, it takes five times
as long."""
TYPES: Final = tuple(Struct(code) for code in ["@d", "@I", "@L", "@Q", "@q", "@i", "@H"])
"""By nvmlValueType_t, how a value is stored: at the start of its eight bytes."""
UNSIGNED_INT: Final = 1

_NOT_SUPPORTED: Final = NvmlError(FUNCTION, ReturnCode.NOT_SUPPORTED)


def value_by_type(value_type: int, stored: bytes) -> float:
    """The value as the type that the answer names."""
    number: float = TYPES[value_type].unpack_from(stored)[0]
    return number


def unsigned_value(_value_type: int, stored: bytes) -> float:
    """The value as an unsigned int, where drivers name another type and mean this one."""
    return value_by_type(UNSIGNED_INT, stored)


def wide_value(value_type: int, stored: bytes) -> float:
    """The value of a counter of bytes. One of 32 bits wraps within a second at full speed, so that
    nothing can be told from it."""
    if value_type == UNSIGNED_INT:
        raise _NOT_SUPPORTED
    return value_by_type(value_type, stored)


class Ask(NamedTuple):
    """One number to ask for; the scope is the NVLink that is meant."""

    field_id: int
    scope: int = 0
    value: Callable[[int, bytes], float] = value_by_type


# INVALID_ARGUMENT: the driver is older than the field, or the board has no such link.
_NO_ANSWER: Final = (int(ReturnCode.NOT_SUPPORTED), int(ReturnCode.INVALID_ARGUMENT))

Answer = tuple[int, int, int, int, int, int, bytes]
"""What `ROW` unpacks."""
Combine = Callable[[Sequence[float | NvmlError]], tuple[Part, ...]]


@dataclass(frozen=True, slots=True)
class Field:
    """Signals that are made of some of the numbers. `combine` gives one for each signal."""

    signals: tuple[Signal, ...]
    asks: tuple[Ask, ...]
    combine: Combine
    checks: Checks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "checks", checks_of(self.signals))


class FirstOf:
    """The first number that the board supports; there is one for each generation.

    One that merely failed is not made good by the next: another counter begins elsewhere.
    """

    def __init__(self, *converts: Callable[[float], float]) -> None:
        self._converts = converts

    def convert_of(self, place: int) -> Callable[[float], float]:
        """What makes base units of the number at this place; the last one is for all that follow."""
        return self._converts[min(place, len(self._converts) - 1)]

    @staticmethod
    def source_among(numbers: Sequence[float | NvmlError]) -> int:
        """Which of them is to be believed, be it that it failed."""
        for place, number in enumerate(numbers):
            if not isinstance(number, NvmlError):
                return place
            if meaning_of(number.code) is not Meaning.UNSUPPORTED:
                return place
        return 0

    def __call__(self, numbers: Sequence[float | NvmlError]) -> tuple[Part, ...]:
        place = self.source_among(numbers)
        number = numbers[place]
        return (number if isinstance(number, NvmlError) else self.convert_of(place)(number),)


def first_of(*converts: Callable[[float], float]) -> Combine:
    """A field's number, in base units; with one conversion for each source, or one for all."""
    return FirstOf(*(converts or (float,)))


class _Row(NamedTuple):
    """A field, less what is known to be unsupported."""

    field: Field
    asks: tuple[Ask | None, ...]
    """None where there is nothing to ask."""
    convert: Callable[[float], float] | None
    """Where the field is one plain number, as nearly all are, what to make of it."""


class FieldQuestions:
    """Fields to be asked for in one call, again and again.

    What is known to be unsupported is not asked for, and what turns out to be is added to it: of two
    generations' fields for one signal a board has one, and of 36 links perhaps 18. The one that has
    answered is believed from then on, and no other: a counter that changes its source may fall.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        unsupported: set[tuple[int, int]],
        sources: dict[tuple[Signal, ...], int] | None = None,
    ) -> None:
        self.signals = tuple(signal for one in fields for signal in one.signals)
        self.unsupported = unsupported
        """The fields with their scopes that the board does not have."""
        self.sources = {} if sources is None else sources
        """By a field's signals, the place of the ask that has answered."""
        self._known = len(unsupported), len(self.sources)
        self._rows = [_row_of(one, unsupported, self.sources) for one in fields]
        self._wanted = [ask[:2] for row in self._rows for ask in row.asks if ask is not None]

    @property
    def unchanged(self) -> bool:
        """Whether nothing more turned out to be unsupported since, nor any source to answer."""
        return (len(self.unsupported), len(self.sources)) == self._known

    def ask(self, line: Line, gpu: Handle) -> Iterator[tuple[Checks, tuple[Part, ...]]]:
        """One call for all of them; gives what each of them says. Raises NvmlError if the call fails."""
        answers: Iterator[Answer] = iter(())
        if self._wanted:
            answers = ROW.iter_unpack(memoryview(line.call(FUNCTION, gpu, self._wanted)).cast("B"))
        for one, asks, convert in self._rows:
            try:
                if convert is None:
                    numbers = self._numbers(asks, answers)
                    parts = one.combine(numbers)
                    if isinstance(one.combine, FirstOf):
                        self._note_source(one, numbers)
                else:
                    answer = next(answers)
                    if answer[5]:
                        parts = tuple(self._number(ask, answer) for ask in asks if ask)
                    else:
                        parts = (convert(TYPES[answer[4]].unpack_from(answer[6])[0]),)
            except Exception as error:  # noqa: BLE001, it costs this field and no other
                parts = (NvmlError(FUNCTION, UNREADABLE, repr(error)),) * len(one.signals)
            yield one.checks, parts

    def _note_source(self, field: Field, numbers: Sequence[float | NvmlError]) -> None:
        place = FirstOf.source_among(numbers)
        if len(numbers) > 1 and not isinstance(numbers[place], NvmlError):
            self.sources[field.signals] = place

    def _numbers(
        self, asks: tuple[Ask | None, ...], answers: Iterator[Answer]
    ) -> list[float | NvmlError]:
        # All of a field's answers are taken before any can fail.
        return [_NOT_SUPPORTED if ask is None else self._number(ask, next(answers)) for ask in asks]

    def _number(self, ask: Ask, answer: Answer) -> float | NvmlError:
        _field_id, _scope, _time, _latency, value_type, code, stored = answer
        if code in _NO_ANSWER:
            self.unsupported.add(ask[:2])
            return _NOT_SUPPORTED
        if code:
            return NvmlError(FUNCTION, code)
        try:
            return ask.value(value_type, stored)
        except NvmlError as error:
            return error
        except Exception as error:  # noqa: BLE001, it costs this number and no other
            return NvmlError(FUNCTION, UNREADABLE, repr(error))


def _row_of(
    field: Field,
    unsupported: Collection[tuple[int, int]],
    sources: Mapping[tuple[Signal, ...], int],
) -> _Row:
    asks = tuple(None if ask[:2] in unsupported else ask for ask in field.asks)
    if not isinstance(field.combine, FirstOf):
        return _Row(field, asks, None)
    source = sources.get(field.signals) if len(asks) > 1 else 0
    if source is None:
        return _Row(field, asks, None)
    believed = tuple(ask if place == source else None for place, ask in enumerate(asks))
    ask = believed[source]
    if ask is not None and ask.value is value_by_type:
        return _Row(field, (ask,), field.combine.convert_of(source))
    return _Row(field, believed, None)
