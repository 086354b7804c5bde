# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""doctor: what it finds on a well node and on ill ones, and what it says helps."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml import FakeNode
from veo_exporter.cli import doctor
from veo_exporter.cli.driver_finding import driver
from veo_exporter.cli.findings import Finding, Grade
from veo_exporter.cli.kernel_finding import kernel_log
from veo_exporter.config import Settings

PATIENCE_SECONDS = 60

PROGRAM = """
import sys
from veo_exporter.cli.doctor import doctor
flags = {("gpu", "sysfs_root"): sys.argv[1], ("web", "listen_address"): "127.0.0.1:0"}
sys.exit(doctor(None, flags, driver_patience_seconds=float(sys.argv[2])))
"""


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    node = FakeNode(tmp_path / "scenario", gpus=2)
    node.write_sysfs(tmp_path / "sys")
    return node


def run_doctor(
    tmp_path: Path, environment: Mapping[str, str], patience_seconds: float = 20
) -> tuple[int, list[str]]:
    """Exit status and lines of a doctor in a process of its own, as NVML wants it."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "sys"), str(patience_seconds)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert run.stderr == ""
    return run.returncode, run.stdout.splitlines()


def about(lines: list[str], what: str) -> list[str]:
    """The finding on something, and its remedy if it has one."""
    for place, line in enumerate(lines):
        if line[6:].startswith(f"{what}: "):
            remedy = [text for text in lines[place + 1 : place + 2] if text.startswith("      → ")]
            return [line, *remedy]
    raise AssertionError(f"nothing on {what} in {lines}")


def test_a_well_node(tmp_path: Path, node: FakeNode) -> None:
    status, lines = run_doctor(tmp_path, node.environment())
    first, second = node.gpus
    # The fake is an H100 SXM, which has no encoder and no fan.
    lacks = (
        r"; not supported: veo_gpu_encoder_utilization_ratio, veo_gpu_encoder_sessions, "
        r"veo_gpu_encoder_frame_rate_hertz and \d+ more \(veo_gpu_capability_missing\)"
    )
    assert lines[0] == "ok    NVML: driver 570.86.15, 2 GPUs"
    for line, index, gpu in ((lines[1], 0, first), (lines[2], 1, second)):
        named = (
            f"ok    GPU {index}: NVIDIA H100 80GB HBM3 ({gpu.uuid}, {gpu.pci_bus_id.lower()[-12:]})"
        )
        assert re.fullmatch(re.escape(named) + lacks, line)
    assert lines[3] == "ok    PCI bus: 2 GPUs bound to the nvidia driver"
    assert about(lines, "listen address") == ["ok    listen address: 127.0.0.1:0 is free"]
    assert status == (1 if any(line.startswith("FAIL") for line in lines) else 0)


def test_gpus_that_do_not_give_everything_or_nothing(tmp_path: Path, node: FakeNode) -> None:
    partly, denied = node.gpus
    with node.changes():
        partly.unsupport("nvmlDeviceGetEncoderUtilization").unsupport("nvmlDeviceGetPowerUsage")
        denied.fail("nvmlDeviceGetTotalEnergyConsumption", 4)
    _, lines = run_doctor(tmp_path, node.environment())
    [first] = about(lines, "GPU 0")
    assert first.startswith("ok    GPU 0: NVIDIA H100")
    assert "; not supported: veo_gpu_power_watts, veo_gpu_encoder_utilization_ratio, " in first
    second, remedy = about(lines, "GPU 1")
    assert second.startswith("warn  GPU 1: NVIDIA H100")
    assert remedy == "      → not permitted: veo_gpu_energy_joules_total"


def test_a_lost_gpu_and_one_that_wants_a_reset(tmp_path: Path, node: FakeNode) -> None:
    with node.changes():
        node.gpus[0].state = "lost"
        node.gpus[1].state = "reset_required"
    status, lines = run_doctor(tmp_path, node.environment())
    assert status == 1
    assert about(lines, "NVML") == ["ok    NVML: driver 570.86.15, 2 GPUs"]
    assert about(lines, "GPU 0") == [
        f"FAIL  GPU 0: nvmlDeviceGetHandleByIndex: GPU_IS_LOST (PCI {node.gpus[0].sysfs_address})",
        "      → see nvidia-smi and the kernel log for this GPU",
    ]
    assert about(lines, "GPU 1")[0].startswith("FAIL  GPU 1: nvml")
    assert "RESET_REQUIRED" in about(lines, "GPU 1")[0]


def test_a_hanging_gpu_hides_no_other(tmp_path: Path, node: FakeNode) -> None:
    node.gpus[0].hang("nvmlDeviceGetPowerUsage")
    status, lines = run_doctor(tmp_path, node.environment(), patience_seconds=2)
    assert status == 1
    assert about(lines, "NVML") == ["ok    NVML: driver 570.86.15, 2 GPUs"]
    hung, remedy = about(lines, "GPU 0")
    assert hung.startswith("FAIL  GPU 0: nvmlDeviceGetPowerUsage does not return (no name (GPU-")
    assert remedy == "      → see nvidia-smi and the kernel log for this GPU"
    assert about(lines, "GPU 1")[0].startswith("ok    GPU 1: NVIDIA H100")
    # It went on to everything else.
    assert about(lines, "unix socket") == [
        "ok    unix socket: not asked for (web.unix_socket); reload by SIGHUP alone"
    ]


def test_a_look_up_that_hangs_hides_no_other(tmp_path: Path, node: FakeNode) -> None:
    node.gpus[0].hang("nvmlDeviceGetHandleByIndex")
    _, lines = run_doctor(tmp_path, node.environment(), patience_seconds=2)
    address = node.gpus[0].sysfs_address
    assert about(lines, "GPU 0")[0] == (
        f"FAIL  GPU 0: nvmlDeviceGetHandleByIndex does not return (PCI {address})"
    )
    assert about(lines, "GPU 1")[0].startswith("ok    GPU 1: NVIDIA H100")


def test_a_driver_that_hangs(tmp_path: Path, node: FakeNode) -> None:
    node.hang("nvmlInit")
    status, lines = run_doctor(tmp_path, node.environment(), patience_seconds=2)
    assert status == 1
    assert about(lines, "NVML") == [
        "FAIL  NVML: nvmlInit does not return",
        (
            "      → the driver hangs: see the kernel log (dmesg) for NVRM lines; "
            "reset the GPU or reboot the node"
        ),
    ]


def test_gpus_that_nvml_does_not_list_are_named(tmp_path: Path, node: FakeNode) -> None:
    node.gpus[1].hide()
    status, lines = run_doctor(tmp_path, node.environment())
    assert status == 1
    assert about(lines, "GPU count") == [
        (
            "FAIL  GPU count: NVML lists 1 of the 2 GPUs on the PCI bus; "
            f"not listed: {node.gpus[1].sysfs_address}"
        ),
        "      → see the kernel log for these addresses: the driver did not start them, or hides them",
    ]


def test_a_driver_that_is_not_loaded(tmp_path: Path, node: FakeNode) -> None:
    node.unload_driver()
    status, lines = run_doctor(tmp_path, node.environment())
    assert status == 1
    assert about(lines, "NVML") == [
        "FAIL  NVML: DRIVER_NOT_LOADED",
        "      → the NVIDIA kernel driver is not loaded: load it (modprobe nvidia)",
    ]


def test_a_missing_library(tmp_path: Path) -> None:
    # An empty file where the loader looks first: as on a machine without the driver.
    (tmp_path / "libnvidia-ml.so.1").touch()
    (tmp_path / "sys").mkdir()
    status, lines = run_doctor(tmp_path, {"LD_LIBRARY_PATH": str(tmp_path)})
    assert status == 1
    assert about(lines, "NVML") == [
        "FAIL  NVML: LIBRARY_NOT_FOUND",
        (
            "      → libnvidia-ml.so.1 was not found: install the NVIDIA driver, or give the container "
            "the driver's libraries (NVIDIA_DRIVER_CAPABILITIES=utility)"
        ),
    ]
    assert about(lines, "PCI bus") == [
        f"warn  PCI bus: {tmp_path / 'sys'} cannot be read: veo_gpus_expected is absent",
        "      → mount the host's /sys read-only, set gpu.sysfs_root, or set gpu.expected_count",
    ]


def settings(**sections: Any) -> Settings:
    return Settings.model_validate(sections)


def only(look: Callable[[Settings], Iterator[Finding]], of: Settings) -> Finding:
    [finding] = look(of)
    return finding


def test_gpus_that_are_not_watched_are_not_looked_at() -> None:
    unwatched = settings(gpu={"enabled": False})
    assert only(driver, unwatched) == Finding(
        Grade.GOOD, "GPUs", "not watched (gpu.enabled is false)"
    )
    assert list(doctor.pci_bus(unwatched)) == []
    assert list(doctor.device_nodes(unwatched)) == []


@pytest.mark.parametrize(
    ("expected", "grade", "found", "remedy"),
    [
        (2, Grade.GOOD, "2 GPUs bound to the nvidia driver; gpu.expected_count says 2", ""),
        (
            8,
            Grade.WARNING,
            "2 GPUs bound to the nvidia driver; gpu.expected_count says 8",
            "a GPU has left the bus, or the setting is out of date",
        ),
    ],
)
def test_the_bus_is_held_against_what_is_expected(
    tmp_path: Path, node: FakeNode, expected: int, grade: Grade, found: str, remedy: str
) -> None:
    told = settings(gpu={"sysfs_root": str(tmp_path / "sys"), "expected_count": expected})
    assert only(doctor.pci_bus, told) == Finding(grade, "PCI bus", found, remedy)


def test_device_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DEVICE_FOLDER", tmp_path)
    assert only(doctor.device_nodes, Settings()) == Finding(
        Grade.WARNING,
        "device nodes",
        f"no {tmp_path}/nvidia*",
        "on the host: nvidia-modprobe; in a container: the nvidia runtime, CDI or a device mount",
    )
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert only(doctor.device_nodes, Settings()) == Finding(
        Grade.GOOD, "device nodes", "3 may be opened"
    )
    # Whoever runs the tests may be root, whom rights do not bind.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "nvidia1")
    assert only(doctor.device_nodes, Settings()) == Finding(
        Grade.BAD,
        "device nodes",
        f"no rights to {tmp_path}/nvidia1",
        "run as a user who may read and write them",
    )


def test_the_kernel_log(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"

    def found(mode: str) -> Finding:
        return only(
            kernel_log,
            Settings.model_validate({"kernel": {"log": mode, "log_path": str(path)}}),
        )

    absent = f"{path}: No such file or directory: Xids from NVML's events alone, and no OOM kills"
    assert (found("auto").grade, found("auto").found) == (Grade.WARNING, absent)
    assert (found("on").grade, found("on").found) == (Grade.BAD, absent)
    assert "CAP_SYSLOG" in found("auto").remedy
    assert found("off").grade is Grade.GOOD
    path.touch()
    assert found("auto") == Finding(Grade.GOOD, "kernel log", f"{path} may be read")


@pytest.mark.parametrize(
    ("script", "grade", "found", "remedy"),
    [
        (
            "#!/bin/sh\necho ffprobe version 7.1\necho more\n",
            Grade.GOOD,
            "ffprobe version 7.1",
            "",
        ),
        ("#!/bin/sh\nexit 127\n", Grade.BAD, "exit status 127", "install ffmpeg again"),
        ("#!/no/such/shell\n", Grade.BAD, "does not run", "install ffmpeg again"),
    ],
)
def test_ffprobe(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    grade: Grade,
    found: str,
    remedy: str,
) -> None:
    program = tmp_path / "ffprobe"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = only(doctor.ffprobe, Settings())
    assert (finding.grade, finding.remedy) == (grade, remedy)
    assert finding.found.startswith(str(program))
    assert found in finding.found
    assert "more" not in finding.found


def test_no_ffprobe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert only(doctor.ffprobe, Settings()) == Finding(
        Grade.WARNING,
        "ffprobe",
        "not on PATH",
        "not needed to serve metrics; to get it: apt-get install ffmpeg",
    )


def test_prlimit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = only(doctor.prlimit, Settings())
    assert found.grade is Grade.GOOD
    assert "util-linux" in found.found
    monkeypatch.setenv("PATH", str(tmp_path))
    assert only(doctor.prlimit, Settings()) == Finding(
        Grade.WARNING,
        "prlimit",
        "not on PATH",
        "not needed to serve metrics; to get it: apt-get install util-linux",
    )


def test_the_ffprobe_that_is_set_is_the_one_that_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ffprobe-8"
    chosen = settings(video={"ffprobe": str(program)})
    assert only(doctor.ffprobe, chosen) == Finding(
        Grade.WARNING,
        "ffprobe",
        f"{program} (video.ffprobe) is no program that we may run",
        "no file is probed: correct video.ffprobe, or unset it to use the one on PATH",
    )
    program.write_text("#!/bin/sh\necho ffprobe version 8.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    assert only(doctor.ffprobe, chosen) == Finding(
        Grade.GOOD, "ffprobe", f"{program}: ffprobe version 8.0"
    )


def test_programs_are_not_needed_where_no_file_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    off = settings(video={"enabled": False})
    for look, what in ((doctor.ffprobe, "ffprobe"), (doctor.prlimit, "prlimit")):
        assert only(look, off) == Finding(Grade.GOOD, what, "not needed (video.enabled is false)")


def test_a_taken_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert only(doctor.address, settings(web={"listen_address": listen})) == Finding(
            Grade.WARNING,
            "listen address",
            f"{listen}: Address already in use",
            "fine if the exporter runs already; else free the port or set web.listen_address",
        )


@pytest.mark.parametrize("listen", [":0", "localhost:0", "127.0.0.1:0"])
def test_a_free_port(listen: str) -> None:
    finding = only(doctor.address, settings(web={"listen_address": listen}))
    assert (finding.grade, finding.found) == (Grade.GOOD, f"{listen} is free")


def test_the_folder_of_the_socket(tmp_path: Path) -> None:
    good = tmp_path / "veo.sock"
    assert only(doctor.unix_socket, settings(web={"unix_socket": str(good)})) == Finding(
        Grade.GOOD, "unix socket", str(good)
    )
    bad = tmp_path / "absent" / "veo.sock"
    assert only(doctor.unix_socket, settings(web={"unix_socket": str(bad)})) == Finding(
        Grade.BAD,
        "unix socket",
        f"{bad.parent} is no folder that we may write to",
        "make the folder, or choose another with web.unix_socket",
    )
