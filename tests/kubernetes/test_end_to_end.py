# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""From a kubelet's socket to the scraped page, in a process of its own, with the fake NVML's GPUs."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartDaemon
from tests.daemon import Page, wait_until
from tests.fake_nvml import FakeMigDevice, FakeNode
from tests.kubernetes.kubelet import FakeKubelet, Held, listening

INFO = "veo_gpu_pod_info"
AGE = "veo_gpu_pod_mapping_age_seconds"
ERRORS = "veo_gpu_pod_mapping_errors_total"
QUICK = ("--kubernetes.interval=1s", "--kubernetes.deadline=20s")
"""The kubelet is a thread of this process, which a busy machine may keep waiting."""


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[FakeKubelet]:
    kubelet = FakeKubelet(tmp_path / "pod-resources/kubelet.sock")
    yield kubelet
    kubelet.stop()


def asking(kubelet: FakeKubelet) -> list[str]:
    return [*QUICK, f"--kubernetes.kubelet-socket={kubelet.path}"]


def pods(page: Page) -> set[tuple[str, str, str, str]]:
    """Index, pod, namespace and container of each row."""
    rows = [dict(labels) for name, labels in page.series if name == INFO]
    return {(row["gpu"], row["pod"], row["namespace"], row["container"]) for row in rows}


def gpus_are_well(page: Page) -> bool:
    return (
        list(page.states().values()) == ["ok"] * 8 and len(page.values("veo_gpu_power_watts")) == 8
    )


