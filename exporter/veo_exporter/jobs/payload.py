# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in an event's `data`, by type of event. Fields that are not known here are let be."""

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Final, Self
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from veo_client.vocabulary import EventType, Outcome, Stage
from veo_exporter.jobs.profile import OTHER, name_profile, short_side

MAX_MESSAGE_CHARS: Final = 300
"""Of an error's message this much is kept: enough to know it again."""
MAX_STAGE_SECONDS: Final = 7 * 86400
"""A part of a job that took longer is a sender's mistake, and would spoil every mean."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROLS: Final = ("Cc", "Zl", "Zp")
"""Unicode's categories of control characters and of separators of lines and paragraphs."""
_RATIONAL: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?(?:/[0-9]{1,9})?")
_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.(\d{1,9})\d*)?(?:[Zz]|[+-]\d\d:\d\d)"
)


class BeforeEpoch(ValueError):
    """A time that can be read, and lies before 1970."""


def unix_nanoseconds(written: object) -> int:
    """Nanoseconds since 1970 of a time with its offset. Raises ValueError with the way to write it."""
    match = _RFC3339.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        raise ValueError("is no RFC 3339 time with an offset, such as 2026-03-01T12:00:00.250Z")
    assert isinstance(written, str)  # noqa: S101, the match says so
    whole = written[:19].upper().replace(" ", "T") + written[19:].lstrip(".0123456789").upper()
    seconds = (datetime.fromisoformat(whole) - _EPOCH) // timedelta(seconds=1)
    if seconds < 0:
        raise BeforeEpoch("lies before 1970")
    return seconds * 1_000_000_000 + int((match[1] or "").ljust(9, "0"))


def _exact(written: object) -> Fraction:
    # 6.2 is meant as 31/5, and not as the binary number next to it: 24 x 6.2 is 148.8 frames.
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        raise ValueError("must be a number, or a fraction as 24000/1001")
    text = f"{written:.9f}" if isinstance(written, float) else str(written)
    numerator, _, denominator = text.partition("/")
    if not _RATIONAL.fullmatch(text) or (denominator and not int(denominator)):
        raise ValueError("must be a number from 0 up to 999999999, or a fraction as 24000/1001")
    return Fraction(numerator) / int(denominator or 1)


def _code(written: object) -> object:
    if isinstance(written, float) and written.is_integer():
        return int(written)
    if isinstance(written, bool) or not isinstance(written, int | str | None):
        raise ValueError("must be a whole number or a text")
    return written


def _printable(name: str) -> str:
    """Control characters break what reads pages and logs; a name with one is a name all the same."""
    if name.isprintable():
        return name
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if category(char) in _CONTROLS else char for char in name
    )


_Time = Annotated[int, BeforeValidator(unix_nanoseconds)]
_Exact = Annotated[Fraction, BeforeValidator(_exact)]
_Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]
_Count = Annotated[int, Field(ge=0, le=1 << 53)]
_Reason = Annotated[str, Field(max_length=2000)]
_Seconds = Annotated[float, Field(ge=0, le=MAX_STAGE_SECONDS, allow_inf_nan=False)]
_Code = Annotated[int | str | None, BeforeValidator(_code)]


