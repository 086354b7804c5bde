# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The bindings, with a shorter way for the few calls that are made again and again."""

from ctypes import Structure, byref, c_int, c_uint, c_ulonglong, create_string_buffer
from struct import Struct
from typing import Any, Final

_SAMPLE_BYTES: Final = 16
"""nvmlSample_t: the time, and a union of eight bytes."""
_ROW: Final = Struct("@II32x")
"""nvmlFieldValue_t before it is asked: field and scope; what the answer fills in is left at 0."""


class _Utilization(Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class _Memory(Structure):
    """nvmlMemory_v2_t."""

    _fields_ = (
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    )


class Bindings:
    """nvidia-ml-py as it is, but for what is asked at every tick and for the longest of the calls: its
    structures look at types in Python whenever a field is read or written, which takes longer than the
    driver does. And for what it asks in the newest form alone. Errors are the bindings' own.

    Each call has memory of its own: a thread that is left behind in one may write to it much later.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def nvmlDeviceGetUtilizationRates(self, gpu: Any) -> Any:  # noqa: N802, the header's name
        """Of the GPU and of copies in its memory, in percent."""
        rates = _Utilization()
        self._ask("nvmlDeviceGetUtilizationRates", gpu, byref(rates))
        return rates

    def nvmlDeviceGetMemoryInfo(self, gpu: Any, version: int | None = None) -> Any:  # noqa: N802
        """In bytes; without a version, in the form that old drivers know."""
        if not version:
            return self._library.nvmlDeviceGetMemoryInfo(gpu)
        memory = _Memory(version)
        self._ask("nvmlDeviceGetMemoryInfo_v2", gpu, byref(memory))
        return memory

    def nvmlDeviceGetFieldValues(self, gpu: Any, wanted: list[tuple[int, int]]) -> Any:  # noqa: N802
        """Rows as they lie in memory."""
        written = b"".join([_ROW.pack(field, scope) for field, scope in wanted])
        rows = create_string_buffer(written, len(written))
        self._ask("nvmlDeviceGetFieldValues", gpu, c_int(len(wanted)), byref(rows))
        return rows

    def nvmlDeviceGetSamples(  # noqa: N802
        self, gpu: Any, kind: int, last_seen_microseconds: int
    ) -> tuple[int, bytes]:
        """The type of the values, and the samples as they lie in memory."""
        value_type, count = c_int(), c_uint()
        since = c_ulonglong(last_seen_microseconds)
        arguments = (gpu, kind, since, byref(value_type), byref(count))
        self._ask("nvmlDeviceGetSamples", *arguments, None)
        rows = create_string_buffer(_SAMPLE_BYTES * count.value)
        self._ask("nvmlDeviceGetSamples", *arguments, rows)
        return value_type.value, rows.raw[: _SAMPLE_BYTES * count.value]

    def nvmlDeviceGetGridLicensableFeatures(self, gpu: Any) -> Any:  # noqa: N802
        """In the newest form that the driver knows: each has what the one before it had."""
        *newer, oldest = ("_v4", "_v3", "")
        for form in newer:
            try:
                return self._licensable_features(gpu, form)
            except self._library.NVMLError as error:
                if error.value != self._library.NVML_ERROR_FUNCTION_NOT_FOUND:
                    raise
        return self._licensable_features(gpu, oldest)

    def _licensable_features(self, gpu: Any, form: str) -> Any:
        features = getattr(self._library, f"c_nvmlGridLicensableFeatures{form}_t")()
        self._ask(f"nvmlDeviceGetGridLicensableFeatures{form}", gpu, byref(features))
        return features

    def _ask(self, function: str, *arguments: Any) -> None:
        driver = self._library.nvmlLib
        if driver is None:
            raise self._library.NVMLError(self._library.NVML_ERROR_UNINITIALIZED)
        try:
            ask = getattr(driver, function)
        except AttributeError:
            raise self._library.NVMLError(self._library.NVML_ERROR_FUNCTION_NOT_FOUND) from None
        if code := ask(*arguments):
            raise self._library.NVMLError(code)
