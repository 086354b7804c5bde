# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Advice on frame rates end to end: the real daemon on the fake NVML, as metrics and by the API."""

import json
from typing import Any

from tests.conftest import StartDaemon
from tests.daemon import Daemon, Page
from tests.fake_nvml import FakeNode

RATE = "veo_gpu_recommended_frame_rate_hertz"
PRESSURE = "veo_gpu_memory_pressure"
RESERVED = 500 * 1024**2
TOTAL = 100 * 1024**3 + RESERVED
GIB = 1024**3


def use(node: FakeNode, **used_gib: float) -> None:
    with node.changes():
        for number, used in used_gib.items():
            node.gpus[int(number.removeprefix("gpu"))].set(
                memory_total_bytes=TOTAL,
                memory_reserved_bytes=RESERVED,
                memory_used_bytes=int(used * GIB),
            )


def rates(page: Page) -> dict[str, float]:
    return {
        dict(labels)["gpu"]: value for (name, labels), value in page.series.items() if name == RATE
    }


def document(daemon: Daemon) -> Any:
    status, body = daemon.get("/api/v1/advice")
    assert status == 200
    return json.loads(body)


def test_the_ladder_follows_each_gpus_memory(node: FakeNode, start: StartDaemon) -> None:
    use(node, gpu0=10, gpu1=70, gpu2=90, gpu3=99)
    daemon = start()
    page = daemon.wait_for(lambda page: len(rates(page)) == 8)
    assert {gpu: rates(page)[gpu] for gpu in "0123"} == {"0": 120, "1": 60, "2": 30, "3": 30}
    page = daemon.wait_for(lambda page: page.value(PRESSURE, gpu="3") == 1)
    assert [page.value(PRESSURE, gpu=gpu) for gpu in "012"] == [0, 0, 0]

    said = document(daemon)
    assert (said["schema"], said["simulated"]) == ("veo.gpu.advice/1", False)
    assert said["thresholds"]["sweep_seconds"] == 1
    full = said["gpus"][3]
    assert (full["gpu"], full["uuid"], full["state"]) == (3, node.gpus[3].uuid, "ok")
    assert (full["recommended_frame_rate_hertz"], full["memory_pressure"]) == (30, True)
    assert (full["memory_used_ratio"], full["memory_free_bytes"]) == (0.99, GIB)
    assert full["why"] == "99 % of memory is used: above 85 %"
    assert full["memory_pressure_since_timestamp_seconds"] >= full["since_timestamp_seconds"]

    use(node, gpu0=70, gpu3=10)
    page = daemon.wait_for(lambda page: rates(page)["0"] == 60 and rates(page)["3"] == 120)
    assert page.value(PRESSURE, gpu="3") == 0


def test_a_gpu_that_is_lost_has_no_advice(node: FakeNode, start: StartDaemon) -> None:
    daemon = start()
    daemon.wait_for(lambda page: len(rates(page)) == 8)
    node.gpus[5].lose()
    page = daemon.wait_for(lambda page: page.states().get("5") == "lost")
    assert set(rates(page)) == set("0123467")
    assert page.value(PRESSURE, gpu="5") is None
    row = document(daemon)["gpus"][5]
    assert (row["state"], row["recommended_frame_rate_hertz"]) == ("lost", None)
    assert row["why"] == "its memory is not read: it is lost"
    node.gpus[5].recover()
    daemon.wait_for(lambda page: "5" in rates(page))


def test_thresholds_are_settings(node: FakeNode, start: StartDaemon) -> None:
    use(node, gpu0=50)
    daemon = start("--advice.medium-from=0.2", "--advice.low-above=0.4", "--advice.sweeps=4")
    assert daemon.wait_for(lambda page: "0" in rates(page)).value(RATE, gpu="0") == 30
    assert document(daemon)["thresholds"]["low_above"] == 0.4
