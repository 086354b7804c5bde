# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The licence of a virtual GPU, from the driver to the page; through the real bindings."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from tests.fake_nvml import FakeGpu, FakeLicensableFeature, FakeNode, h100
from tests.gpu.conftest import FakeClock, snapshot_of, view_of
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog.dcgm import Spelling
from veo_exporter.gpu.bindings import Bindings
from veo_exporter.gpu.capability import capabilities_missing
from veo_exporter.gpu.dcgm import DcgmSource
from veo_exporter.gpu.families import GpuSource
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Failure, Raw, Reading, WhyNot
from veo_exporter.gpu.session import find_gpu, open_session
from veo_exporter.gpu.vgpu_license import VgpuLicense, ask_vgpu_license

FUNCTION = "nvmlDeviceGetGridLicensableFeatures"
OURS = "veo_gpu_vgpu_license_active"
DCGMS = "DCGM_FI_DEV_VGPU_LICENSE_STATUS"
VGPU, RTX, COMPUTE = 1, 2, 4
FUNCTION_NOT_FOUND, NOT_SUPPORTED, NO_PERMISSION, UNKNOWN = 13, 3, 4, 999

Read = Callable[[FakeGpu], Reading]


def bare_metal() -> FakeGpu:
    return h100(0)


def guest(*features: tuple[int, int]) -> FakeGpu:
    """The GPU of a virtual machine, with features by code and state."""
    return h100(0).set(
        vgpu_license_supported=1,
        licensable_features=[FakeLicensableFeature(*feature) for feature in features],
    )


@pytest.fixture
def read(tmp_path: Path, clock: FakeClock) -> Read:
    """Reads the static group of a node's only GPU."""

    def read_static(gpu: FakeGpu) -> Reading:
        FakeNode(tmp_path / "scenario", gpus=[gpu]).attach()
        line = Line(Bindings(pynvml), clock)
        assert open_session(line).code == 0
        device = find_gpu(line, 0).device
        assert device is not None
        return read_gpu(line, device, Cadence.STATIC, (), clock)

    return read_static


def shown(reading: Reading) -> dict[str, float]:
    """What the page says of licences, under our name and DCGM's."""
    snapshot = snapshot_of(view_of(readings=(reading,)))
    now = reading.finished_monotonic_seconds
    sources = (
        GpuSource(lambda: snapshot),
        DcgmSource(
            lambda: snapshot,
            spelling=Spelling(),
            hostname="render-7",
            last_xid=lambda _: None,
            link_bytes_per_second=lambda _: None,
        ),
    )
    return {
        family.spec.name: value
        for source in sources
        for family in source.families(now)
        for _, value in family.rows
        if family.spec.name in (OURS, DCGMS)
    }


@pytest.mark.parametrize(
    ("gpu", "wanted"),
    [
        (guest((VGPU, 1)), {OURS: 1, DCGMS: 1}),
        # One of several is enough, in whatever place it stands.
        (guest((VGPU, 0), (RTX, 0), (COMPUTE, 1)), {OURS: 1, DCGMS: 1}),
        # The header says "non-zero", not 1.
        (guest((VGPU, 5)), {OURS: 1, DCGMS: 1}),
        (guest((VGPU, 0)), {OURS: 0, DCGMS: 0}),
        (guest((VGPU, 0), (RTX, 0), (COMPUTE, 0)), {OURS: 0, DCGMS: 0}),
        (guest(), {OURS: 0, DCGMS: 0}),
        (bare_metal(), {DCGMS: 0}),
    ],
)
def test_what_the_page_says(read: Read, gpu: FakeGpu, wanted: dict[str, float]) -> None:
    reading = read(gpu)
    assert shown(reading) == wanted
    assert Raw.VGPU_LICENSE not in reading.missing
    assert (reading.failures, reading.code) == ((), 0)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (NOT_SUPPORTED, WhyNot.NOT_SUPPORTED),
        (FUNCTION_NOT_FOUND, WhyNot.NOT_SUPPORTED),
        (NO_PERMISSION, WhyNot.NOT_PERMITTED),
    ],
)
def test_where_it_cannot_be_told_it_is_absent_and_said_to_be(
    read: Read, code: int, why: WhyNot
) -> None:
    reading = read(guest((VGPU, 1)).fail(FUNCTION, code))
    assert shown(reading) == {}
    assert capabilities_missing([reading.missing])[OURS] is why
    assert (reading.failures, reading.code) == ((), 0)


def test_a_call_that_fails_costs_this_value_alone(read: Read) -> None:
    reading = read(guest((VGPU, 1)).fail(FUNCTION, UNKNOWN))
    assert shown(reading) == {}
    assert OURS not in capabilities_missing([reading.missing])
    assert reading.failures == (Failure(function=FUNCTION, code=UNKNOWN),)
    assert reading.values[board.POWER_LIMIT_DEFAULT] == 700
    assert reading.code == 0


@pytest.mark.parametrize("unknown_forms", [("_v4",), ("_v4", "_v3")])
@pytest.mark.parametrize("state", [0, 1])
def test_older_drivers_are_asked_in_their_form(
    tmp_path: Path, clock: FakeClock, unknown_forms: tuple[str, ...], state: int
) -> None:
    # The size of a feature differs between forms: a second one is found in its place by the right one alone.
    gpu = guest((VGPU, 0), (RTX, state))
    for form in unknown_forms:
        gpu.fail(FUNCTION + form, FUNCTION_NOT_FOUND)
    library = FakeNode(tmp_path / "scenario", gpus=[gpu]).attach()
    line = Line(Bindings(pynvml), clock)
    assert open_session(line).code == 0
    device = find_gpu(line, 0).device
    assert device is not None
    wanted = VgpuLicense.ACTIVE if state else VgpuLicense.MISSING
    before = library.calls(FUNCTION)
    assert ask_vgpu_license(line, device.handle) == (wanted,)
    assert library.calls(FUNCTION) - before == len(unknown_forms) + 1
    # To whoever watches it is one call.
    assert line.tallies[FUNCTION].calls == 1


def test_a_newer_form_that_fails_is_no_reason_to_ask_in_an_older_one(read: Read) -> None:
    reading = read(guest((VGPU, 1)).fail(FUNCTION + "_v4", UNKNOWN))
    assert shown(reading) == {}
    assert reading.failures == (Failure(function=FUNCTION, code=UNKNOWN),)


def test_more_features_than_there_is_room_for_are_not_read(clock: FakeClock) -> None:
    told = pynvml.c_nvmlGridLicensableFeatures_v4_t()
    told.isGridLicenseSupported = 1
    told.licensableFeaturesCount = 77
    nvml = SimpleNamespace(
        NVMLError=pynvml.NVMLError, nvmlDeviceGetGridLicensableFeatures=lambda _: told
    )
    assert ask_vgpu_license(Line(nvml, clock), object()) == (VgpuLicense.MISSING,)
