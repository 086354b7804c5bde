# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which GPUs the PCI bus holds, whatever NVML says."""

import re
from pathlib import Path
from typing import Final

_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_DISPLAY_CONTROLLER: Final = "0x03"


class PciBus:
    """The nvidia driver's part of sysfs, looked at again and again by one thread."""

    def __init__(self, sysfs_root: Path) -> None:
        self._bus = sysfs_root / "bus"
        self._driver = self._bus / "pci/drivers/nvidia"
        # What a function is does not change while it is there: its file is read once.
        self._is_display: dict[str, bool] = {}

    def functions(self) -> frozenset[str] | None:
        """PCI addresses of the display controllers that are bound to the driver.

        Empty where the driver is not loaded; None where sysfs cannot be read, so that nothing is known.
        """
        try:
            names = [entry.name for entry in self._driver.iterdir()]
        except FileNotFoundError:
            return frozenset() if self._bus.is_dir() else None
        except OSError:
            return None
        addresses = [name for name in names if _ADDRESS.fullmatch(name)]
        self._is_display = {
            address: self._is_display[address]
            for address in addresses
            if address in self._is_display or self._look_up(address)
        }
        return frozenset(
            # One without a class is on its way off the bus: it was here, and it should be.
            address
            for address in addresses
            if self._is_display.get(address, True)
        )

    def _look_up(self, address: str) -> bool:
        """Learn what a function is; False if it does not say."""
        try:
            function_class = (self._driver / address / "class").read_text()
        except OSError:
            return False
        self._is_display[address] = function_class.startswith(_DISPLAY_CONTROLLER)
        return True


def kernel_pci_address(nvml_bus_id: str) -> str:
    """NVML's 00000000:1B:00.0 as the kernel writes it: 0000:1b:00.0."""
    domain, _, rest = nvml_bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"
