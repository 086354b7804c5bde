# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One event set of NVML's, through one thread's line. A set belongs to one session and one thread."""

import ctypes
from dataclasses import dataclass
from typing import Any, Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.nvml import Handle, Line, NvmlError

XID_EVENT: Final = 0x8
"""nvmlEventTypeXidCriticalError."""
WAIT_FUNCTION: Final = "nvmlEventSetWait_v2"
_NO_INSTANCE: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    """An Xid that NVML told of. The instances are those of MIG."""

    handle: Handle
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class EventSet:
    """Hears Xids of the GPUs registered with it. Its methods raise NvmlError."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._set: Any = None

    @property
    def open(self) -> bool:
        return self._set is not None

    def create(self) -> None:
        self._set = self._line.call("nvmlEventSetCreate")

    def register(self, gpu: Handle) -> None:
        """Hear a GPU's Xids from now on. A MIG device cannot be registered: its GPU tells of it."""
        supported = int(self._line.call("nvmlDeviceGetSupportedEventTypes", gpu))
        if not supported & XID_EVENT:
            raise NvmlError("nvmlDeviceGetSupportedEventTypes", ReturnCode.NOT_SUPPORTED)
        self._line.call("nvmlDeviceRegisterEvents", gpu, XID_EVENT, self._set)

    def wait(self, milliseconds: int) -> XidEvent | None:
        """The next Xid; None if there is none for so long, which is the normal answer."""
        try:
            data = self._line.call(WAIT_FUNCTION, self._set, milliseconds)
        except NvmlError as error:
            if error.code == ReturnCode.TIMEOUT:
                return None
            raise
        if data.eventType != XID_EVENT:
            return None
        return XidEvent(
            handle=data.device,
            code=int(data.eventData),
            gpu_instance=_instance(data.gpuInstanceId),
            compute_instance=_instance(data.computeInstanceId),
        )

    def free(self) -> None:
        """Give the set back. If its session is over already, so is the set."""
        handle, self._set = self._set, None
        if handle is None:
            return
        try:
            self._line.call("nvmlEventSetFree", handle)
        except NvmlError:
            pass


def _instance(number: int) -> int | None:
    return None if number == _NO_INSTANCE else int(number)


def same_gpu(one: Handle, other: Handle) -> bool:
    """Whether two handles are of the same GPU: NVML gives the same pointer each time, the bindings
    another object."""
    return one is other or bool(_pointer(one) == _pointer(other))


def _pointer(handle: Handle) -> Any:
    try:
        return ctypes.cast(handle, ctypes.c_void_p).value
    except (ctypes.ArgumentError, TypeError):
        return handle
