# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a kernel message says: an Xid of a GPU, one of an NVSwitch, or a process killed for memory.

Every pattern begins at the message's beginning, so that a process cannot tell lies by its name.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class OomScope(StrEnum):
    """Whose memory ran out."""

    GLOBAL = "global"
    MEMORY_CGROUP = "memory_cgroup"
    NUMA = "numa"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class XidMessage:
    """The driver told of an Xid. The address is as the kernel writes it: 0000:1b:00.0."""

    pci_bus_id: str
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None
    pid: int | None = None
    process: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchXidMessage:
    """The driver of the NVSwitches told of an error of a switch."""

    pci_bus_id: str
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OomVictim:
    """The kernel says whom it is about to kill, and why; whether it did, a later line says."""

    pid: int
    scope: OomScope
    cgroup: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomKill:
    """The kernel killed a process for want of memory."""

    pid: int
    process: str
    scope: OomScope
    cgroup: str = ""


Message = XidMessage | SwitchXidMessage | OomVictim | OomKill

_PCI: Final = r"(?:PCI:)?([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2})(?::([0-9a-fA-F]{2})(?:\.([0-7]))?)?"
_XID: Final = re.compile(
    rf"NVRM: +Xid +\({_PCI}(?: +GPU-I:([0-9]{{1,6}}))?(?: +GPU-CI:([0-9]{{1,6}}))?\): *([0-9]{{1,6}})"
    r"(?![0-9])(?:, *(.*))?"
)
_CONTEXT: Final = re.compile(r"pid='?([^,']*)'?(?:, *name=([^,]*))?(?:, *(.*))?$")
_SWITCH_XID: Final = re.compile(
    rf"nvidia-nvswitch[0-9]{{1,4}}: +SXid +\({_PCI}\): *([0-9]{{1,6}})(?![0-9])"
)
_ALLOWANCE: Final = r"(Memory cgroup out of memory|Out of memory(?: \([a-z_]{1,40}\))?): "
# The name is up to 15 characters of any kind, brackets too: it ends at the last one before the sizes.
# Some distributions put "UID n," before or after it.
_KILLED: Final = re.compile(
    rf"(?:{_ALLOWANCE})?Killed process ([0-9]{{1,10}})[ ,](?:[^(]{{0,40}})\((.*)\)[^)]{{0,40}}"
    r"(?:total-vm|vsz):"
)
_ANNOUNCED: Final = re.compile(rf"{_ALLOWANCE}Kill process ([0-9]{{1,10}}) \(.*\) score ")
_CONSTRAINED: Final = re.compile(
    r"oom-kill:constraint=CONSTRAINT_([A-Z_]{1,30}),.*task_memcg=([^,]*),task=.*,pid=([0-9]{1,10}),uid="
)
_SCOPES: Final = {
    "NONE": OomScope.GLOBAL,
    "MEMCG": OomScope.MEMORY_CGROUP,
    "CPUSET": OomScope.NUMA,
    "MEMORY_POLICY": OomScope.NUMA,
}
MAX_TEXT_CHARS: Final = 300
MAX_MESSAGE_CHARS: Final = 2048
"""Twice what the kernel writes at most; a file may hold anything."""


def read_message(text: str) -> Message | None:
    """What a message says; None for all that is not our affair."""
    text = text[:MAX_MESSAGE_CHARS]
    # Almost every line of a kernel log ends here.
    if text.startswith("NVRM:"):
        return _read_xid(text)
    if text.startswith("nvidia-nvswitch"):
        match = _SWITCH_XID.match(text)
        return match and SwitchXidMessage(
            pci_bus_id=_address(*match.groups()[:4]), code=int(match[5])
        )
    if text.startswith("oom-kill:"):
        match = _CONSTRAINED.match(text)
        return match and OomVictim(
            pid=int(match[3]),
            scope=_SCOPES.get(match[1], OomScope.UNKNOWN),
            cgroup=match[2][:MAX_TEXT_CHARS],
        )
    if text.startswith(("Memory cgroup out of memory", "Out of memory", "Killed process")):
        return _read_kill(text)
    return None


def _read_xid(text: str) -> XidMessage | None:
    match = _XID.match(text)
    if match is None:
        return None
    context = _CONTEXT.match(match[8] or "")
    pid, process, detail = context.groups() if context else (None, None, match[8])
    return XidMessage(
        pci_bus_id=_address(*match.groups()[:4]),
        code=int(match[7]),
        gpu_instance=None if match[5] is None else int(match[5]),
        compute_instance=None if match[6] is None else int(match[6]),
        pid=int(pid) if pid and re.fullmatch(r"[0-9]{1,10}", pid) else None,
        process="" if process in (None, "<unknown>") else process[:MAX_TEXT_CHARS],
        detail=(detail or "")[:MAX_TEXT_CHARS],
    )


def _address(domain: str, bus: str, device: str | None, function: str | None) -> str:
    # Very old drivers leave out the device, all of them the function.
    return f"{int(domain, 16):04x}:{bus.lower()}:{(device or '00').lower()}.{function or 0}"


def _read_kill(text: str) -> OomVictim | OomKill | None:
    if match := _KILLED.match(text):
        return OomKill(
            pid=int(match[2]), process=match[3][:MAX_TEXT_CHARS], scope=_scope_of(match[1])
        )
    if match := _ANNOUNCED.match(text):
        return OomVictim(pid=int(match[2]), scope=_scope_of(match[1]))
    return None


def _scope_of(allowance: str | None) -> OomScope:
    if allowance is None:
        return OomScope.UNKNOWN
    return OomScope.MEMORY_CGROUP if allowance.startswith("Memory") else OomScope.GLOBAL


class OomVictims:
    """Remembers who is about to be killed: the line that says so tells more than the kill's own."""

    MAX_REMEMBERED: Final = 64

    def __init__(self) -> None:
        self._victims: OrderedDict[int, OomVictim] = OrderedDict()

    def remember(self, victim: OomVictim) -> None:
        earlier = self._victims.pop(victim.pid, None)
        # Kernels that have both lines write the one with the control group first.
        if earlier is None or victim.cgroup or not earlier.cgroup:
            earlier = victim
        self._victims[victim.pid] = earlier
        if len(self._victims) > self.MAX_REMEMBERED:
            self._victims.popitem(last=False)

    def complete(self, kill: OomKill) -> OomKill:
        """The kill with what was said of its victim before."""
        victim = self._victims.pop(kill.pid, None)
        if victim is None:
            return kill
        scope = kill.scope if victim.scope is OomScope.UNKNOWN else victim.scope
        return OomKill(pid=kill.pid, process=kill.process, scope=scope, cgroup=victim.cgroup)
