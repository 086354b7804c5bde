# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Asking many numbers of a GPU in one call (nvmlDeviceGetFieldValues), each with a code of its own."""

from collections.abc import Callable, Iterator, Sequence
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


def first_of(convert: Callable[[float], float] = float) -> Combine:
    """The first number that the board supports; there is one for each generation."""

    def combine(numbers: Sequence[float | NvmlError]) -> tuple[Part, ...]:
        error: NvmlError | None = None
        for number in numbers:
            if not isinstance(number, NvmlError):
                return (convert(number),)
            if error is None or meaning_of(error.code) is Meaning.UNSUPPORTED:
                error = number
        if error is None:
            raise ValueError("a field wants something to ask for")
        return (error,)

    return combine


def ask_fields(
    line: Line, gpu: Handle, fields: Sequence[Field], unsupported: set[tuple[int, int]]
) -> Iterator[tuple[Checks, tuple[Part, ...]]]:
    """One call for all of them; gives what each of them says. Raises NvmlError if the call fails.

    What is known to be unsupported is not asked for, and what turns out to be is added to it: of two
    generations' fields for one signal a board has one, and of 36 links perhaps 18.
    """
    known = frozenset(unsupported)
    asks = [one_ask for one in fields for one_ask in one.asks]
    wanted = [place for one_ask in asks if (place := one_ask[:2]) not in known]
    answers: Iterator[Answer] = iter(())
    if wanted:
        answers = ROW.iter_unpack(memoryview(line.call(FUNCTION, gpu, wanted)).cast("B"))
    for one in fields:
        # All of this field's answers are taken before any can fail.
        numbers: list[float | NvmlError] = []
        for one_ask in one.asks:
            place = one_ask[:2]
            if place in known:
                numbers.append(_NOT_SUPPORTED)
                continue
            numbers.append(number := _number(one_ask, next(answers)))
            if number is _NOT_SUPPORTED:
                unsupported.add(place)
        try:
            parts = one.combine(numbers)
        except Exception as error:  # noqa: BLE001, it costs this field and no other
            parts = (NvmlError(FUNCTION, UNREADABLE, repr(error)),) * len(one.signals)
        yield one.checks, parts


def _number(ask: Ask, answer: Answer) -> float | NvmlError:
    _field_id, _scope, _time, _latency, value_type, code, stored = answer
    if code:
        return _NOT_SUPPORTED if code in _NO_ANSWER else NvmlError(FUNCTION, code)
    try:
        return ask.value(value_type, stored)
    except NvmlError as error:
        return error
    except Exception as error:  # noqa: BLE001, it costs this number and no other
        return NvmlError(FUNCTION, UNREADABLE, repr(error))