class Payload(BaseModel):
    """Data that somebody else wrote: taken as it is or left out, never bent into shape.

    What may be missing may be null as well, which says the same.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, arbitrary_types_allowed=True
    )


class Request(Payload):
    """What was asked of the engine; never the prompt itself."""

    width: Annotated[int, Field(ge=1, le=100_000)] | None = None
    height: Annotated[int, Field(ge=1, le=100_000)] | None = None
    fps: _Exact | None = None
    duration_s: _Exact | None = None
    prompt_chars: _Count | None = None
    prompt_tokens: _Count | None = None
    batch_size: _Count | None = None

    @cached_property
    def profile(self) -> str:
        """What was asked for, as a label."""
        return name_profile(self.width, self.height, self.fps, self.duration_s)

    @property
    def short_side(self) -> int | None:
        return short_side(self.width, self.height)


def profile_of(request: Request | None) -> str:
    """The profile of what was asked, also if nobody said."""
    return OTHER if request is None else request.profile


class Data(Payload):
    """What each event of a job may say."""

    engine: _Name | None = None
    model: _Name | None = None
    variant: _Name | None = None
    request: Request | None = None
    gpus: Annotated[list[_Name], Field(max_length=64)] | None = None
    pid: _Count | None = None

    def enough_without(self, left_out: Collection[str]) -> bool:
        """Whether it still says what its event is for, though these fields were left out."""
        return True


_TIMES: Final = frozenset({"duration_s", "start", "end"})


class StageData(Data):
    """A part of the work: over, with its duration or start and end; or under way, with its start."""

    stage: Annotated[Stage, Field(strict=False)]
    duration_s: _Seconds | None = None
    start: _Time | None = None
    end: _Time | None = None
    cache: Annotated[str, Field(pattern="^(cold|warm)$")] | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.duration_s is None and self.start is None:
            raise ValueError("wants duration_s, or start and end; start alone means under way")
        if self.start is not None and self.end is not None:
            if self.end < self.start:
                raise ValueError("ends before it starts")
            if self.end - self.start > MAX_STAGE_SECONDS * 1_000_000_000:
                raise ValueError("takes more than 7 days")
        return self

    def enough_without(self, left_out: Collection[str]) -> bool:
        """A start alone would mean under way, which nobody said."""
        timed = self.duration_s is not None or None not in (self.start, self.end)
        return timed or not _TIMES.intersection(left_out)

    def earlier(self, nanoseconds: int) -> Self:
        """The same stage, so much earlier."""
        moved = {
            name: at - nanoseconds
            for name, at in (("start", self.start), ("end", self.end))
            if at is not None
        }
        return self.model_copy(update=moved)

    def without_stamps(self, now_unix_nanoseconds: int) -> Self:
        """The same stage with its length alone; one that is under way begins now."""
        seconds = self.duration_s
        if seconds is None and self.start is not None and self.end is not None:
            seconds = (self.end - self.start) / 1_000_000_000
        start = now_unix_nanoseconds if seconds is None else None
        return self.model_copy(update={"duration_s": seconds, "start": start, "end": None})


class RetryData(Data):
    """The job is tried once more."""

    reason: _Reason | None = None
    attempt: _Count | None = None
    delay_s: _Seconds | None = None


class Output(Payload):
    """A file that came out; without a path, one that nobody can look for."""

    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    bytes: _Count | None = None


class Error(Payload):
    """What the engine or the service answered."""

    code: _Code = None
    message: Annotated[str, Field(max_length=100_000)] | None = None


class FinishedData(Data):
    """The job is over."""

    outcome: Annotated[Outcome, Field(strict=False)]
    reason: _Reason | None = None
    outputs: Annotated[list[Output], Field(max_length=64)] | None = None
    filtered_count: _Count | None = None
    error: Error | None = None
    stage: Annotated[Stage, Field(strict=False)] | None = None
    frame: _Count | None = None
    gpu_memory_peak_bytes: _Count | None = None


_Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class Scores(Payload):
    """Quality as the scorers give it, each from 0 to 100."""

    vmaf: _Score | None = None
    clip: _Score | None = None


class EvaluatedData(Data):
    """A finished job's quality was judged."""

    scores: Scores

    def enough_without(self, left_out: Collection[str]) -> bool:
        """A judgement of nothing is none."""
        judged = self.scores.vmaf is not None or self.scores.clip is not None
        return judged or not any(name.startswith("scores.") for name in left_out)


class OpaqueData(Payload):
    """For another room to read."""

    model_config = ConfigDict(extra="allow")

    def fields(self) -> dict[str, Any]:
        """Everything that was sent."""
        return dict(self.model_extra or {})


DATA_OF: Final[dict[EventType, type[Data] | type[OpaqueData]]] = {
    EventType.JOB_SUBMITTED: Data,
    EventType.JOB_STARTED: Data,
    EventType.JOB_STAGE: StageData,
    EventType.JOB_HEARTBEAT: Data,
    EventType.JOB_RETRY: RetryData,
    EventType.JOB_FINISHED: FinishedData,
    EventType.JOB_EVALUATED: EvaluatedData,
    EventType.VIDEO_PROBED: OpaqueData,
    EventType.QUEUE_READING: OpaqueData,
    EventType.ENGINE_READING: OpaqueData,
}
