# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Pods as metric families: what is shown, for how long, and what is left out."""

from pathlib import Path

from structlog.testing import capture_logs

from tests.kubernetes.conftest import plan_for
from veo_exporter.catalog import kubernetes as catalog
from veo_exporter.exposition import Format, TextWriter
from veo_exporter.kubernetes import Allocation, Answer, Cause, GpuIdentity, PodSource

GPUS = (GpuIdentity(index=0, uuid="GPU-1", minor=0), GpuIdentity(index=1, uuid="GPU-2", minor=1))


class Desk:
    """A source whose inputs a test changes."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.plan = plan_for(Path("/kubelet.sock"))
        self.gpus: tuple[GpuIdentity, ...] = GPUS
        self.dropped: list[int] = []
        self.source = PodSource(
            lambda: self.answer, lambda: self.plan, lambda: self.gpus, self.dropped.append
        )

    def hold(self, *held: tuple[str, str], at: float = 1000.0) -> None:
        self.answer = Answer(
            sequence=self.answer.sequence + 1,
            asked=True,
            allocations=frozenset(Allocation("video", pod, "main", gpu) for pod, gpu in held),
            read_monotonic_seconds=at,
        )

    def page(self, now: float = 1000.0) -> list[str]:
        text = TextWriter(Format.TEXT).write(self.source.families(now))
        return [line for line in text.splitlines() if not line.startswith("#")]

    def rows(self, now: float = 1000.0) -> list[str]:
        return [line for line in self.page(now) if line.startswith(catalog.POD_INFO.name)]


def test_nothing_is_said_where_nobody_was_asked() -> None:
    desk = Desk()
    assert desk.page() == []
    assert desk.source.revision(1000) == desk.source.revision(2000)


def test_the_whole_of_it() -> None:
    desk = Desk()
    desk.hold(("b", "GPU-2::0"), ("a", "GPU-1"), ("nic", "mlx5_0"))
    with capture_logs() as lines:
        assert desk.page(1002.5) == [
            'veo_gpu_pod_info{container="main",gpu="0",mig_uuid="",namespace="video",pod="a",uuid="GPU-1"} 1.0',
            'veo_gpu_pod_info{container="main",gpu="1",mig_uuid="",namespace="video",pod="b",uuid="GPU-2"} 1.0',
            "veo_gpu_pod_devices_unresolved 1.0",
            "veo_gpu_pod_mapping_age_seconds 2.5",
            'veo_gpu_pod_mapping_errors_total{reason="unreachable"} 0.0',
            'veo_gpu_pod_mapping_errors_total{reason="denied"} 0.0',
            'veo_gpu_pod_mapping_errors_total{reason="timeout"} 0.0',
            'veo_gpu_pod_mapping_errors_total{reason="refused"} 0.0',
            'veo_gpu_pod_mapping_errors_total{reason="garbled"} 0.0',
            'veo_gpu_pod_mapping_errors_total{reason="too_large"} 0.0',
        ]
        desk.page(1003.5)
    assert [line["devices"] for line in lines] == [("mlx5_0",)], "told once"


def test_before_the_first_answer_there_are_errors_alone() -> None:
    desk = Desk()
    desk.answer = Answer(sequence=1, asked=True, errors={Cause.DENIED: 2})
    page = desk.page()
    assert len(page) == len(Cause)
    assert 'veo_gpu_pod_mapping_errors_total{reason="denied"} 2.0' in page


def test_a_row_goes_with_its_pod() -> None:
    desk = Desk()
    desk.hold(("a", "GPU-1"), ("b", "GPU-2"))
    assert len(desk.rows()) == 2
    desk.hold(("b", "GPU-2"))
    assert [line.count('pod="b"') for line in desk.rows()] == [1]
    desk.hold()
    assert desk.rows() == []


def test_the_last_mapping_is_shown_until_it_is_too_old() -> None:
    desk = Desk()
    desk.hold(("a", "GPU-1"))
    assert len(desk.rows(1000 + 3600)) == 1
    late = desk.page(1000 + 3601)
    assert not [line for line in late if "pod_info" in line or "unresolved" in line]
    assert "veo_gpu_pod_mapping_age_seconds 3601.0" in late
    # The kubelet is back with the same answer.
    desk.hold(("a", "GPU-1"), at=5000)
    assert len(desk.rows(5001)) == 1


def test_the_index_is_the_gpus_present_one() -> None:
    desk = Desk()
    desk.hold(("a", "GPU-1"))
    before = desk.source.revision(1000)
    assert 'gpu="0"' in desk.rows()[0]
    desk.gpus = (GpuIdentity(index=7, uuid="GPU-1", minor=0),)
    assert desk.source.revision(1000) != before
    assert 'gpu="7"' in desk.rows()[0]
    desk.gpus = ()
    assert 'gpu=""' in desk.rows()[0]
    assert 'uuid="GPU-1"' in desk.rows()[0]


def test_rows_beyond_the_bound_are_counted_once_for_each_mapping() -> None:
    desk = Desk()
    desk.plan = plan_for(Path("/kubelet.sock"), max_rows=2)
    desk.hold(*((pod, "GPU-1") for pod in "abcde"))
    assert len(desk.rows()) == 2
    assert len(desk.rows(1001)) == 2
    assert desk.dropped == [3]
    desk.hold(("a", "GPU-1"), ("c", "GPU-1"))
    assert len(desk.rows()) == 2
    assert desk.dropped == [3]


def test_the_revision_changes_with_what_is_said() -> None:
    desk = Desk()
    desk.hold(("a", "GPU-1"))
    first = desk.source.revision(1000.1)
    assert desk.source.revision(1000.9) == first, "the age is told once a second"
    assert desk.source.revision(1001.0) != first
    desk.hold(("a", "GPU-1"))
    assert desk.source.revision(1000.1) != first
