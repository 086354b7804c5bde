# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Error codes and the words of logs to outcome, reason and the module at fault: one table."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from veo_client.vocabulary import OUTCOME_OF, USUAL_REASON, Outcome, Reason

MAX_SEARCHED_CHARS: Final = 2000
"""A message beyond this is a dump; what went wrong stands at its beginning."""


@dataclass(frozen=True, slots=True)
class Row:
    """A reason: the module at fault, the codes that mean it, and a pattern of its words."""

    reason: Reason
    module: str
    codes: tuple[str, ...] = ()
    words: str = ""


# The first row that fits wins: the more telling one stands higher. Codes are those of HTTP, of
# google.rpc by number and name, and of CUDA by name.
TABLE: Final = (
    Row(Reason.XID, "driver", ("xid",), r"\bxid\b"),
    Row(
        Reason.DEVICE_LOST,
        "driver",
        ("cudaErrorDevicesUnavailable", "CUDA_ERROR_ILLEGAL_ADDRESS", "NVML_ERROR_GPU_IS_LOST"),
        r"device[ _-]?lost|gpu[ _-]?(?:is[ _-])?lost|fallen off the bus|device unavailable"
        r"|illegal memory access|ecc error|unspecified launch failure",
    ),
    Row(
        Reason.OUT_OF_DEVICE_MEMORY,
        "allocator",
        ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"),
        r"cuda out of memory|outofmemoryerror|out[ _]of[ _](?:device|gpu|video)[ _]memory"
        r"|cuda[ _]error[ _]out[ _]of[ _]memory|hip out of memory|\bvram\b.*\bexhausted",
    ),
    Row(
        Reason.OOM_KILLED,
        "host",
        ("137", "OOMKilled"),
        r"oom[ _-]?kill|killed process|cannot allocate memory|memoryerror\b",
    ),
    Row(
        Reason.CONTENT_FILTERED,
        "safety",
        (),
        r"content[ _-]?filter|safety (?:filter|polic)|responsible ai|\brai\b|support codes?:",
    ),
    Row(
        Reason.QUOTA,
        "gateway",
        ("429", "8", "RESOURCE_EXHAUSTED"),
        r"\bquota|rate[ _-]?limit|too many requests|resource[ _]exhausted",
    ),
    Row(
        Reason.DEADLINE_ENGINE,
        "engine",
        ("408", "504", "4", "DEADLINE_EXCEEDED"),
        r"deadline|timed?[ _-]?out\b",
    ),
    Row(
        Reason.GRPC_RESET,
        "gateway",
        ("RST_STREAM", "GOAWAY"),
        r"rst_stream|goaway|stream (?:reset|removed)|connection reset|broken pipe",
    ),
    Row(
        Reason.UPSTREAM_503,
        "gateway",
        ("503", "14", "UNAVAILABLE"),
        r"\b503\b|service unavailable|temporarily unavailable|overloaded",
    ),
    Row(
        Reason.TRANSPORT,
        "network",
        (),
        r"connection (?:refused|error|aborted)|connecterror|name resolution|no route to host"
        r"|certificate|\btls\b|unreachable",
    ),
    Row(
        Reason.MODEL_UNAVAILABLE,
        "gateway",
        ("404", "410", "5", "NOT_FOUND"),
        r"model.{0,80}(?:not found|no longer available|unavailable|retired)",
    ),
    Row(
        Reason.PERMISSION_DENIED,
        "gateway",
        ("401", "403", "7", "16", "PERMISSION_DENIED", "UNAUTHENTICATED"),
        r"permission[ _]denied|unauthenticated|unauthorized|forbidden",
    ),
    Row(
        Reason.INVALID_REQUEST,
        "request",
        (
            "400",
            "413",
            "422",
            "3",
            "9",
            "11",
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION",
            "OUT_OF_RANGE",
        ),
        r"invalid (?:argument|request|value|parameter)|unsupported (?:resolution|duration|value)",
    ),
    Row(
        Reason.STORAGE,
        "storage",
        ("ENOSPC", "EIO", "EDQUOT", "507"),
        r"no space left|disk (?:full|quota)|read-only file system|upload failed",
    ),
    Row(Reason.CANCELLED, "request", ("499", "1", "CANCELLED"), r"cancell?ed|client disconnect"),
    Row(
        Reason.WORKER_DIED,
        "worker",
        ("134", "139", "SIGSEGV", "SIGABRT", "SIGKILL"),
        r"segmentation fault|core dumped|worker (?:died|exited|crashed)|brokenprocesspool",
    ),
    Row(
        Reason.UPSTREAM_ERROR,
        "engine",
        ("500", "502", "2", "13", "15", "INTERNAL", "UNKNOWN", "DATA_LOSS"),
        r"internal (?:server )?error|bad gateway",
    ),
    Row(Reason.EMPTY_OUTPUT, "engine", (), r"empty (?:output|response|result)"),
)

_MODULES: Final = {row.reason: row.module for row in TABLE} | {
    Reason.DEADLINE_OURS: "engine",
    Reason.NO_WORD: "worker",
}
_REASONS: Final = {reason.value: reason for reason in Reason}
_CODES: Final = {code.lower(): row.reason for row in TABLE for code in row.codes}
_WORDS: Final = tuple(
    (re.compile(row.words, re.IGNORECASE), row.reason) for row in TABLE if row.words
)
_VAGUE: Final = (Outcome.FAILED, Outcome.ABORTED)
"""Of these a code or a message knows more; the others are definite, and need the very word."""
_SENDERS_WORD: Final = (Outcome.SUCCESS, Outcome.CANCELLED)


@dataclass(frozen=True, slots=True)
class Cause:
    """How a job ended, why, and which module of the engine is at fault; "" if none can be named."""

    outcome: Outcome
    reason: Reason
    module: str


def cause_of(reason: Reason) -> Cause:
    """The whole of what a reason says."""
    return Cause(OUTCOME_OF[reason], reason, _MODULES.get(reason, ""))


def find_reason(reason: str, code: str = "", message: str = "") -> Reason | None:
    """The reason that a word, an error's code or a message tells; the most definite counts."""
    return (
        _REASONS.get(reason)
        or _CODES.get(code.lower())
        or _CODES.get(reason.lower())
        or _read(reason[:MAX_SEARCHED_CHARS])
        or _read(message[:MAX_SEARCHED_CHARS])
    )


@lru_cache(1024)
def _read(words: str) -> Reason | None:
    return next((reason for pattern, reason in _WORDS if words and pattern.search(words)), None)


def judge_end(outcome: Outcome, reason: str = "", code: str = "", message: str = "") -> Cause:
    """How a job ended, from what its sender says.

    That it succeeded or was cancelled is the sender's to say. Of failures the reason knows more:
    one that belongs to another outcome decides it, so that no reason has two.
    """
    vague = outcome in _VAGUE
    found = find_reason(reason, code, message) if vague else _REASONS.get(reason)
    if outcome in _SENDERS_WORD or found is None or found is Reason.NONE:
        return cause_of(USUAL_REASON[outcome])
    return cause_of(found)
