# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A session with the driver: opened, its GPUs counted and found, closed. Runs on the worker."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from veo_exporter.gpu.codes import UNREADABLE, Meaning, meaning_of
from veo_exporter.gpu.nodes import Nodes
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.presence import kernel_pci_address
from veo_exporter.gpu.readings import Device, Reading
from veo_exporter.gpu.texts import DRIVER_TEXTS

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session was asked for; code 0 if there is one now."""

    code: int
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many GPUs NVML lists, if the code is 0."""

    code: int
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The GPU at an index, or the code and function that kept it from us."""

    index: int
    device: Device | None = None
    code: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The session was given back, as often as it had been opened."""

    sessions: int = 1


class Answer(NamedTuple):
    """A GPU's reading; `everything` if also what is known to be missing was asked for."""

    device: Device
    reading: Reading
    everything: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesSeen:
    """The device nodes were looked at."""

    nodes: Nodes


Outcome = Opened | Counted | Found | Closed | Answer | NodesSeen

ClosingCall = Callable[[Line], None]
"""What must be freed before the session ends: event sets, GPM samples. Calls through the line it is
given, so that it is watched; may raise."""


def open_session(line: Line) -> Opened:
    """Open a session and learn the versions of driver and library."""
    try:
        line.call("nvmlInit")
    except NvmlError as error:
        return Opened(code=error.code)
    texts = {}
    for label, function in DRIVER_TEXTS.items():
        try:
            texts[label] = _version(line.call(function))
        except NvmlError:
            # A version that is not to be had is an empty label, and no reason to go without GPUs.
            texts[label] = ""
    return Opened(code=0, texts=texts)


def _version(answer: object) -> str:
    # CUDA's version is a number: 12040 is 12.4.
    return f"{answer // 1000}.{answer % 1000 // 10}" if isinstance(answer, int) else str(answer)


def count_gpus(line: Line) -> Counted:
    """Ask how many GPUs there are."""
    try:
        return Counted(code=0, count=int(line.call("nvmlDeviceGetCount")))
    except NvmlError as error:
        return Counted(code=error.code)


def find_gpu(line: Line, index: int) -> Found:
    """Find the GPU at an index. With one GPU ill, this fails for that one alone."""
    try:
        handle = line.call("nvmlDeviceGetHandleByIndex", index)
        uuid = str(line.call("nvmlDeviceGetUUID", handle))
        bus_id = line.call("nvmlDeviceGetPciInfo", handle).busId
    except NvmlError as error:
        return Found(index=index, code=error.code, function=error.function)
    try:
        address = kernel_pci_address(bus_id.decode() if isinstance(bus_id, bytes) else str(bus_id))
    except ValueError:
        return Found(index=index, code=UNREADABLE, function="nvmlDeviceGetPciInfo")
    return Found(index=index, device=Device(index, uuid, address, handle))


def close_session(
    line: Line, *, sessions: int = 1, closing_calls: Iterable[ClosingCall] = ()
) -> Closed:
    """Give the session back, so that the driver can be unloaded.

    NVML counts how often it was opened, and lets go of the driver at the last shutdown only.
    """
    for call in closing_calls:
        try:
            call(line)
        except NvmlError:
            # What it held went with a session that was over already.
            pass
        except Exception:
            log.exception("something could not be freed before the session with the driver ends")
    for _ in range(sessions):
        try:
            line.call("nvmlShutdown")
        except NvmlError:
            # It was over already.
            break
    return Closed(sessions=sessions)


def ends_session(code: int) -> bool:
    """Whether a return code says that the session is over."""
    return code != 0 and meaning_of(code) in (Meaning.REINITIALISE, Meaning.RESTART)
