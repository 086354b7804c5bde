# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to events: CloudEvents 1.0 in JSON, one, several or in HTTP's headers.

Each event is judged by itself: what is wrong with one costs that one, and is said of it. So is each
field of it: one that may be missing is left out if it is bad, and the event is taken without it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from veo_client.vocabulary import EventType
from veo_exporter.jobs.documents import Spoilt, decode_data, parse_data, parse_document
from veo_exporter.jobs.faults import (
    BadEvent,
    EventFault,
    Refused,
    fault_of,
    sentences,
)
from veo_exporter.jobs.omissions import Flaw, Omission, Unreadable, read_leniently
from veo_exporter.jobs.payload import (
    DATA_OF,
    BeforeEpoch,
    Data,
    OpaqueData,
    StageData,
    unix_nanoseconds,
)

MAX_AGE_NANOSECONDS: Final = 30 * 86400 * 1_000_000_000
"""Of a posted event, whose sender is told. A line of a log is news whatever its stamp: it was just
written, and there is nobody to tell."""
MAX_TRACE_CONTEXT_CHARS: Final = 2000
_NOT_TAKEN: Final = (EventType.QUEUE_READING, EventType.ENGINE_READING)
_TYPES: Final = {kind.value: kind for kind in EventType}
_HEADER_PREFIX: Final = "ce-"
_ESCAPED: Final = re.compile(r"\\(.)")


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
    """As it was sent: whether it can be read is for traces to say."""
    tracestate: str = ""
    bad_time: bool = False
    """A line's stamp could not be believed, and it happened when it came."""
    index: int = 0
    """Where it stood in its body."""
    omissions: tuple[Omission, ...] = ()
    """What was bad in it, and left out."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same event when it comes once more."""
        return (self.source, self.event_id)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A body's events, and what could not be read of it."""

    events: tuple[Event, ...]
    refused: tuple[Refused, ...]


def _cut(text: str) -> str:
    # What is cut is broken, and costs the trace; but not the event.
    return text[:MAX_TRACE_CONTEXT_CHARS]


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    specversion: Literal["1.0"]
    id: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[str, Field(min_length=1, max_length=500)]
    type: Annotated[str, Field(max_length=200)]
    subject: Annotated[str, Field(max_length=200)] | None = None
    time: Annotated[str, Field(max_length=100)] | None = None
    traceparent: Annotated[str, AfterValidator(_cut)] | None = None
    tracestate: Annotated[str, AfterValidator(_cut)] | None = None
    data: dict[str, Any] | None = None
    data_base64: str | None = None


_MAY_LACK: Final[dict[type[BaseModel], frozenset[str]]] = {
    model: frozenset(name for name, field in model.model_fields.items() if not field.is_required())
    for model in DATA_OF.values()
} | {_Envelope: frozenset({"time", "traceparent", "tracestate"})}
"""What costs itself alone if it is bad. Of an event's attributes not those that say whose it is."""


def parse_structured(body: bytes, received: Moment, max_events: int) -> Parsed:
    """The event of a body, or those of an array of them. Raises BadBody."""
    document = parse_document(body, max_events)
    return _parse_all(document if isinstance(document, list) else [document], received)


def parse_binary(headers: Mapping[str, str], body: bytes, received: Moment) -> Parsed:
    """The event whose attributes stand in `ce-` headers, its data in the body. Raises BadBody."""
    try:
        attributes: dict[str, Any] = {
            name.lower().removeprefix(_HEADER_PREFIX): _decode_header(name, value)
            for name, value in headers.items()
            if name.lower().startswith(_HEADER_PREFIX)
        }
    except BadEvent as error:
        return Parsed((), (Refused(0, "", error.fault, str(error)),))
    data = {"data": parse_data(body)} if body else {}
    return _parse_all([attributes | data], received)


