# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Xids that stories bring: which, when, and that NVML's events tell of them."""

import pytest

from tests.simulate.nodes import begun, changed
from veo_exporter.gpu.event_set import EventSet, XidEvent
from veo_exporter.gpu.nvml import NvmlError
from veo_exporter.simulate import load_scenario
from veo_exporter.simulate.xids import Xid, xids_between


def test_each_story_brings_its_own() -> None:
    assert xids_between(load_scenario("gpu-lost"), 0, 599) == [Xid(60, 3, 79)]
    assert xids_between(load_scenario("gpu-hung"), 0, 599) == [Xid(60, 3, 119), Xid(180, 5, 119)]
    lost = xids_between(load_scenario("node-lost"), 0, 599)
    assert lost == [Xid(60, gpu, 79) for gpu in range(8)]
    for quiet in ("busy", "driver-reload", "mig"):
        assert xids_between(load_scenario(quiet), 0, 1e4) == []


def test_a_story_that_starts_over_brings_it_again() -> None:
    scenario = load_scenario("gpu-lost")
    # Of ten minutes.
    assert [xid.at_seconds for xid in xids_between(scenario, 0, 1800)] == [60, 660, 1260]
    assert xids_between(scenario, 660, 700) == []
    assert [xid.at_seconds for xid in xids_between(scenario, 659.9, 660)] == [660]


def test_a_story_that_is_told_once() -> None:
    happenings = [
        {"at": "10s", "what": "require_reset", "gpus": [1]},
        {"at": "20s", "what": "hang", "gpus": [2], "function": "nvmlDeviceGetName"},
        {"at": "30s", "what": "fail", "gpus": [2], "code": 999},
    ]
    scenario = changed("busy", happenings=happenings, repeat_every=None)
    assert xids_between(scenario, 0, 1e6) == [Xid(10, 1, 95)]


def test_a_set_tells_once_of_each_gpu_that_is_in_it() -> None:
    node = begun("node-lost")
    events = EventSet(node.line)
    events.create()
    for gpu in (3, 5):
        events.register(gpu)
    assert events.wait(0) is None
    node.at(61)
    assert events.wait(0) == XidEvent(handle=3, code=79)
    assert events.wait(0) == XidEvent(handle=5, code=79)
    assert events.wait(0) is None
    events.free()


def test_what_was_before_is_not_told() -> None:
    node = begun("gpu-hung")
    events = EventSet(node.line)
    events.create()
    events.register(5)
    node.at(179)
    assert events.wait(0) is None
    # Hung by then.
    node.at(302)
    late = EventSet(node.line)
    late.create()
    late.register(5)
    assert late.wait(0) is None
    assert events.wait(0) == XidEvent(handle=5, code=119)


def test_a_lost_gpu_cannot_be_put_in() -> None:
    node = begun("gpu-lost")
    node.at(61)
    events = EventSet(node.line)
    events.create()
    with pytest.raises(NvmlError, match="GPU_IS_LOST"):
        events.register(3)


def test_the_set_ends_with_the_driver() -> None:
    node = begun("driver-reload")
    events = EventSet(node.line)
    events.create()
    events.register(0)
    node.at(61)
    with pytest.raises(NvmlError, match="UNINITIALIZED"):
        events.wait(0)
    events.free()
    assert not events.open
