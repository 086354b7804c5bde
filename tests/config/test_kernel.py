# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel log is read, as people write it."""

from pathlib import Path

import pytest

from veo_exporter.config import KernelLogMode, load_settings
from veo_exporter.errors import BadConfig


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        # YAML reads the first four as truth values.
        ("on", KernelLogMode.ON),
        ("off", KernelLogMode.OFF),
        ("true", KernelLogMode.ON),
        ("no", KernelLogMode.OFF),
        ('"on"', KernelLogMode.ON),
        ("auto", KernelLogMode.AUTO),
    ],
)
def test_modes_in_a_file(tmp_path: Path, written: str, mode: KernelLogMode) -> None:
    file = tmp_path / "veo.yaml"
    file.write_text(f"kernel:\n  log: {written}\n")
    assert load_settings(file, {}, {}).kernel.log is mode


def test_it_is_read_if_it_may_be_unless_said_otherwise() -> None:
    kernel = load_settings(None, {}, {}).kernel
    assert (kernel.log, kernel.log_path) == (KernelLogMode.AUTO, None)
    environment = {"VEO_KERNEL__LOG": "off", "VEO_KERNEL__LOG_PATH": "/host/kmsg"}
    kernel = load_settings(None, environment, {}).kernel
    assert (kernel.log, kernel.log_path) == (KernelLogMode.OFF, Path("/host/kmsg"))


@pytest.mark.parametrize(
    ("variable", "written", "fault"),
    [
        ("VEO_KERNEL__LOG", "maybe", "'auto', 'on' or 'off'"),
        ("VEO_KERNEL__LOG_PATH", "kern.log", "'kern.log' is not an absolute path"),
    ],
)
def test_what_is_refused(variable: str, written: str, fault: str) -> None:
    with pytest.raises(BadConfig) as refused:
        load_settings(None, {variable: written}, {})
    assert variable in str(refused.value)
    assert fault in str(refused.value)
