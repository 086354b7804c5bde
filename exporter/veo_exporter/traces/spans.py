# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Spans as data, before there is anything to send."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from veo_exporter.traces.context import TraceContext

AttributeValue = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, AttributeValue]


class Kind(Enum):
    """A span's side of a conversation."""

    CONSUMER = "consumer"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class EventPlan:
    """Something that happened at one time within a span."""

    name: str
    at_unix_ns: int
    attributes: Attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPlan:
    """One span. With an error type it has failed; otherwise its status is left unset."""

    name: str
    span_id: int
    parent_span_id: int | None = None
    """Of a span of the same plan; the first span's parent, if any, is elsewhere."""
    kind: Kind = Kind.INTERNAL
    start_unix_ns: int
    end_unix_ns: int
    attributes: Attributes = field(default_factory=dict)
    error_type: str | None = None
    events: tuple[EventPlan, ...] = ()
    linked_span_ids: tuple[int, ...] = ()
    """Spans of the same trace that caused this one without being its parent."""


@dataclass(frozen=True, slots=True)
class TracePlan:
    """A job's spans: its own first, each after its parent."""

    trace_id: int
    parent: TraceContext | None
    tracestate: str
    """What other vendors keep about the trace, passed on as it came."""
    spans: tuple[SpanPlan, ...]


def word(value: str | None) -> str:
    """The word itself: the vocabulary's are enums, and str() of those is no word."""
    return str(getattr(value, "value", value) or "")
