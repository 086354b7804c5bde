# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A kernel log's line without what stands before the message: kmsg, syslog, journal or dmesg."""

import json
import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One message. `boot_seconds` is when it was logged on the kernel's clock, if that is told."""

    text: str
    boot_seconds: float | None = None
    sequence: int | None = None


# priority,sequence,microseconds,flags[,more];text
_KMSG: Final = re.compile(r"([0-9]{1,6}),([0-9]{1,20}),([0-9]{1,18}),[^;]{0,200};(.*)")
# Only the tag right after the host's name is the kernel's: a program may write "kernel:" further on.
_SYSLOG: Final = re.compile(
    r"(?:<[0-9]{1,4}>)?(?:[A-Z][a-z]{2} +[0-9]{1,2} [0-9:]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ ]{1,40}) "
    r"[^ ]{1,255} kernel: (.*)"
)
_DMESG: Final = re.compile(r"(?:<[0-9]{1,4}>)?\[ *([0-9]{1,12}\.[0-9]{1,9})\] ?(.*)")
# CONFIG_PRINTK_CALLER puts the thread or processor between time and message.
_CALLER: Final = re.compile(r"\[ *[TC][0-9]{1,10}\] ?(.*)")
_FACILITY_SHIFT: Final = 3


def read_kmsg(record: bytes) -> KernelRecord | None:
    """A record of /dev/kmsg; None if it is not the kernel's own, or no record.

    Whoever may write to /dev/kmsg puts lines into the same log, under another facility.
    """
    # Lines after the first are the record's dictionary.
    first = record.partition(b"\n")[0].decode(errors="replace")
    return _kmsg(first)


def read_kernel_line(line: str) -> KernelRecord | None:
    """A line of any form; None if it is surely not the kernel's own."""
    if line.startswith("{"):
        return _journal(line)
    if _KMSG.match(line):
        return _kmsg(line)
    syslog = _SYSLOG.match(line)
    return _dmesg(syslog[1] if syslog else line)


def _kmsg(line: str) -> KernelRecord | None:
    match = _KMSG.match(line)
    if match is None or int(match[1]) >> _FACILITY_SHIFT:
        return None
    return KernelRecord(match[4], int(match[3]) / 1e6, int(match[2]))


def _dmesg(line: str) -> KernelRecord:
    stamped = _DMESG.match(line)
    text = stamped[2] if stamped else line
    caller = _CALLER.match(text) if stamped else None
    # The wall clock of such a file is the writer's affair; when we read it is near enough.
    return KernelRecord(caller[1] if caller else text)


def _journal(line: str) -> KernelRecord | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.get("_TRANSPORT", "kernel") != "kernel":
        return None
    message = entry.get("MESSAGE")
    if isinstance(message, list):
        # journald gives what is not UTF-8 as a list of bytes.
        try:
            message = bytes(message).decode(errors="replace")
        except (ValueError, TypeError):
            return None
    if not isinstance(message, str):
        return None
    if entry.get("SYSLOG_FACILITY", "0") != "0":
        return None
    return KernelRecord(message, _microseconds(entry.get("_SOURCE_MONOTONIC_TIMESTAMP")))


def _microseconds(written: object) -> float | None:
    if isinstance(written, str) and re.fullmatch(r"[0-9]{1,18}", written):
        return int(written) / 1e6
    return None