def test_rows_come_and_change_and_go_with_their_pods(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    # Device nodes are numbered otherwise than NVML counts.
    with node.changes():
        node.gpus[2].set(minor_number=12)
    first, second, third = (gpu.uuid for gpu in node.gpus[:3])
    kubelet.holds(
        Held("render-0", {"nvidia.com/gpu": [first, second]}),
        Held("web-0", {"example.com/nic": ["0"]}),
    ).start()
    running = start(*asking(kubelet))
    page = running.wait_for(
        lambda page: (
            pods(page) == {("0", "render-0", "video", "main"), ("1", "render-0", "video", "main")}
        )
    )
    assert page.value(INFO, gpu="0", uuid=first, pod="render-0") == 1
    assert page.value(AGE) is not None
    assert page.value("veo_gpu_pod_devices_unresolved") == 0

    kubelet.holds(
        Held("render-0", {"nvidia.com/gpu": [f"{first}::0"]}),
        Held("render-1", {"nvidia.com/gpu": [f"{first}::1"]}, container="sampler"),
        Held("upscale-0", {"nvidia.com/gpu": ["nvidia12"]}, namespace="staging"),
    )
    page = running.wait_for(
        lambda page: (
            pods(page)
            == {
                ("0", "render-0", "video", "main"),
                ("0", "render-1", "video", "sampler"),
                ("2", "upscale-0", "staging", "main"),
            }
        )
    )
    assert page.value(INFO, pod="upscale-0", uuid=third) == 1

    kubelet.holds()
    running.wait_for(lambda page: pods(page) == set())
    assert gpus_are_well(running.wait_for(gpus_are_well))
    assert sum(page.values(ERRORS)) == 0


def test_a_part_of_a_gpu_is_named_with_the_gpu_that_it_is_of(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    # UUIDs of MIG devices do not say whose they are; the kubelet's other form names the GPU instance.
    part = "MIG-5d7e3a52-6a43-5d47-9c0e-6e1c1de5b4d6"
    other = "MIG-0a2b0c55-1f0e-5a3b-8d2e-2b1f0c9d8e7f"
    with node.changes():
        node.gpus[4].set(
            mig_mode=1,
            mig_devices=[
                FakeMigDevice(0, part, 3, 0, 10 << 30, 1 << 30),
                FakeMigDevice(1, other, 5, 0, 20 << 30, 1 << 30),
            ],
            minor_number=4,
        )
    kubelet.holds(
        Held("render-0", {"nvidia.com/mig-1g.10gb": [part]}),
        Held("render-1", {"nvidia.com/mig-2g.20gb": ["nvidia4/gi5"]}),
    ).start()
    running = start(*asking(kubelet))
    uuid = node.gpus[4].uuid
    running.wait_for(
        lambda page: (
            page.value(INFO, gpu="4", uuid=uuid, mig_uuid=part, pod="render-0") == 1
            and page.value(INFO, gpu="4", uuid=uuid, mig_uuid=other, pod="render-1") == 1
        )
    )


def test_a_kubelet_that_dies_costs_nothing_and_is_found_again(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    kubelet.holds(Held("render-0", {"nvidia.com/gpu": [node.gpus[0].uuid]})).start()
    running = start(*asking(kubelet))
    running.wait_for(lambda page: len(pods(page)) == 1 and gpus_are_well(page))

    kubelet.stop()
    page = running.wait_for(lambda page: (page.value(ERRORS, reason="unreachable") or 0) >= 1)
    before = page.value(AGE)
    assert before is not None
    page = running.wait_for(lambda page: (page.value(AGE) or 0) > before + 1)
    assert pods(page) == {("0", "render-0", "video", "main")}
    node.gpus[0].set(power_usage_milliwatts=333_000)
    page = running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="0") == 333)
    assert gpus_are_well(page)
    assert running.get("/-/ready")[0] == 200

    # A kubelet that was restarted has a new socket under the old name.
    kubelet.holds(Held("render-1", {"nvidia.com/gpu": [node.gpus[0].uuid]})).start()
    running.wait_for(
        lambda page: (
            pods(page) == {("0", "render-1", "video", "main")}
            and page.values(AGE) != []
            and page.values(AGE)[0] < 5
        )
    )


def test_a_kubelet_that_hangs_keeps_neither_the_page_nor_the_end(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    kubelet.holds(Held("render-0", {"nvidia.com/gpu": [node.gpus[0].uuid]})).start()
    running = start(*asking(kubelet))
    running.wait_for(lambda page: len(pods(page)) == 1 and gpus_are_well(page))
    calls = kubelet.calls
    kubelet.go_on.clear()
    wait_until(lambda: kubelet.calls > calls)

    began = time.monotonic()
    page = running.scrape()
    # Well within the twenty seconds that the kubelet may take.
    assert time.monotonic() - began < 10
    assert len(pods(page)) == 1
    assert gpus_are_well(page)
    assert running.end() < 2
    assert running.process.returncode == 0


def test_a_kubelet_that_answers_garbage(node: FakeNode, start: StartDaemon, tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        # Taken first: a connection that is closed with something unread is reset.
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    path = tmp_path / "kubelet.sock"
    with listening(path, serve):
        running = start(*QUICK, f"--kubernetes.kubelet-socket={path}")
        page = running.wait_for(
            lambda page: (page.value(ERRORS, reason="garbled") or 0) >= 1 and gpus_are_well(page)
        )
    assert page.values(INFO) == []
    assert page.value(AGE) is None
    (line,) = running.told("the kubelet does not say which pods have GPUs; the last mapping stays")
    assert "no HTTP/2" in line["fault"]


def test_a_socket_that_appears_later_is_found(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    running = start(*asking(kubelet))
    page = running.wait_for(gpus_are_well)
    assert not [name for name, _ in page.series if "pod" in name]
    kubelet.holds(Held("render-0", {"nvidia.com/gpu": [node.gpus[7].uuid]})).start()
    running.wait_for(lambda page: pods(page) == {("7", "render-0", "video", "main")})


def test_it_is_not_asked_when_it_is_off(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    kubelet.start()
    running = start(*asking(kubelet), "--kubernetes.enabled=off")
    page = running.wait_for(gpus_are_well)
    assert not [name for name, _ in page.series if "pod" in name]
    assert kubelet.calls == 0


def test_a_gpu_that_is_lost_still_says_whose_it_is(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet
) -> None:
    kubelet.holds(Held("render-0", {"nvidia.com/gpu": [node.gpus[3].uuid]})).start()
    running = start(*asking(kubelet))
    running.wait_for(lambda page: len(pods(page)) == 1 and gpus_are_well(page))
    node.gpus[3].lose()
    page = running.wait_for(lambda page: page.states()["3"] == "lost")
    assert pods(page) == {("3", "render-0", "video", "main")}


def test_more_pods_than_rows(node: FakeNode, start: StartDaemon, kubelet: FakeKubelet) -> None:
    kubelet.holds(
        *(Held(f"render-{n}", {"nvidia.com/gpu": [f"{node.gpus[0].uuid}::{n}"]}) for n in range(30))
    ).start()
    running = start(*asking(kubelet), "--kubernetes.max-rows=20")
    page = running.wait_for(
        lambda page: (
            page.value("veo_exporter_dropped_total", kind="gpu_pod_row", reason="too_many") == 10
        )
    )
    assert len(page.values(INFO)) == 20


def test_settings_are_taken_while_it_runs_but_for_being_on_at_all(
    node: FakeNode, start: StartDaemon, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    file = tmp_path / "veo.yaml"
    file.write_text("kubernetes: {resource_prefixes: [nvidia.com/]}")
    kubelet.holds(
        Held("render-0", {"nvidia.com/gpu": [node.gpus[0].uuid]}),
        Held("render-1", {"example.com/gpu": [node.gpus[1].uuid]}),
    ).start()
    running = start(*asking(kubelet), f"--config.file={file}")
    running.wait_for(lambda page: pods(page) == {("0", "render-0", "video", "main")})

    file.write_text("kubernetes: {resource_prefixes: [example.com/]}")
    running.process.send_signal(signal.SIGHUP)
    running.wait_for(lambda page: pods(page) == {("1", "render-1", "video", "main")})

    file.write_text("kubernetes: {enabled: off}")
    running.process.send_signal(signal.SIGHUP)
    page = running.wait_for(
        lambda page: page.value("veo_exporter_config_last_reload_successful") == 0
    )
    assert pods(page) == {("1", "render-1", "video", "main")}
    (line,) = running.told("configuration refused, the old one stays")
    assert line["faults"] == [
        "kubernetes.enabled cannot change while the exporter runs: restart it"
    ]
