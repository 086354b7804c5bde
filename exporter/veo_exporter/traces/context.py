# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which trace a job belongs to: W3C trace context read, ids made where there is none.

The ids of our own spans are derived from the job, not drawn: an exemplar can name a span before it
is sent, and a job that is reported twice makes the same spans twice, which backends fold into one.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<rest>-.*)?"
)
_FORBIDDEN_VERSION: Final = "ff"
_SAMPLED_BIT: Final = 1
"""Further bits are set by others for reasons of their own: 03 is sampled, with a random id."""
_MAX_LENGTH: Final = 512
"""Later versions may append fields, but not without end."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span elsewhere, as a traceparent names it."""

    trace_id: int
    span_id: int
    sampled: bool

    def as_traceparent(self) -> str:
        """How it is written."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.sampled:02x}"


@dataclass(frozen=True, slots=True)
class Identity:
    """The ids of a job's own span, known before there is one."""

    trace_id: int
    span_id: int
    parent: TraceContext | None
    broken: bool
    """Whether there was a traceparent that could not be read."""

    @property
    def own(self) -> TraceContext:
        """The job's span, as those under it name it."""
        return TraceContext(self.trace_id, self.span_id, self.sampled)

    @property
    def sampled(self) -> bool:
        """What the caller decided; where nobody did, the job is kept."""
        return self.parent is None or self.parent.sampled

    def as_exemplar(self) -> dict[str, str]:
        """The labels of an exemplar that leads to the span."""
        return {"trace_id": f"{self.trace_id:032x}", "span_id": f"{self.span_id:016x}"}


def parse_traceparent(header: str) -> TraceContext | None:
    """The span that a traceparent names; None if it cannot be read."""
    header = header.strip()
    if len(header) > _MAX_LENGTH:
        return None
    match = _TRACEPARENT.fullmatch(header)
    if match is None or match["version"] == _FORBIDDEN_VERSION:
        return None
    if match["version"] == "00" and match["rest"] is not None:
        return None
    trace_id, span_id = int(match["trace"], 16), int(match["span"], 16)
    if not trace_id or not span_id:
        return None
    return TraceContext(trace_id, span_id, bool(int(match["flags"], 16) & _SAMPLED_BIT))


def identify(source: str, job_id: str, since_unix_ns: int, traceparent: str) -> Identity:
    """A job's ids; `since_unix_ns` tells jobs apart whose id was used again later."""
    parent = parse_traceparent(traceparent) if traceparent else None
    trace_id = parent.trace_id if parent else _derive(128, "trace", source, job_id, since_unix_ns)
    return Identity(
        trace_id,
        _derive(64, "job", trace_id, source, job_id, since_unix_ns),
        parent,
        broken=bool(traceparent) and parent is None,
    )


def derive_span_id(parent_span_id: int, name: str, place: int) -> int:
    """The id of the span of this name and place under its parent."""
    return _derive(64, parent_span_id, name, place)


def _derive(bits: int, *words: str | int) -> int:
    # repr keeps ("a", "bc") and ("ab", "c") apart, and survives what is no Unicode.
    digest = hashlib.sha256(repr(words).encode()).digest()
    # Zero is no id.
    return int.from_bytes(digest[: bits // 8]) or 1
