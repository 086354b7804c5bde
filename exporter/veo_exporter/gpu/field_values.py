# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The bindings, with a shorter way for the one call that they take long to prepare."""

from ctypes import byref, c_int, create_string_buffer
from struct import Struct
from typing import Any, Final

_ROW: Final = Struct("@II32x")
"""nvmlFieldValue_t before it is asked: field and scope; what the answer fills in is left at 0."""


class Bindings:
    """nvidia-ml-py as it is, but for nvmlDeviceGetFieldValues: it writes each field of each row through
    an attribute that looks at types in Python, a quarter of what a full sweep costs."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def nvmlDeviceGetFieldValues(self, gpu: Any, wanted: list[tuple[int, int]]) -> Any:  # noqa: N802, the header's name
        """Rows as they lie in memory. Raises the bindings' own error."""
        library = self._library
        driver = library.nvmlLib
        if driver is None:
            raise library.NVMLError(library.NVML_ERROR_UNINITIALIZED)
        try:
            ask = driver.nvmlDeviceGetFieldValues
        except AttributeError:
            raise library.NVMLError(library.NVML_ERROR_FUNCTION_NOT_FOUND) from None
        written = b"".join([_ROW.pack(field, scope) for field, scope in wanted])
        rows = create_string_buffer(written, len(written))
        if code := ask(gpu, c_int(len(wanted)), byref(rows)):
            raise library.NVMLError(code)
        return rows
