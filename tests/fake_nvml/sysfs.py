# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

"""A sysfs tree that shows a fake node's GPUs as the kernel's PCI code would."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from .gpu import FakeGpu


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


def _write_device(folder: Path, gpu: FakeGpu, bound: bool) -> None:
    device = gpu.pci_device_id or 0
    subsystem = gpu.pci_subsystem_id or 0
    ids = {
        "vendor": device & 0xFFFF,
        "device": device >> 16,
        "subsystem_vendor": subsystem & 0xFFFF,
        "subsystem_device": subsystem >> 16,
    }
    folder.mkdir(parents=True)
    for name, number in ids.items():
        (folder / name).write_text(f"0x{number:04x}\n")
    (folder / "class").write_text("0x030200\n")
    (folder / "numa_node").write_text(f"{-1 if gpu.numa_node is None else gpu.numa_node}\n")
    uevent = [
        *(["DRIVER=nvidia"] if bound else []),
        "PCI_CLASS=30200",
        f"PCI_ID={ids['vendor']:04X}:{ids['device']:04X}",
        f"PCI_SUBSYS_ID={ids['subsystem_vendor']:04X}:{ids['subsystem_device']:04X}",
        f"PCI_SLOT_NAME={gpu.sysfs_address}",
    ]
    (folder / "uevent").write_text("\n".join(uevent) + "\n")


def write_sysfs(root: Path, gpus: Sequence[FakeGpu], driver_present: bool) -> None:
    """Replace the tree's devices and PCI bus; without a driver nothing is bound to it.

    A GPU that NVML lost or does not list is still a PCI function here.
    """
    for old in ("bus/pci", "devices"):
        shutil.rmtree(root / old, ignore_errors=True)
    driver = root / "bus/pci/drivers/nvidia"
    (root / "bus/pci/devices").mkdir(parents=True)
    if driver_present:
        driver.mkdir(parents=True)
        # The kernel keeps its control files beside the links.
        for name in ("bind", "unbind", "new_id", "remove_id", "uevent"):
            (driver / name).touch()
    for gpu in gpus:
        address = gpu.sysfs_address
        domain, bus = address.split(":")[:2]
        bridge = int(bus, 16) - 1
        folder = root / f"devices/pci{domain}:{bridge:02x}/{domain}:{bridge:02x}:01.0/{address}"
        _write_device(folder, gpu, driver_present)
        _link(root / "bus/pci/devices" / address, folder)
        if driver_present:
            _link(driver / address, folder)
            _link(folder / "driver", driver)
