# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What happened between two samples of ours, by the whole program."""

import time

from tests.conftest import StartDaemon
from tests.daemon import Page
from tests.fake_nvml import FakeNode, FakeSamples

UTILIZATION = "veo_gpu_utilization_ratio"
PEAK = "veo_gpu_utilization_peak_ratio"
BUSY = "veo_gpu_busy_seconds_total"
COUNT = "veo_gpu_utilization_sample_ratio_count"
BUCKET = "veo_gpu_utilization_sample_ratio_bucket"
ONCE_A_SECOND = "--gpu.fast-interval=1s"


def idle_with_short_peaks(node: FakeNode) -> None:
    """At 100 % for 50 ms of each half second; whoever asks for utilization is told 0."""
    with node.changes():
        for gpu in node.gpus:
            gpu.set(
                utilization_gpu_percent=0,
                samples=[FakeSamples(1, [0.0] * 9 + [100.0], 50_000, 100, "double")],
            )


def test_a_peak_between_two_samples(node: FakeNode, start: StartDaemon) -> None:
    idle_with_short_peaks(node)
    page = start(ONCE_A_SECOND).wait_for(lambda page: (page.value(COUNT, gpu="0") or 0) >= 4000)
    assert page.value(UTILIZATION, gpu="0") == 0
    assert page.value(PEAK, gpu="0") == 1
    watched = page.value(COUNT, gpu="0") or 0
    above = watched - (page.value(BUCKET, gpu="0", le="0.95") or 0)
    # 50 ms of each half second, and the first and the last are not whole.
    assert 0.08 < above / watched < 0.12
    busy = page.value(BUSY, gpu="0") or 0
    assert abs(1000 * busy - above) <= 1.001
    assert page.value("veo_gpu_sample_gaps_total", gpu="0", metric=UTILIZATION) == 0


def test_a_plain_sampler_does_not_see_it(node: FakeNode, start: StartDaemon) -> None:
    idle_with_short_peaks(node)
    page = start(ONCE_A_SECOND, "--gpu.driver-samples=false").wait_for(
        lambda page: (page.value(COUNT, gpu="0") or 0) >= 3000
    )
    assert (page.value(PEAK, gpu="0"), page.value(BUSY, gpu="0")) == (0, 0)
    # Nothing was asked of a buffer.
    assert page.values("veo_gpu_sample_gaps_total") == []
    assert page.value("veo_gpu_nvml_calls_total", function="nvmlDeviceGetSamples") is None


def test_fast_samples_of_our_own_need_no_buffer(node: FakeNode, start: StartDaemon) -> None:
    daemon = start()
    page = daemon.wait_for(lambda page: (page.value(COUNT, gpu="0") or 0) >= 1000)
    # Of 97 % that stand still, while the buffer would have other values.
    assert page.value(PEAK, gpu="0") == 0.97
    assert page.value("veo_gpu_sample_gaps_total", gpu="0", metric=UTILIZATION) is None


def test_busy_seconds_go_on_by_uuid_when_the_driver_is_loaded_anew(
    node: FakeNode, start: StartDaemon
) -> None:
    daemon = start(ONCE_A_SECOND)
    uuid = node.gpus[0].uuid

    def busy(page: Page) -> float:
        return page.value(BUSY, uuid=uuid) or 0.0

    before = busy(daemon.wait_for(lambda page: busy(page) >= 1.5))
    node.unload_driver()
    daemon.wait_for(lambda page: page.values(BUSY) == [])
    node.load_driver(order=[7, 6, 5, 4, 3, 2, 1, 0])
    page = daemon.wait_for(lambda page: page.value(BUSY, gpu="7", uuid=uuid) is not None)
    assert busy(page) >= before
    page = daemon.wait_for(lambda page: busy(page) >= before + 1.5)
    # The buffer, read anew as a whole, reaches 16 s back: it is not counted a second time.
    watched = (page.value(COUNT, uuid=uuid) or 0) / 1000
    assert busy(page) <= watched
    assert page.value("veo_gpu_sample_gaps_total", uuid=uuid, metric=UTILIZATION) == 0


def test_a_buffer_whose_call_hangs_is_read_anew(node: FakeNode, start: StartDaemon) -> None:
    daemon = start(ONCE_A_SECOND)
    node.gpus[1].hang("nvmlDeviceGetSamples")
    page = daemon.wait_for(lambda page: page.states().get("1") == "hung")
    daemon.wait_for(
        lambda page: (
            page.value(
                "veo_gpu_nvml_call_in_flight_seconds", gpu="1", function="nvmlDeviceGetSamples"
            )
            is not None
            and page.states().get("0") == "ok"
        )
    )
    before = page.value(BUSY, gpu="1") or 0.0
    node.gpus[1].release("nvmlDeviceGetSamples")
    page = daemon.wait_for(lambda page: (page.value(BUSY, gpu="1") or 0.0) >= before + 1.5)
    elapsed = time.monotonic() - daemon.started_monotonic
    watched = (page.value(COUNT, gpu="1") or 0.0) / 1000
    # What the buffer had kept meanwhile is counted, and none of it twice.
    assert watched <= elapsed
    assert (page.value(BUSY, gpu="1") or 0.0) <= watched
