# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Whether and how the names of dcgm-exporter are written, as people write it."""

from pathlib import Path

import pytest

from veo_exporter.config import DcgmHostnameLabel, DcgmNames, DcgmUuidLabel, load_settings
from veo_exporter.errors import BadConfig


@pytest.mark.parametrize(
    ("written", "names"),
    [
        # YAML reads the first two as truth values.
        ("off", DcgmNames.OFF),
        ("false", DcgmNames.OFF),
        ('"off"', DcgmNames.OFF),
        ("classic", DcgmNames.CLASSIC),
        ("new", DcgmNames.NEW),
    ],
)
def test_names_in_a_file(tmp_path: Path, written: str, names: DcgmNames) -> None:
    file = tmp_path / "veo.yaml"
    file.write_text(f"gpu:\n  dcgm_names: {written}\n")
    assert load_settings(file, {}, {}).gpu.dcgm_names is names


def test_they_are_off_unless_asked_for() -> None:
    gpu = load_settings(None, {}, {}).gpu
    assert gpu.dcgm_names is DcgmNames.OFF
    assert (gpu.dcgm_uuid_label, gpu.dcgm_hostname_label) == (
        DcgmUuidLabel.CAPITAL,
        DcgmHostnameLabel.CAPITAL,
    )


@pytest.mark.parametrize(
    ("name", "written", "choices"),
    [
        ("dcgm_names", "on", "'off', 'classic' or 'new'"),
        ("dcgm_uuid_label", "Uuid", "'UUID' or 'uuid'"),
        ("dcgm_hostname_label", "host", "'Hostname' or 'hostname'"),
    ],
)
def test_what_is_no_choice_is_refused(name: str, written: str, choices: str) -> None:
    with pytest.raises(BadConfig) as refused:
        load_settings(None, {f"VEO_GPU__{name.upper()}": written}, {})
    assert refused.value.faults == [
        f"VEO_GPU__{name.upper()}: input should be {choices}, not '{written}'"
    ]
