# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios: what is accepted, and how a refusal reads."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from veo_exporter.errors import BadScenario
from veo_exporter.simulate.scenario import load_scenario, shipped_scenarios

SMALL: dict[str, Any] = {
    "about": "A node.",
    "gpus": 2,
    "board": {
        "name": "Board",
        "memory_gib": 80,
        "reserved_gib": 0.5,
        "power_limit_watts": 700,
        "sm_clock_max_megahertz": 1980,
        "memory_clock_megahertz": 2619,
    },
    "work": [
        {
            "name": "denoise",
            "lasts": "30s",
            "utilization": 0.9,
            "memory_copy_utilization": 0.5,
            "memory_used": 0.5,
            "power": 0.5,
            "temperature_celsius": 60,
        }
    ],
}


def write(folder: Path, **changes: Any) -> str:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return str(path)


@pytest.mark.parametrize("name", shipped_scenarios())
def test_what_is_shipped_loads_and_is_a_node_of_eight(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.gpus == 8
    assert scenario.about.endswith(".")
    assert scenario.repeat_every is not None


def test_names_of_what_is_shipped() -> None:
    assert {"busy", "driver-reload", "gpu-hung", "gpu-lost", "mig", "node-lost"} <= set(
        shipped_scenarios()
    )
    assert shipped_scenarios() == sorted(shipped_scenarios())


def test_by_path(tmp_path: Path) -> None:
    happenings = [
        {"at": "1m30s", "what": "fail", "gpus": [1], "function": "nvmlDeviceGetName", "code": 999}
    ]
    scenario = load_scenario(write(tmp_path, happenings=happenings, repeat_every="2m"))
    assert (scenario.gpus, scenario.repeat_every) == (2, 120)
    assert (scenario.happenings[0].at, scenario.happenings[0].code) == (90, 999)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(BadScenario, match=r"no scenario 'buzy': write a path, or one of busy, "):
        load_scenario("buzy")


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="cannot be read"):
        load_scenario(str(tmp_path / "nothing.yaml"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"gpus": 65}, "gpus: "),
        ({"gpus": -1}, "gpus: "),
        ({"colour": "green"}, "colour: "),
        ({"work": []}, "work: "),
        ({"repeat_every": 60}, "repeat_every: Value error, 60 has no unit"),
        ({"happenings": [{"at": "1s", "what": "explode"}]}, "happenings.0.what: "),
        (
            {"happenings": [{"at": "1s", "what": "lose", "gpus": [2]}]},
            "there is no GPU 2, only 0 to 1",
        ),
        ({"happenings": [{"at": "1s", "what": "fail"}]}, "'fail' wants one"),
        ({"happenings": [{"at": "1s", "what": "lose", "code": 15}]}, "a code is for 'fail'"),
        ({"happenings": [{"at": "1s", "what": "throttle"}]}, "'throttle' wants one"),
        (
            {"happenings": [{"at": "1s", "what": "throttle", "reason": "heat"}]},
            "'heat' is no reason: write one of applications_clocks_setting",
        ),
        (
            {"happenings": [{"at": "1s", "what": "unload_driver", "gpus": [0]}]},
            "concerns the driver",
        ),
        (
            {"happenings": [{"at": "2m", "what": "lose"}], "repeat_every": "2m"},
            "at 120 s: the story starts over after 120 s",
        ),
        ({"mig": [{"gpu": 2, "profiles": ["1g.10gb"]}]}, "mig: there is no GPU 2, only 0 to 1"),
        ({"mig": [{"gpu": 0, "profiles": []}]}, "mig.0.profiles: "),
        ({"mig": [{"gpu": 0, "profiles": ["half"]}]}, "mig.0.profiles.0: "),
        (
            {"mig": [{"gpu": 0, "profiles": ["4g.20gb", "4g.20gb"]}]},
            "GPU 0 has 7 slices, and the profiles want 8",
        ),
        (
            {"mig": [{"gpu": 1, "profiles": ["3g.40gb", "3g.41gb"]}]},
            "GPU 1 has 80 GiB, and the profiles want 81",
        ),
        (
            {"mig": [{"gpu": 1, "profiles": ["3g.40gb"]}, {"gpu": 1, "profiles": ["3g.40gb"]}]},
            "GPU 1 is divided twice",
        ),
    ],
)
def test_a_refusal_names_place_and_reason(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(BadScenario) as caught:
        load_scenario(path)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert ": : " not in str(caught.value)


def test_every_fault_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadScenario) as caught:
        load_scenario(write(tmp_path, gpus=-1, work=[], about=3))
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    "text", ["", "just words", "[1, 2]", "a: [unclosed", "\x00", "!!python/object:os.system {}"]
)
def test_what_is_no_scenario_at_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(BadScenario):
        load_scenario(str(path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadScenario, match="cannot be read"):
        load_scenario(str(path))
