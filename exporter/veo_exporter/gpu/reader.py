# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Asking one GPU one group of questions."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from veo_exporter.catalog import MetricSpec
from veo_exporter.clock import Clock
from veo_exporter.gpu.answers import Nothing, Part
from veo_exporter.gpu.codes import UNREADABLE, Meaning, meaning_of
from veo_exporter.gpu.fields import FUNCTION as FIELDS_FUNCTION
from veo_exporter.gpu.fields import FieldQuestions
from veo_exporter.gpu.findings import Finding, Survey
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.probes import Checks, Probe, plausible_limits
from veo_exporter.gpu.questions import questions_for
from veo_exporter.gpu.readings import Cadence, Device, Failure, Reading, Row, Signal, WhyNot
from veo_exporter.gpu.texts import read_texts

_WHY_NOT = {Meaning.UNSUPPORTED: WhyNot.NOT_SUPPORTED, Meaning.FORBIDDEN: WhyNot.NOT_PERMITTED}
FAILURES_OF_A_SILENT_GPU: Final = 2
"""A board that supports a single signal of a group is not condemned for that one."""
_ENDS_THE_ROUND = (Meaning.GPU_GONE, Meaning.REINITIALISE, Meaning.RESTART)


class _Notes:
    """What has been heard so far."""

    __slots__ = ("answered", "code", "failures", "implausible", "missing", "rows", "values")

    def __init__(self) -> None:
        self.values: dict[Signal, float] = {}
        self.missing: dict[Signal, WhyNot] = {}
        self.failures: list[Failure] = []
        self.rows: list[Row] = []
        self.implausible = 0
        self.code = 0
        self.answered = False

    def take_parts(self, checks: Checks, parts: tuple[Part | None, ...]) -> bool:
        """Note an answer that has a code for each of its parts; gives whether to ask on."""
        for (signal, low, high), part in zip(checks, parts, strict=True):
            if isinstance(part, NvmlError):
                if not self.take_failure((signal,), part, once=True):
                    return False
                continue
            self.answered = True
            if part is None:
                self.missing[signal] = WhyNot.NOT_SUPPORTED
            elif isinstance(part, Nothing):
                continue
            elif low <= part <= high:
                self.values[signal] = part
            else:
                self.implausible += 1
        return True

    def take_findings(self, findings: Iterable[Finding]) -> bool:
        """Note what a survey found; gives whether to ask on."""
        for signal, labels, part in findings:
            if isinstance(part, NvmlError):
                if not self.take_failure((signal,), part, once=True):
                    return False
                continue
            self.answered = True
            if isinstance(part, Nothing):
                continue
            low, high = plausible_limits(signal)
            if not low <= part <= high:
                self.implausible += 1
            elif labels and isinstance(signal, MetricSpec):
                self.rows.append((signal, labels, part))
            else:
                self.values[signal] = part
        return True

    def take_failure(
        self, signals: tuple[Signal, ...], error: NvmlError, *, once: bool = False
    ) -> bool:
        """Note a failure; gives whether anything else is worth asking.

        Parts of one answer that fail alike are one failure: it is calls that are counted.
        """
        meaning = meaning_of(error.code)
        if meaning in _WHY_NOT:
            self.missing.update(dict.fromkeys(signals, _WHY_NOT[meaning]))
            return True
        failure = Failure(function=error.function, code=error.code)
        if not once or failure not in self.failures:
            self.failures.append(failure)
        if meaning in _ENDS_THE_ROUND:
            self.code = error.code
            self.values.clear()
            self.rows.clear()
            return False
        if meaning is Meaning.GPU_ILL:
            self.code = error.code
        return True


