# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a scenario's node is like at a time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veo_exporter.simulate.node import (
    activity_of,
    condition_of,
    driver_loaded,
    energy_joules,
    story_time,
)
from veo_exporter.simulate.scenario import Board, Happening, Phase, Scenario, What

BOARD = Board(
    name="Board",
    memory_gib=80,
    reserved_gib=0.5,
    power_limit_watts=1000,
    sm_clock_max_megahertz=2000,
    memory_clock_megahertz=2600,
    unsupported=("nvmlDeviceGetEncoderUtilization",),
)


def phase(name: str, lasts: str, power: float = 0.5, utilization: float = 0.5) -> Phase:
    return Phase.model_validate(
        {
            "name": name,
            "lasts": lasts,
            "utilization": utilization,
            "memory_copy_utilization": 0.4,
            "memory_used": 0.6,
            "power": power,
            "temperature_celsius": 60,
        }
    )


def happening(at: str, what: What, *gpus: int, **more: object) -> Happening:
    return Happening.model_validate({"at": at, "what": what, "gpus": gpus, **more})


def story(*happenings: Happening, gpus: int = 2, repeat_every: str | None = None) -> Scenario:
    return Scenario.model_validate(
        {
            "about": "A story.",
            "gpus": gpus,
            "board": BOARD,
            "work": (phase("work", "30s", 0.9, 1.0), phase("rest", "10s", 0.1, 0.0)),
            "repeat_every": repeat_every,
            "happenings": happenings,
        }
    )


def test_a_story_starts_over() -> None:
    assert story_time(story(repeat_every="1m"), 150) == 30
    assert story_time(story(), 150) == 150


def test_the_driver_comes_and_goes() -> None:
    scenario = story(
        # Written out of order; they happen in the order of time.
        happening("20s", What.LOAD_DRIVER),
        happening("10s", What.UNLOAD_DRIVER),
        repeat_every="1m",
    )
    found = [driver_loaded(scenario, at) for at in (0, 9.9, 10, 19.9, 20, 59, 60, 71, 80)]
    assert found == [True, True, False, False, True, True, True, False, True]


def test_what_happens_to_one_gpu_leaves_the_others_alone() -> None:
    scenario = story(happening("10s", What.LOSE, 1), happening("20s", What.RECOVER, 1))
    assert [condition_of(scenario, 1, at).code("nvmlDeviceGetUUID") for at in (9, 10, 19, 20)] == [
        *(0, 15, 15, 0)
    ]
    assert condition_of(scenario, 0, 15).code("nvmlDeviceGetUUID") == 0


def test_no_gpus_named_means_all() -> None:
    scenario = story(happening("10s", What.REQUIRE_RESET))
    assert [condition_of(scenario, gpu, 10).code("nvmlDeviceGetUUID") for gpu in (0, 1)] == [16, 16]


def test_one_function_fails_and_succeeds() -> None:
    scenario = story(
        happening("1s", What.FAIL, function="nvmlDeviceGetPowerUsage", code=999),
        happening("2s", What.SUCCEED, function="nvmlDeviceGetPowerUsage"),
    )
    condition = condition_of(scenario, 0, 1)
    assert condition.code("nvmlDeviceGetPowerUsage") == 999
    assert condition.code("nvmlDeviceGetTemperature") == 0
    assert condition_of(scenario, 0, 2).code("nvmlDeviceGetPowerUsage") == 0


@pytest.mark.parametrize("what", [What.SUCCEED, What.RECOVER])
def test_without_a_function_each_succeeds_but_what_the_board_lacks(what: What) -> None:
    scenario = story(
        happening("1s", What.FAIL, function="nvmlDeviceGetPowerUsage", code=999),
        happening("1s", What.LOSE),
        happening("2s", what),
    )
    assert condition_of(scenario, 0, 1).code("nvmlDeviceGetPowerUsage") == 15
    condition = condition_of(scenario, 0, 2)
    assert condition.code("nvmlDeviceGetPowerUsage") == 0
    assert condition.code("nvmlDeviceGetEncoderUtilization") == 3


def test_hanging_and_answering() -> None:
    scenario = story(
        happening("1s", What.HANG, function="nvmlDeviceGetPowerUsage"),
        happening("2s", What.HANG),
        happening("3s", What.ANSWER),
    )
    found = [
        (
            condition_of(scenario, 0, at).hangs("nvmlDeviceGetPowerUsage"),
            condition_of(scenario, 0, at).hangs("nvmlDeviceGetTemperature"),
        )
        for at in (0, 1, 2, 3)
    ]
    # Without a function, each answers again.
    assert found == [(False, False), (True, False), (True, True), (False, False)]


def test_hiding() -> None:
    scenario = story(happening("1s", What.HIDE, 0), happening("2s", What.SHOW, 0))
    assert [condition_of(scenario, 0, at).hidden for at in (0, 1, 2)] == [False, True, False]
    assert not condition_of(scenario, 1, 1).hidden


def test_throttling_adds_reasons_until_it_ends() -> None:
    scenario = story(
        happening("1s", What.THROTTLE, 0, reason="sw_power_cap"),
        happening("2s", What.THROTTLE, 0, reason="hw_thermal_slowdown"),
        happening("3s", What.UNTHROTTLE, 0),
    )
    # NVML's bits of these two: 0x4 and 0x40.
    assert [condition_of(scenario, 0, at).throttle_mask for at in (0, 1, 2, 3)] == [
        *(0, 0x4, 0x44, 0)
    ]


def test_work_goes_round_and_each_gpu_is_elsewhere_in_it() -> None:
    scenario = story()
    # The second of two GPUs is half a round of 40 s ahead.
    assert [activity_of(scenario, 0, at).phase for at in (0, 29.9, 30, 39.9, 40)] == [
        *("work", "work", "rest", "rest", "work")
    ]
    assert [activity_of(scenario, 1, at).phase for at in (0, 9.9, 10, 20)] == [
        *("work", "work", "rest", "work")
    ]


def test_energy_is_power_over_time() -> None:
    # 30 s at 900 W and 10 s at 100 W.
    assert energy_joules(story(), 0, 0) == 0
    assert energy_joules(story(), 0, 10) == pytest.approx(9_000)
    assert energy_joules(story(), 0, 40) == pytest.approx(28_000)
    assert energy_joules(story(), 0, 85) == pytest.approx(2 * 28_000 + 4_500)
    # The second begins after 20 s of the round: 10 s of work, then the rest.
    assert energy_joules(story(), 1, 15) == pytest.approx(9_000 + 500)


@settings(deadline=None)
@given(gpu=st.integers(0, 1), at=st.floats(0, 1e6))
def test_activity_can_be_true(gpu: int, at: float) -> None:
    found = activity_of(story(), gpu, at)
    for share in (
        found.utilization,
        found.memory_copy_utilization,
        found.memory_used,
        found.power,
        found.decoder_utilization,
    ):
        assert 0 <= share <= 1
    assert 50 < found.temperature_celsius < 70


@settings(deadline=None)
@given(gpu=st.integers(0, 1), at=st.floats(0, 1e6), step=st.floats(0, 1000))
def test_energy_never_falls(gpu: int, at: float, step: float) -> None:
    before, after = energy_joules(story(), gpu, at), energy_joules(story(), gpu, at + step)
    # Between idle and full power, to the accuracy of a float that has grown large.
    assert 100 * step - 0.01 <= after - before <= 900 * step + 0.01
