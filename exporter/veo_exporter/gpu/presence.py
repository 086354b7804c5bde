# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which GPUs the PCI bus holds, whatever NVML says."""

import re
from pathlib import Path
from typing import Final

_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_DISPLAY_CONTROLLER: Final = "0x03"


def pci_functions(sysfs_root: Path) -> frozenset[str] | None:
    """PCI addresses of the display controllers that are bound to the nvidia driver.

    Empty where the driver is not loaded; None where sysfs cannot be read, so that nothing is known.
    """
    folder = sysfs_root / "bus/pci/drivers/nvidia"
    try:
        addresses = [entry.name for entry in folder.iterdir() if _ADDRESS.fullmatch(entry.name)]
    except FileNotFoundError:
        return frozenset() if sysfs_root.joinpath("bus").is_dir() else None
    except OSError:
        return None
    return frozenset(address for address in addresses if _is_display(folder / address / "class"))


def _is_display(path: Path) -> bool:
    try:
        return path.read_text().startswith(_DISPLAY_CONTROLLER)
    except OSError:
        # A function on its way off the bus: it was here, and it should be.
        return True


def kernel_pci_address(nvml_bus_id: str) -> str:
    """NVML's 00000000:1B:00.0 as the kernel writes it: 0000:1b:00.0."""
    domain, _, rest = nvml_bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"
