# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to events: CloudEvents 1.0 in JSON, one, several or in HTTP's headers.

Each event is judged by itself: what is wrong with one costs that one, and is said of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from veo_client.vocabulary import EventType
from veo_exporter.jobs.faults import (
    BadBody,
    BadEvent,
    EventFault,
    Refused,
    fault_of,
    sentences,
)
from veo_exporter.jobs.payload import DATA_OF, Data, OpaqueData, unix_nanoseconds

MAX_AGE_NANOSECONDS: Final = 30 * 86400 * 1_000_000_000
"""An older event would spoil every mean; a spool that was kept longer is history, not news."""
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
_TYPES: Final = {kind.value: kind for kind in EventType}
_HEADER_PREFIX: Final = "ce-"


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant on two clocks: one for what is told, one for ages."""

    unix_nanoseconds: int
    monotonic_seconds: float


@dataclass(frozen=True, slots=True)
class Event:
    """An event that can be believed."""

    source: str
    event_id: str
    type: EventType
    job_id: str
    """Empty only for lines of a log, which need not know the job."""
    unix_nanoseconds: int
    """When it happened: as it says, else when it came."""
    received: Moment
    data: Data | OpaqueData
    traceparent: str = ""
    tracestate: str = ""
    bad_traceparent: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same event when it comes once more."""
        return (self.source, self.event_id)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A body's events, and what could not be read of it."""

    events: tuple[Event, ...]
    refused: tuple[Refused, ...]


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    specversion: Literal["1.0"]
    id: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[str, Field(min_length=1, max_length=500)]
    type: Annotated[str, Field(max_length=200)]
    subject: Annotated[str, Field(max_length=200)] = ""
    time: Annotated[str, Field(max_length=100)] | None = None
    traceparent: Annotated[str, Field(max_length=500)] | None = None
    tracestate: Annotated[str, Field(max_length=2000)] | None = None
    data: dict[str, Any] | None = None


def parse_structured(body: bytes, received: Moment, max_events: int) -> Parsed:
    """The event of a body, or those of an array of them. Raises BadBody."""
    document = _parse_json(body)
    written = document if isinstance(document, list) else [document]
    if len(written) > max_events:
        raise BadBody(
            EventFault.TOO_MANY,
            f"{len(written)} events at once, and {max_events} are taken: send them in parts",
        )
    return _parse_all(written, received)


def parse_binary(headers: Mapping[str, str], body: bytes, received: Moment) -> Parsed:
    """The event whose attributes stand in `ce-` headers, its data in the body. Raises BadBody."""
    attributes: dict[str, Any] = {
        name.lower().removeprefix(_HEADER_PREFIX): value
        for name, value in headers.items()
        if name.lower().startswith(_HEADER_PREFIX)
    }
    data = {"data": _parse_json(body)} if body else {}
    return _parse_all([attributes | data], received)


def _parse_json(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise BadBody(EventFault.NOT_JSON, f"not JSON: {error}") from None


def _parse_all(written: list[Any], received: Moment) -> Parsed:
    events, refused = [], []
    for index, one in enumerate(written):
        outcome = parse_event(one, received, index=index)
        if isinstance(outcome, Event):
            events.append(outcome)
        else:
            refused.append(outcome)
    return Parsed(tuple(events), tuple(refused))


def parse_event(
    written: object, received: Moment, *, index: int = 0, anonymous: bool = False
) -> Event | Refused:
    """One event; `anonymous` lets a job's event do without a job, as a line of a log has to."""
    try:
        return _parse(written, received, anonymous=anonymous)
    except BadEvent as error:
        known = written.get("id") if isinstance(written, dict) else None
        event_id = known[:200] if isinstance(known, str) else ""
        return Refused(index, event_id, error.fault, str(error))


def _parse(written: object, received: Moment, *, anonymous: bool) -> Event:
    try:
        envelope = _Envelope.model_validate(written)
    except ValidationError as error:
        raise BadEvent(EventFault.NOT_AN_EVENT, sentences(error, "")) from None
    kind = _TYPES.get(envelope.type)
    if kind is None:
        raise BadEvent(
            EventFault.UNKNOWN_TYPE,
            f"type: {envelope.type!r} is none of {', '.join(_TYPES)}",
        )
    if kind.value.startswith("veo.job.") and not envelope.subject and not anonymous:
        raise BadEvent(EventFault.NO_JOB, "subject: wants the job's id")
    try:
        data = DATA_OF[kind].model_validate(envelope.data or {})
    except ValidationError as error:
        raise BadEvent(fault_of(error), sentences(error, "data.")) from None
    at = _time_of(envelope, received)
    traceparent = envelope.traceparent or ""
    well_formed = bool(_TRACEPARENT.fullmatch(traceparent))
    return Event(
        source=envelope.source,
        event_id=envelope.id,
        type=kind,
        job_id=envelope.subject,
        unix_nanoseconds=at,
        received=received,
        data=data,
        traceparent=traceparent if well_formed else "",
        tracestate=(envelope.tracestate or "") if well_formed else "",
        bad_traceparent=bool(traceparent) and not well_formed,
    )


def _time_of(envelope: _Envelope, received: Moment) -> int:
    if envelope.time is None:
        return received.unix_nanoseconds
    try:
        at = unix_nanoseconds(envelope.time)
    except ValueError as error:
        raise BadEvent(EventFault.NOT_AN_EVENT, f"time: {envelope.time!r} {error}") from None
    if at < received.unix_nanoseconds - MAX_AGE_NANOSECONDS:
        raise BadEvent(
            EventFault.NOT_AN_EVENT,
            f"time: {envelope.time!r} lies more than 30 days back: is the sender's clock right?",
        )
    # Nothing comes before it happened: the sender's clock is ahead of ours.
    return min(at, received.unix_nanoseconds)
