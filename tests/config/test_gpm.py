# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of processes and performance counters."""

from pathlib import Path

import pytest

from veo_exporter.config import GpmMode, load_settings
from veo_exporter.errors import BadConfig


@pytest.mark.parametrize(
    ("written", "mode"),
    [("on", GpmMode.ON), ("off", GpmMode.OFF), ('"on"', GpmMode.ON), ("auto", GpmMode.AUTO)],
)
def test_modes_in_a_file(tmp_path: Path, written: str, mode: GpmMode) -> None:
    """YAML reads a bare on or off as a truth value."""
    file = tmp_path / "veo.yaml"
    file.write_text(f"gpu: {{gpm: {written}}}")
    assert load_settings(file, {}, {}).gpu.gpm is mode


def test_defaults() -> None:
    gpu = load_settings(None, {}, {}).gpu
    assert (gpu.gpm, gpu.process_names, gpu.process_names_max) == (GpmMode.AUTO, 3, 50)
    assert gpu.proc_root == Path("/proc")


@pytest.mark.parametrize(
    "environment",
    [
        {"VEO_GPU__GPM": "sometimes"},
        {"VEO_GPU__PROCESS_NAMES": "51"},
        {"VEO_GPU__PROCESS_NAMES_MAX": "-1"},
        {"VEO_GPU__PROC_ROOT": "proc"},
    ],
)
def test_what_cannot_be_set(environment: dict[str, str]) -> None:
    with pytest.raises(BadConfig):
        load_settings(None, environment, {})