def _decode_header(name: str, value: str) -> str:
    """What is no printable ASCII comes percent-encoded; a text in quotes is meant without them."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = _ESCAPED.sub(r"\1", value[1:-1])
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise BadEvent(
            EventFault.NOT_AN_EVENT, f"{name.lower()}: its percent-encoding is no UTF-8"
        ) from None


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
    if isinstance(written, Spoilt):
        return Refused(index, written.event_id[:200], EventFault.NOT_JSON, written.message)
    try:
        return _parse(written, received, index=index, anonymous=anonymous)
    except BadEvent as error:
        known = written.get("id") if isinstance(written, dict) else None
        event_id = known[:200] if isinstance(known, str) else ""
        return Refused(index, event_id, error.fault, str(error))


def _parse(written: object, received: Moment, *, index: int, anonymous: bool) -> Event:
    try:
        envelope, omissions = read_leniently(_Envelope, written, "", _MAY_LACK[_Envelope])
    except Unreadable as error:
        raise BadEvent(EventFault.NOT_AN_EVENT, sentences(error.details, "")) from None
    kind = _TYPES.get(envelope.type)
    if kind is None:
        raise BadEvent(
            EventFault.UNKNOWN_TYPE,
            f"type: {envelope.type!r} is none of {', '.join(_TYPES)}",
        )
    if kind in _NOT_TAKEN:
        raise BadEvent(
            EventFault.NOT_TAKEN, f"type: {envelope.type} is not taken yet: do not send it"
        )
    if kind.value.startswith("veo.job.") and not envelope.subject and not anonymous:
        raise BadEvent(EventFault.NO_JOB, "subject: wants the job's id")
    data, left_out = _read_data(DATA_OF[kind], _data_of(envelope))
    at, unread = _time_of(envelope, received, refuse=not anonymous)
    # A line has no sender to be told; its stamps have a count of their own.
    bad_time = anonymous and unread is not None
    if unread is not None and not anonymous:
        left_out = (*left_out, unread)
    if isinstance(data, StageData):
        believed = _stage_within(data, received, refuse=not anonymous)
        bad_time = bad_time or believed is not data
        data = believed
    return Event(
        source=envelope.source,
        event_id=envelope.id,
        type=kind,
        job_id=envelope.subject or "",
        unix_nanoseconds=at,
        received=received,
        data=data,
        traceparent=envelope.traceparent or "",
        tracestate=envelope.tracestate or "",
        bad_time=bad_time,
        index=index,
        omissions=omissions + left_out if omissions or left_out else (),
    )


def _read_data(
    model: type[Data] | type[OpaqueData], written: dict[str, Any]
) -> tuple[Data | OpaqueData, tuple[Omission, ...]]:
    try:
        data, left_out = read_leniently(model, written, "data.", _MAY_LACK[model])
    except Unreadable as error:
        raise BadEvent(fault_of(error.details), sentences(error.details, "data.")) from None
    if left_out and isinstance(data, Data):
        names = [omission.field.removeprefix("data.") for omission in left_out]
        if not data.enough_without(names):
            said = "; ".join(omission.message for omission in left_out)
            raise BadEvent(EventFault.BAD_DATA, said)
    return data, left_out


def _data_of(envelope: _Envelope) -> dict[str, Any]:
    if envelope.data_base64 is None:
        return envelope.data or {}
    if envelope.data is not None:
        raise BadEvent(EventFault.BAD_DATA, "data_base64: stands beside data: send one of them")
    return decode_data(envelope.data_base64)


def _time_of(envelope: _Envelope, received: Moment, *, refuse: bool) -> tuple[int, Omission | None]:
    """When it happened, and what is wrong with its stamp if that was when it came."""
    if envelope.time is None:
        return received.unix_nanoseconds, None
    try:
        at = unix_nanoseconds(envelope.time)
    except ValueError as error:
        message = f"time: {envelope.time!r} {error}"
        if refuse and isinstance(error, BeforeEpoch):
            raise BadEvent(EventFault.NOT_AN_EVENT, message) from None
        return received.unix_nanoseconds, Omission("time", Flaw.BAD_VALUE, message)
    if refuse and _too_old(at, received):
        raise BadEvent(
            EventFault.NOT_AN_EVENT,
            f"time: {envelope.time!r} lies more than 30 days back: is the sender's clock right?",
        )
    return _not_ahead(at, received), None


def _stage_within(data: StageData, received: Moment, *, refuse: bool) -> StageData:
    """The stage with its stamps held to what an event's own time is held to.

    Of a stage that is too old, a line's, the length is kept; begun alone, it began when it was told.
    """
    for name in ("start", "end"):
        at = getattr(data, name)
        if at is None or not _too_old(at, received):
            continue
        if refuse:
            raise BadEvent(
                EventFault.BAD_DATA,
                f"data.{name}: lies more than 30 days back: is the sender's clock right?",
            )
        return data.without_stamps(received.unix_nanoseconds)
    # Both of them, lest a clock that is ahead change the length.
    ahead = max(data.start or 0, data.end or 0) - received.unix_nanoseconds
    return data.earlier(ahead) if ahead > 0 else data


def _too_old(at: int, received: Moment) -> bool:
    return at < received.unix_nanoseconds - MAX_AGE_NANOSECONDS


def _not_ahead(at: int, received: Moment) -> int:
    # Nothing comes before it happened: the sender's clock is ahead of ours.
    return min(at, received.unix_nanoseconds)
