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
# google.rpc by name, of CUDA by name, and exit statuses from 128 on. A number of one or two digits is
# none of them: it may be an exit status as well as a number of google.rpc.
TABLE: Final = (
    Row(
        Reason.XID,
        "driver",
        ("xid", "gpu_xid"),
        # Old drivers write the bus without "PCI:".
        r"\bxid (?:\(pci|\([0-9a-f]{4}:|error)|\bgpu_xid\b|\b(?:gpu_)?xid[ :=#_-]{0,3}\d{1,3}\b",
    ),
    Row(
        Reason.DEVICE_LOST,
        "driver",
        ("cudaErrorDevicesUnavailable", "CUDA_ERROR_ILLEGAL_ADDRESS", "NVML_ERROR_GPU_IS_LOST"),
        r"device[ _-]?lost|gpu[ _-]?(?:is[ _-])?lost|fallen off the bus|device unavailable"
        r"|illegal memory access|ecc error|unspecified launch failure|\bcuda-capable device",
    ),
    # Above the memory of the device: "out of memory" alone is what CUDA says of itself, and the kernel
    # says more.
    Row(
        Reason.OOM_KILLED,
        "host",
        ("137", "OOMKilled"),
        r"\boom[ _-]?(?:kill|reaper)|\bkill(?:ed)? process \d|killed process|\bcgroup out of memory"
        r"|(?:can't|cannot|could not) allocate memory|(?<!outof)memoryerror\b|\bbad_alloc\b"
        r"|\b(?:host|system|cpu|container) (?:is |ran )?out of memory|out[ _]of[ _](?:host|system|cpu)[ _]memory"
        r"|\bexit(?:ed|code)?(?:[ _-](?:with|code|status|value))*[ :=]{1,3}137\b",
    ),
    Row(
        Reason.OUT_OF_DEVICE_MEMORY,
        "allocator",
        ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"),
        r"out[ _-]?of[ _-]?(?:(?:device|gpu|video|cuda)[ _-])?memory|\bout of vram\b|\boom\b"
        r"|cudaerrormemoryallocation|\bcuda[ _]error[ :=]{1,3}2\b"
        # cuBLAS, cuDNN, cuFFT, cuRAND, and ROCm's libraries of the same kinds.
        r"|\b(?:cu|hip|roc|mi)[a-z]{2,8}_(?:status_)?alloc(?:ation)?_failed\b"
        r"|(?:failed|unable) to allocate\b.{0,60}\b(?:cuda|gpu|device|vram)\b"
        r"|(?:insufficient|not enough) (?:gpu|device|video|cuda) memory|\bvram\b.*\bexhausted",
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
        ("429", "RESOURCE_EXHAUSTED"),
        r"(?<!disk )\bquota|(?<!frame )\brate[ _-]?limit|too many requests|resource[ _]exhausted",
    ),
    Row(
        Reason.DEADLINE_ENGINE,
        "engine",
        ("408", "504", "DEADLINE_EXCEEDED"),
        # Not the settings of the same names, which a message may list.
        r"deadline(?!\w|\s*[=:]\s*\d)|\btime(?:d[ _-]?|[ _-])out\b|\btimeout(?:error)?\b(?!\s*[=:]\s*\d)"
        r"|deadline[ _]?exceeded",
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
        ("503", "UNAVAILABLE"),
        # A bare number may be that of a frame.
        r"^503\b|(?:http|status|code|error)\S{0,4}[ :=]{1,3}503\b|service unavailable"
        r"|temporarily unavailable|overloaded",
    ),
    Row(
        Reason.TRANSPORT,
        "network",
        (),
        r"connection (?:refused|error|aborted)|connecterror|name resolution|no route to host"
        r"|certificate|\btls\b|(?:host|network|server|service)\b.{0,40}\bunreachable",
    ),
    Row(
        Reason.MODEL_UNAVAILABLE,
        "gateway",
        ("404", "410", "NOT_FOUND"),
        r"model.{0,80}(?:not found|no longer available|unavailable|retired)",
    ),
    Row(
        Reason.PERMISSION_DENIED,
        "gateway",
        ("401", "403", "PERMISSION_DENIED", "UNAUTHENTICATED"),
        r"permission[ _]denied|unauthenticated|unauthorized|forbidden",
    ),
    Row(
        Reason.INVALID_REQUEST,
        "request",
        ("400", "413", "422", "INVALID_ARGUMENT", "OUT_OF_RANGE"),
        r"invalid (?:argument|request|value|parameter)|unsupported (?:resolution|duration|value)",
    ),
    Row(
        Reason.STORAGE,
        "storage",
        ("ENOSPC", "EIO", "EDQUOT", "507"),
        r"no space left|disk (?:full|quota)|read-only file system|upload failed",
    ),
    Row(
        Reason.CANCELLED,
        "request",
        ("499", "CANCELLED", "CANCELED"),
        r"cancell?ed|client disconnect",
    ),
    Row(
        Reason.WORKER_DIED,
        "worker",
        ("134", "139", "SIGSEGV", "SIGABRT", "SIGKILL"),
        r"segmentation fault|\bsegfault|core dumped|worker (?:died|exited|crashed)|brokenprocesspool"
        r"|\bsig(?:segv|abrt|bus|kill)\b|\bexit(?:ed|code)?(?:[ _-](?:with|code|status|value))*[ :=]{1,3}"
        r"(?:134|135|139|-6|-7|-9|-11)\b",
    ),
    Row(
        Reason.UPSTREAM_ERROR,
        "engine",
        ("500", "502", "INTERNAL", "UNKNOWN", "DATA_LOSS", "FAILED_PRECONDITION"),
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
_GRPC_NUMBERS: Final = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    11: "OUT_OF_RANGE",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    15: "DATA_LOSS",
    16: "UNAUTHENTICATED",
}
_MARKED_CODE: Final = re.compile(
    r"(?P<kind>grpc|google[._]rpc|http)(?:[ _.-]?(?:status|code))*[ :=#/_.-]*(?P<number>\d{1,3})",
    re.IGNORECASE,
)
"""A number that says whose it is: grpc:14, grpc-status=14, HTTP 400."""
_NAMED_CODE: Final = re.compile(
    r"(?:grpc[ :._-]*)?(?:statuscode\.)?(?P<name>[a-z_]+)", re.IGNORECASE
)
_WORDS: Final = tuple(
    (re.compile(row.words, re.IGNORECASE), row.reason) for row in TABLE if row.words
)
_VAGUE: Final = (Outcome.FAILED, Outcome.ABORTED)
"""Of these a code or a message knows more; the others are definite, and need the very word."""
_SENDERS_WORD: Final = (Outcome.SUCCESS, Outcome.CANCELLED)
EXCUSED: Final = frozenset({Reason.INVALID_REQUEST, Reason.CONTENT_FILTERED, Reason.CANCELLED})
"""No fault of the engine: these leave the objective, and nobody is paged for them. No word in a
message and no bare number may put a failure here, or an outage goes unseen."""


@dataclass(frozen=True, slots=True)
class Cause:
    """How a job ended, why, and which module of the engine is at fault; "" if none can be named."""

    outcome: Outcome
    reason: Reason
    module: str


def cause_of(reason: Reason) -> Cause:
    """The whole of what a reason says."""
    return Cause(OUTCOME_OF[reason], reason, _MODULES.get(reason, ""))


def find_reason(
    reason: str, code: str = "", message: str = "", without: frozenset[Reason] = frozenset()
) -> Reason | None:
    """The reason that a word, an error's code or a message tells; the most definite counts.

    Those of `without` need the very word, or a code that says whose it is.
    """
    return (
        _stated(reason)
        or _read_code(code, without)
        or _read_code(reason, without)
        or _read(reason[:MAX_SEARCHED_CHARS], without)
        or _read(message[:MAX_SEARCHED_CHARS], without)
        or _read(code[:MAX_SEARCHED_CHARS], without)
    )


def _stated(reason: str) -> Reason | None:
    return _REASONS.get(reason.strip().lower())


def _read_code(code: str, without: frozenset[Reason]) -> Reason | None:
    code = code.strip()
    if marked := _MARKED_CODE.fullmatch(code):
        number = marked["number"]
        if marked["kind"].lower() != "http":
            number = _GRPC_NUMBERS.get(int(number), "")
        return _CODES.get(number.lower())
    if code.isdecimal():
        found = _CODES.get(code)
        return None if found in without else found
    named = _NAMED_CODE.fullmatch(code)
    return _CODES.get(code.lower()) or (_CODES.get(named["name"].lower()) if named else None)


@lru_cache(1024)
def _read(words: str, without: frozenset[Reason]) -> Reason | None:
    if not words:
        return None
    return next(
        (reason for pattern, reason in _WORDS if reason not in without and pattern.search(words)),
        None,
    )


def judge_end(outcome: Outcome, reason: str = "", code: str = "", message: str = "") -> Cause:
    """How a job ended, from what its sender says.

    That it succeeded or was cancelled is the sender's to say. Of failures the reason knows more:
    one that belongs to another outcome decides it, so that no reason has two. Out of the objective
    leads a reason of the list alone, or what a service answered with a code of its own.
    """
    found = _stated(reason)
    if outcome in _VAGUE and found in (None, Reason.NONE):
        found = find_reason(reason, code, message, EXCUSED)
        if outcome is Outcome.ABORTED and found in EXCUSED:
            # A code answers a request; work that was broken off had been taken on.
            found = _read(message[:MAX_SEARCHED_CHARS], EXCUSED)
    if outcome in _SENDERS_WORD or found is None or found is Reason.NONE:
        return cause_of(USUAL_REASON[outcome])
    return cause_of(found)
