# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the PCI bus says."""

import shutil
from pathlib import Path

import pytest

from veo_exporter.gpu.presence import PciBus, kernel_pci_address


def add_function(sysfs: Path, address: str, pci_class: str | None) -> None:
    folder = sysfs / "bus/pci/drivers/nvidia" / address
    folder.mkdir(parents=True)
    if pci_class is not None:
        (folder / "class").write_text(pci_class + "\n")


def test_display_controllers_of_the_driver(tmp_path: Path) -> None:
    add_function(tmp_path, "0000:1b:00.0", "0x030200")
    add_function(tmp_path, "0000:01:00.0", "0x030000")
    add_function(tmp_path, "10000:02:00.0", "0x030200")
    assert PciBus(tmp_path).functions() == frozenset(
        {"0000:1b:00.0", "0000:01:00.0", "10000:02:00.0"}
    )


def test_what_is_no_gpu_is_left_out(tmp_path: Path) -> None:
    add_function(tmp_path, "0000:1b:00.0", "0x030200")
    # An NVSwitch, and the sound device of a graphics board.
    add_function(tmp_path, "0000:c1:00.0", "0x068000")
    add_function(tmp_path, "0000:1b:00.1", "0x040300")
    for name in ("bind", "new_id", "module"):
        (tmp_path / "bus/pci/drivers/nvidia" / name).touch()
    assert PciBus(tmp_path).functions() == frozenset({"0000:1b:00.0"})


def test_a_function_on_its_way_off_the_bus_still_counts(tmp_path: Path) -> None:
    add_function(tmp_path, "0000:1b:00.0", None)
    assert PciBus(tmp_path).functions() == frozenset({"0000:1b:00.0"})


def test_the_bus_is_looked_at_again_each_time(tmp_path: Path) -> None:
    bus = PciBus(tmp_path)
    add_function(tmp_path, "0000:1b:00.0", "0x030200")
    add_function(tmp_path, "0000:c1:00.0", None)
    assert bus.functions() == frozenset({"0000:1b:00.0", "0000:c1:00.0"})
    # It says by now that it is a switch; the GPU has gone, and its place is taken by one as well.
    folder = tmp_path / "bus/pci/drivers/nvidia"
    (folder / "0000:c1:00.0/class").write_text("0x068000\n")
    (folder / "0000:1b:00.0").rename(tmp_path / "aside")
    assert bus.functions() == frozenset()
    add_function(tmp_path, "0000:1b:00.0", "0x068000")
    assert bus.functions() == frozenset()
    shutil.rmtree(folder / "0000:1b:00.0")
    add_function(tmp_path, "0000:01:00.0", "0x030000")
    assert bus.functions() == frozenset({"0000:01:00.0"})


def test_no_driver_is_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/drivers").mkdir(parents=True)
    assert PciBus(tmp_path).functions() == frozenset()


def test_no_sysfs_is_not_known(tmp_path: Path) -> None:
    assert PciBus(tmp_path / "nothing").functions() is None


def test_a_file_in_the_place_of_the_folder_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/drivers").mkdir(parents=True)
    (tmp_path / "bus/pci/drivers/nvidia").touch()
    assert PciBus(tmp_path).functions() is None


@pytest.mark.parametrize(
    ("nvml", "kernel"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("0000:1B:00.0", "0000:1b:00.0"),
        ("00010000:C1:00.0", "10000:c1:00.0"),
    ],
)
def test_addresses_as_the_kernel_writes_them(nvml: str, kernel: str) -> None:
    assert kernel_pci_address(nvml) == kernel
