# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""NVML's return codes, and what each means for what we do next: the one table."""

from enum import Enum, IntEnum
from typing import Final


class ReturnCode(IntEnum):
    """The codes of nvmlReturn_t that this program tells apart, under the header's names."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    IRQ_ISSUE = 11
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    MEMORY = 20
    NO_DATA = 21
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    UNKNOWN = 999


UNREADABLE: Final = -1
"""Stands where a return code would: the call succeeded, but its answer made no sense."""
OVERDUE: Final = -2
"""Likewise: the call was over our deadline, and nobody waits for it any more."""


class Meaning(Enum):
    """What a return code asks of us."""

    SUCCESS = "success"
    UNSUPPORTED = "this board or library will never say; do not ask again for a while"
    FORBIDDEN = "we lack the rights; do not ask again for a while"
    NO_VALUE = "no value this time; ask again"
    GPU_GONE = "this GPU no longer answers; ask it nothing more in this round"
    GPU_ILL = "this GPU is not well, though it may still answer"
    REINITIALISE = "the session with the driver has ended; start another"
    RESTART = "only a restart of this process helps: the mapped library is the wrong one"
    FAILED = "this call failed"


_MEANINGS: Final[dict[int, Meaning]] = {
    ReturnCode.SUCCESS: Meaning.SUCCESS,
    ReturnCode.NOT_SUPPORTED: Meaning.UNSUPPORTED,
    ReturnCode.FUNCTION_NOT_FOUND: Meaning.UNSUPPORTED,
    ReturnCode.ARGUMENT_VERSION_MISMATCH: Meaning.UNSUPPORTED,
    ReturnCode.DEPRECATED: Meaning.UNSUPPORTED,
    ReturnCode.NO_PERMISSION: Meaning.FORBIDDEN,
    # Often a device cgroup that denies the node.
    ReturnCode.OPERATING_SYSTEM: Meaning.FORBIDDEN,
    ReturnCode.NO_DATA: Meaning.NO_VALUE,
    ReturnCode.NOT_FOUND: Meaning.NO_VALUE,
    ReturnCode.NOT_READY: Meaning.NO_VALUE,
    ReturnCode.TIMEOUT: Meaning.NO_VALUE,
    ReturnCode.GPU_IS_LOST: Meaning.GPU_GONE,
    ReturnCode.GPU_NOT_FOUND: Meaning.GPU_GONE,
    ReturnCode.RESET_REQUIRED: Meaning.GPU_GONE,
    ReturnCode.IRQ_ISSUE: Meaning.GPU_ILL,
    ReturnCode.CORRUPTED_INFOROM: Meaning.GPU_ILL,
    ReturnCode.UNINITIALIZED: Meaning.REINITIALISE,
    ReturnCode.DRIVER_NOT_LOADED: Meaning.REINITIALISE,
    ReturnCode.LIB_RM_VERSION_MISMATCH: Meaning.RESTART,
}


def meaning_of(code: int) -> Meaning:
    """What a return code asks of us; codes that no table knows have failed."""
    # A ReturnCode is an int, and hashes as one: no need to make one of each code.
    return _MEANINGS.get(code, Meaning.FAILED)


def code_name(code: int) -> str:
    """The header's name without NVML_ERROR_; the number for a code newer than this table."""
    if code in _OUR_NAMES:
        return _OUR_NAMES[code]
    try:
        return ReturnCode(code).name
    except ValueError:
        return str(code)


_OUR_NAMES: Final = {UNREADABLE: "UNREADABLE", OVERDUE: "OVERDUE"}

_REMEDIES: Final = {
    ReturnCode.LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 was not found: install the NVIDIA driver, or give the container "
    "the driver's libraries (NVIDIA_DRIVER_CAPABILITIES=utility)",
    ReturnCode.DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded: load it (modprobe nvidia)",
    ReturnCode.LIB_RM_VERSION_MISMATCH: "the driver was upgraded while this process kept the old library, "
    "which stays mapped until it ends: only a restart helps, so restart the exporter",
    ReturnCode.NO_PERMISSION: "the exporter may not talk to the driver: give it the device nodes /dev/nvidia*",
    ReturnCode.OPERATING_SYSTEM: "the operating system refused the device nodes /dev/nvidia*: check the container's "
    "device cgroup",
    ReturnCode.UNKNOWN: "NVML gave no reason (999), and the device nodes do not explain it: "
    "see nvidia-smi and the kernel log",
}


def remedy_for(code: int) -> str:
    """A sentence that says why the driver cannot be used, and what helps."""
    try:
        return _REMEDIES[ReturnCode(code)]
    except (KeyError, ValueError):
        return f"NVML answers {code_name(code)} ({code}): see nvidia-smi and the kernel log"