def read_gpu(
    line: Line,
    device: Device,
    cadence: Cadence,
    skipped: Collection[Signal],
    clock: Clock,
    *,
    surveys: Sequence[Survey] = (),
) -> Reading:
    """Read a group of signals, less those known to be missing; `surveys` come on top.

    One failure costs one value, unless it says that the GPU or the session is gone.
    """
    notes = _Notes()
    texts: dict[str, str] = {}
    questions = questions_for(device.bookmarks, cadence, skipped, surveys)
    asked_all = (
        _ask_probes(line, device, questions.probes, notes)
        and _ask_fields(line, device, questions.fields, notes)
        and _ask_surveys(line, device, questions.surveys, notes)
    )
    if asked_all and cadence is Cadence.STATIC:
        texts, failures = read_texts(line, device)
        notes.failures += failures
    answered = notes.answered or bool(texts)
    if not notes.code and not answered and len(notes.failures) >= FAILURES_OF_A_SILENT_GPU:
        # Not one question was answered: whatever the code, this GPU is not to be trusted.
        notes.code = notes.failures[0].code
    return Reading(
        cadence=cadence,
        finished_unix_seconds=clock.unix_seconds(),
        finished_monotonic_seconds=clock.monotonic_seconds(),
        values=notes.values,
        texts=texts,
        failures=tuple(notes.failures),
        missing=notes.missing,
        implausible=notes.implausible,
        code=notes.code,
        rows=tuple(notes.rows),
    )


def _ask_probes(line: Line, device: Device, probes: tuple[Probe, ...], notes: _Notes) -> bool:
    """Ask them in order; gives whether anything else is worth asking.

    Up to a few hundred times a second: what is said by all is taken without a call for each.
    """
    values = notes.values
    for probe in probes:
        try:
            numbers = probe.read(line, device.handle)
            if (check := probe.check_of_one) is not None and (number := numbers[0]) is not None:
                signal, low, high = check
                if low <= number <= high:
                    notes.answered = True
                    values[signal] = number
                    continue
            if probe.partial:
                if not notes.take_parts(probe.checks, numbers):
                    return False
                continue
            notes.answered = True
            for (signal, low, high), number in zip(probe.checks, numbers, strict=True):
                if number is None:
                    notes.missing[signal] = WhyNot.NOT_SUPPORTED
                elif low <= number <= high:
                    values[signal] = number
                else:
                    notes.implausible += 1
        except NvmlError as error:
            if not notes.take_failure(probe.signals, error):
                return False
        except Exception as error:  # noqa: BLE001, it costs this value and no other
            # The call gave something that our conversion cannot take.
            notes.take_failure(probe.signals, NvmlError(line.function, UNREADABLE, repr(error)))
    return True


def _ask_fields(line: Line, device: Device, fields: FieldQuestions, notes: _Notes) -> bool:
    """As `_ask_probes`, all in one call."""
    if not fields.signals:
        return True
    values = notes.values
    try:
        for checks, parts in fields.ask(line, device.handle):
            if len(parts) == 1 and type(part := parts[0]) is float:
                # As `take_parts` would: nearly all come here, a hundred for each GPU.
                signal, low, high = checks[0]
                if low <= part <= high:
                    notes.answered = True
                    values[signal] = part
                    continue
            if not notes.take_parts(checks, parts):
                return False
    except NvmlError as error:
        return notes.take_failure(fields.signals, error)
    except Exception as error:  # noqa: BLE001, it costs these values and no others
        return notes.take_failure(
            fields.signals, NvmlError(FIELDS_FUNCTION, UNREADABLE, repr(error))
        )
    return True


def _ask_surveys(line: Line, device: Device, surveys: tuple[Survey, ...], notes: _Notes) -> bool:
    for survey in surveys:
        try:
            if not notes.take_findings(survey.read(line, device)):
                return False
        except NvmlError as error:
            if not notes.take_failure(survey.signals, error):
                return False
        except Exception as error:  # noqa: BLE001, it costs these rows and no others
            notes.take_failure(survey.signals, NvmlError(line.function, UNREADABLE, repr(error)))
    return True
