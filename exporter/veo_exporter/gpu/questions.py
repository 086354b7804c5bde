# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of one GPU for a group of signals, worked out once and asked again and again."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from veo_exporter.gpu.field_table import FIELDS
from veo_exporter.gpu.fields import Field, FieldQuestions
from veo_exporter.gpu.findings import Survey
from veo_exporter.gpu.probes import PROBES, SURVEYS, Probe
from veo_exporter.gpu.readings import Bookmarks, Cadence, Signal

Question = TypeVar("Question", Probe, Field, Survey)


class Questions(NamedTuple):
    """All of a group but what is known to be missing."""

    skipped: Collection[Signal]
    further: Sequence[Survey]
    """Those that were asked for on top of the group's own, the same object each time."""
    probes: tuple[Probe, ...]
    fields: FieldQuestions
    surveys: tuple[Survey, ...]


def questions_for(
    bookmarks: Bookmarks, cadence: Cadence, skipped: Collection[Signal], further: Sequence[Survey]
) -> Questions:
    """Those of before, as long as the same is skipped: to look at each signal takes longer than some of
    the calls. Without anything to be skipped, all is asked for once more."""
    known: Questions | None = bookmarks.questions.get(cadence)
    if known is not None and skipped != ():
        if known.skipped is skipped and known.further is further and known.fields.unchanged:
            return known
        unsupported = known.fields.unsupported
    else:
        unsupported = set()
    sources = bookmarks.sources
    questions = bookmarks.questions[cadence] = Questions(
        skipped,
        further,
        _worth_asking(PROBES[cadence], skipped),
        FieldQuestions(_worth_asking(FIELDS[cadence], skipped), unsupported, sources),
        _worth_asking((*SURVEYS[cadence], *further), skipped),
    )
    return questions


def _worth_asking(
    questions: Iterable[Question], skipped: Collection[Signal]
) -> tuple[Question, ...]:
    return tuple(one for one in questions if not all(signal in skipped for signal in one.signals))
