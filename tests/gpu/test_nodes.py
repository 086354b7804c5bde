# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Device nodes that explain why NVML gives no reason."""

import errno
from pathlib import Path

import pytest

from tests.gpu.conftest import EVERY, ScriptedNvml, wait_until
from tests.gpu.running import ALL_OK, UUIDS, Running, Start
from veo_exporter.gpu.nodes import CONTROL, Nodes, look_at_nodes, why_restart
from veo_exporter.gpu.readiness import withdrawn_groups
from veo_exporter.gpu.readings import State


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """The nodes of three GPUs, and what else there is."""
    for name in (CONTROL, "nvidia0", "nvidia1", "nvidia2", "nvidia-uvm", "nvidia-modeset", "null"):
        (tmp_path / name).touch()
    return tmp_path


ALL = frozenset({CONTROL, "nvidia0", "nvidia1", "nvidia2"})


def test_nodes_that_are_there(dev: Path) -> None:
    assert look_at_nodes(dev) == Nodes(dev / CONTROL, ALL)
    assert why_restart(ALL, look_at_nodes(dev)) == ""


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES])
def test_a_node_that_the_system_refuses(dev: Path, number: int) -> None:
    def refuse(path: Path, flags: int) -> int:
        assert path == dev / CONTROL
        raise OSError(number, "refused")

    nodes = look_at_nodes(dev, refuse)
    assert nodes.refused
    assert f"no longer lets us open {dev}/nvidiactl" in why_restart(ALL, nodes)
    assert "only a restart of the exporter" in why_restart(ALL, nodes)


def test_a_node_whose_driver_is_away_is_not_refused(dev: Path) -> None:
    def absent(path: Path, flags: int) -> int:
        raise OSError(errno.ENXIO, "No such device or address")

    assert not look_at_nodes(dev, absent).refused


def test_nodes_that_vanished_are_named(dev: Path) -> None:
    before = look_at_nodes(dev).present
    (dev / "nvidia1").unlink()
    assert f"the device nodes are gone: {dev}/nvidia1;" in why_restart(before, look_at_nodes(dev))
    # What was never there has not vanished.
    assert why_restart(before - {"nvidia1"}, look_at_nodes(dev)) == ""


def test_the_control_node_is_wanted_always(tmp_path: Path) -> None:
    assert f"{tmp_path}/nvidiactl" in why_restart(frozenset(), look_at_nodes(tmp_path))


def test_where_the_driver_is_reached_by_another_way_none_is_missed(tmp_path: Path) -> None:
    (tmp_path / "dxg").touch()
    assert why_restart(frozenset(), look_at_nodes(tmp_path)) == ""
    assert why_restart(frozenset(), look_at_nodes(tmp_path / "absent")) == ""


def withdrawn(running: Running) -> str:
    snapshot = running.sampler.latest
    return "\n".join(withdrawn_groups(snapshot, snapshot.taken_monotonic_seconds))


def know_nothing(nvml: ScriptedNvml) -> None:
    for uuid in UUIDS:
        nvml.codes[EVERY, uuid] = 999


def test_a_container_that_lost_its_nodes_says_that_only_a_restart_helps(
    start: Start, dev: Path
) -> None:
    looks: list[Nodes] = []

    def look() -> Nodes:
        looks.append(look_at_nodes(dev))
        return looks[-1]

    running = start(look_at_nodes=look)
    running.wait_for(ALL_OK)
    wait_until(lambda: looks)
    for name in ALL:
        (dev / name).unlink()
    know_nothing(running.nvml)
    wait_until(lambda: "only a restart of the exporter" in withdrawn(running))
    assert "nvidia0" in withdrawn(running)
    # The states of the GPUs are told beside it.
    assert "GPU 0 (GPU-1): unknown" in withdrawn(running)
    # What is well again takes the sentence with it.
    running.nvml.codes.clear()
    running.wait_for(ALL_OK)
    wait_until(lambda: "restart" not in withdrawn(running))


def test_without_vanished_nodes_nobody_speaks_of_a_restart(start: Start, dev: Path) -> None:
    looks: list[Nodes] = []

    def look() -> Nodes:
        looks.append(look_at_nodes(dev))
        return looks[-1]

    running = start(look_at_nodes=look)
    running.wait_for(ALL_OK)
    wait_until(lambda: looks)
    know_nothing(running.nvml)
    running.wait_for(dict.fromkeys(UUIDS, State.UNKNOWN))
    seen = len(looks)
    wait_until(lambda: len(looks) > seen + 1)
    running.wait_for_snapshots(1)
    assert "restart" not in withdrawn(running)


@pytest.mark.parametrize("vanished", [True, False])
def test_a_session_that_cannot_be_opened(start: Start, dev: Path, vanished: bool) -> None:
    if vanished:
        (dev / CONTROL).unlink()
    running = start(
        look_at_nodes=lambda: look_at_nodes(dev),
        prepare=lambda nvml: nvml.codes.update({("nvmlInit", ""): 999}),
    )
    wait_until(lambda: running.nvml.count_calls("nvmlInit") > 2)
    running.wait_for_snapshots(1)
    assert ("only a restart of the exporter" in withdrawn(running)) is vanished
    assert ("see nvidia-smi and the kernel log" in withdrawn(running)) is not vanished
