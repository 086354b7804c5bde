# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The thresholds of the advice, and the ways in which they do not go together."""

from fractions import Fraction

import pytest

from veo_exporter.app.advice import ladder_of
from veo_exporter.config import load_settings
from veo_exporter.errors import BadConfig
from veo_exporter.gpu import Ladder


def test_the_defaults_are_the_ladder_of_the_first_users() -> None:
    settings = load_settings(None, {}, {})
    assert ladder_of(settings) == Ladder(
        medium_from=Fraction(3, 5),
        low_above=Fraction(17, 20),
        hysteresis=Fraction(3, 100),
        sweeps=3,
        sweep_seconds=5.0,
        pressure_free_bytes=1_610_612_736,
    )


def test_they_are_taken_as_they_are_written() -> None:
    environment = {
        "VEO_ADVICE__MEDIUM_FROM": "0.1",
        "VEO_ADVICE__LOW_ABOVE": "0.7",
        "VEO_ADVICE__HYSTERESIS": "0.0999",
        "VEO_ADVICE__SWEEPS": "5",
        "VEO_ADVICE__PRESSURE_FREE_BYTES": "0",
        "VEO_GPU__FULL_INTERVAL": "2s",
    }
    assert ladder_of(load_settings(None, environment, {})) == Ladder(
        medium_from=Fraction(1, 10),
        low_above=Fraction(7, 10),
        hysteresis=Fraction(999, 10_000),
        sweeps=5,
        sweep_seconds=2.0,
        pressure_free_bytes=0,
    )


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (
            {"low_above": "1"},
            "--advice.low-above: must lie between 0 and 1, as 0.85, not 1",
        ),
        (
            {"medium_from": "85"},
            "--advice.medium-from: must lie between 0 and 1, as 0.85, not 85",
        ),
        ({"hysteresis": "0"}, "--advice.hysteresis: must lie between 0 and 1, as 0.85, not 0"),
        (
            {"hysteresis": "nan"},
            "--advice.hysteresis: must lie between 0 and 1, as 0.85, not nan",
        ),
        (
            {"medium_from": "0.85"},
            "--advice.medium-from: medium_from (0.85) is not below low_above (0.85)",
        ),
        (
            {"hysteresis": "0.3"},
            (
                "--advice.hysteresis: hysteresis (0.3) is too large: it must be less than 0.25, the room "
                "below medium_from and between the two thresholds"
            ),
        ),
        ({"sweeps": "2"}, "--advice.sweeps: must be at least 3, not 2"),
        ({"sweeps": "3.5"}, "--advice.sweeps: must be a whole number, not '3.5'"),
        (
            {"pressure_free_bytes": "-1"},
            "--advice.pressure-free-bytes: must be at least 0, not -1",
        ),
    ],
)
def test_faults_name_the_setting_and_the_remedy(flags: dict[str, str], fault: str) -> None:
    with pytest.raises(BadConfig) as refused:
        load_settings(None, {}, {("advice", name): written for name, written in flags.items()})
    assert refused.value.faults == [fault]
