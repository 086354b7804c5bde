# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of jobs, the events that tell of them, and the logs that some are read from."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from veo_client.vocabulary import Stage
from veo_exporter.config.quantities import Duration, parse_duration
from veo_exporter.config.section import Section
from veo_exporter.config.written import JsonList

_BUDGET: Final = re.compile(r"([^/=]+/[^/=]+/([^/=]+))=(.+)")
_PARTS: Final = (*(stage.value for stage in Stage), "request", "lost")
_PRESETS: Final = ("veo-engine",)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,99}")


def split_budget(written: str) -> tuple[str, float]:
    """The place `engine/model/part` of a budget, and its seconds. Raises ValueError."""
    match = _BUDGET.fullmatch(written)
    if match is None:
        raise ValueError(
            f"{written[:100]!r} is no budget: write engine/model/part=duration, as veo-engine/*/render=6.8s"
        )
    if match[2] not in _PARTS:
        raise ValueError(f"{match[2]!r} is no part of a job: one of {', '.join(_PARTS)}")
    return match[1], parse_duration(match[3])


def _budgets(written: tuple[str, ...]) -> tuple[str, ...]:
    for one in written:
        split_budget(one)
    return written


def _names(written: tuple[str, ...]) -> tuple[str, ...]:
    for name in written:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name[:100]!r} is no name: letters, digits and _ . : / @ - only")
    return written


def _presets(written: tuple[str, ...]) -> tuple[str, ...]:
    for name in written:
        if name not in _PRESETS:
            raise ValueError(f"{name[:100]!r} is no preset: there is {', '.join(_PRESETS)}")
    return written


def _absolute_patterns(written: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in written:
        if not pattern.startswith("/"):
            raise ValueError(f"{pattern[:100]!r} is not an absolute path")
    return written


_List = Annotated[tuple[str, ...], JsonList]
_Names = Annotated[_List, AfterValidator(_names)]


class Jobs(Section):
    """What is known of jobs beforehand, how long they may take, and how much is kept of them."""

    engines: _Names = Field(
        ("veo-engine",),
        description="Engines whose rows stand at zero from the start, so that the first failure is seen.",
    )
    models: _Names = Field(
        (), description="Models whose rows stand at zero from the start, for each engine."
    )
    variants: _Names = Field(
        (),
        description="Arms of the running experiment, whose rows stand at zero from the start.",
    )
    profiles: _Names = Field(
        (),
        description="Profiles, as 1080p24-6s, whose rows stand at zero from the start.",
    )
    max_names: int = Field(
        20,
        ge=1,
        le=1000,
        description="Values that each of the labels engine, model, variant and profile may have; further "
        "ones count as other.",
    )
    max_label_sets: int = Field(
        100,
        ge=1,
        le=10_000,
        description="Combinations of these labels that get rows of their own.",
    )
    budget_presets: Annotated[_List, AfterValidator(_presets)] = Field(
        ("veo-engine",),
        description="Budgets that come along. veo-engine: render 6.8s, prompt 25ms, request 90s.",
    )
    budgets: Annotated[_List, AfterValidator(_budgets)] = Field(
        (),
        description="How long a stage may take, as engine/model/stage=duration; * is any. A stage over its budget "
        "is a breach. request is the whole job, which ends it as a timeout: under three times the usual time "
        "that is unsafe. lost overrides lost_after.",
    )
    lost_after: Duration = Field(
        600,
        ge=1,
        le=7 * 86400,
        description="A job of which nothing was heard for so long counts as lost. After a start of the exporter "
        "none is, for as long.",
    )
    remember: Duration = Field(
        3600,
        ge=1,
        le=7 * 86400,
        description="How long events and finished jobs are remembered, so that what comes twice or late is "
        "known and not counted again.",
    )
    max_in_flight: int = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="Jobs in flight that are kept; while there are so many, new ones are answered 429.",
    )
    max_event_ids: int = Field(
        100_000,
        ge=2,
        le=10_000_000,
        description="Events remembered at most; 60 bytes each.",
    )
    max_batch: int = Field(
        1000, ge=1, le=100_000, description="Events taken at once; more are answered 413."
    )

    def budget_rows(self) -> list[tuple[str, float]]:
        """The budgets as (engine/model/part, seconds)."""
        return [split_budget(written) for written in self.budgets]


class Logs(Section):
    """Engines' logs that are followed, and how their lines are read."""

    files: Annotated[_List, AfterValidator(_absolute_patterns)] = Field(
        (),
        description="Absolute paths of logs, as /var/log/veo/veo-engine.log; * and ? match several. They are "
        "followed across renames, truncation and deletion.",
    )
    rules: _List = Field(
        ("veo-engine",),
        description="Rule sets that read lines as events: a name of one that comes along (veo-engine), or an "
        "absolute path of a YAML file.",
    )
    interval: Duration = Field(
        0.5, ge=0.05, le=60, description="How often the files are looked at."
    )
    max_files: int = Field(64, ge=1, le=10_000, description="Files followed at once.")
    max_line_bytes: int = Field(
        65_536,
        ge=256,
        le=1 << 20,
        description="A longer line is cut in its middle: its beginning and its end are kept, so many bytes together.",
    )
    max_read_bytes: int = Field(
        4 << 20,
        ge=4096,
        le=1 << 30,
        description="Bytes read at one look, shared among the files; the rest waits for the next.",
    )
