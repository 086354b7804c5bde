# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a panel asks and how it is said: the words come from the metric's declaration."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from dashboards.promql import BadQuery, Series
from dashboards.thresholds import Line
from veo_exporter.catalog import MetricSpec

GPU_LEGEND: Final = "{{node}} GPU {{gpu}}"
NODE_LEGEND: Final = "{{node}}"
NO_DATA: Final = "no data"

_PLACE: Final = re.compile(r"{{(\w+)}}")
_WORDS: Final = {"gpu": "GPU", "gpus": "GPUs", "sm": "SM", "nvml": "NVML", "cpu": "CPU"}


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, and what its series are called. Dashed is for what bounds or frames a value."""

    series: Series
    legend: str = ""
    dashed: bool = False
    in_legend: bool = True

    def __post_init__(self) -> None:
        if missing := set(_PLACE.findall(self.legend)) - self.series.labels:
            raise BadQuery(
                f"{self.legend!r}: {self.series.text} has no label {', '.join(sorted(missing))}"
            )


@dataclass(frozen=True, slots=True)
class About:
    """What a panel is of, and the question it answers.

    Title, unit and meaning are the metric's own, unless the panel makes something else of it.
    """

    spec: MetricSpec | None
    question: str
    _: KW_ONLY
    title: str = ""
    unit: str = ""
    meaning: str = ""
    none: str = NO_DATA
    """What stands where there is no value, so that it never looks like a zero."""

    def __post_init__(self) -> None:
        if not self.question.endswith("?"):
            raise ValueError(f"a panel answers a question: {self.question!r}")
        if self.spec is None and not (self.title and self.unit and self.meaning):
            raise ValueError(f"{self.question!r}: title, unit or meaning is missing")

    @property
    def heading(self) -> str:
        """The panel's title."""
        return self.title or (title_of(self.spec) if self.spec else "")

    @property
    def grafana_unit(self) -> str:
        """The unit of what is shown."""
        return self.unit or (self.spec.unit.grafana if self.spec else "")

    def description(self, lines: Sequence[Line], *, drawn: bool) -> str:
        """The question, what the answer means, and what the lines or colours are."""
        meaning = self.meaning or (self.spec.help if self.spec else "")
        return "\n\n".join(
            (
                self.question,
                meaning,
                *(line.sentence(self.grafana_unit, drawn=drawn) for line in lines),
            )
        )


def title_of(spec: MetricSpec) -> str:
    """A metric's name as people say it."""
    stem = re.sub(r"^veo_(gpu_|exporter_)?", "", spec.name.removesuffix("_total"))
    words = stem.removesuffix(f"_{spec.unit.suffix}").split("_")
    title = " ".join(_WORDS.get(word, word) for word in words)
    return title[0].upper() + title[1:]
