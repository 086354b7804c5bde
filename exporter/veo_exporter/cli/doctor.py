# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""doctor: looks at what the exporter leans on, says what it found, and what helps."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from veo_exporter.cli.driver_finding import DRIVER_PATIENCE_SECONDS, driver
from veo_exporter.cli.findings import Finding, Grade
from veo_exporter.cli.kernel_finding import kernel_log
from veo_exporter.cli.kubelet_finding import kubelet
from veo_exporter.config import Settings, load_settings
from veo_exporter.gpu import PciBus

PROGRAM_PATIENCE_SECONDS: Final = 10.0
DEVICE_FOLDER: Final = Path("/dev")


def doctor(
    config_file: Path | None,
    flags: Mapping[tuple[str, ...], str],
    *,
    driver_patience_seconds: float = DRIVER_PATIENCE_SECONDS,
) -> int:
    """Look at everything; the exit status is 1 if something would keep the exporter from its work."""
    settings = load_settings(config_file, os.environ, flags)
    worst = 0
    patient_driver = partial(driver, patience_seconds=driver_patience_seconds)
    looks = (
        *(patient_driver, pci_bus, device_nodes, kernel_log, kubelet),
        *(ffprobe, prlimit, address, unix_socket),
    )
    for look in looks:
        for finding in look(settings):
            print(f"{finding.grade.value:4}  {finding.what}: {finding.found}")
            if finding.remedy:
                print(f"      → {finding.remedy}")
            sys.stdout.flush()
            worst = max(worst, finding.grade is Grade.BAD)
    return worst


def pci_bus(settings: Settings) -> Iterator[Finding]:
    """What the bus holds, whatever NVML says."""
    if not settings.gpu.enabled:
        return
    functions = PciBus(settings.gpu.sysfs_root).functions()
    if functions is None:
        yield Finding(
            Grade.WARNING,
            "PCI bus",
            f"{settings.gpu.sysfs_root} cannot be read: veo_gpus_expected is absent",
            "mount the host's /sys read-only, set gpu.sysfs_root, or set gpu.expected_count",
        )
        return
    expected = settings.gpu.expected_count
    wanted = "" if expected is None else f"; gpu.expected_count says {expected}"
    differs = expected is not None and expected != len(functions)
    yield Finding(
        Grade.WARNING if differs else Grade.GOOD,
        "PCI bus",
        f"{len(functions)} GPUs bound to the nvidia driver{wanted}",
        "a GPU has left the bus, or the setting is out of date" if differs else "",
    )


def device_nodes(settings: Settings) -> Iterator[Finding]:
    """/dev/nvidia*: what a container must be given."""
    if not settings.gpu.enabled:
        return
    nodes = sorted(DEVICE_FOLDER.glob("nvidia[0-9]*")) + sorted(DEVICE_FOLDER.glob("nvidiactl"))
    if not nodes:
        yield Finding(
            Grade.WARNING,
            "device nodes",
            f"no {DEVICE_FOLDER}/nvidia*",
            "on the host: nvidia-modprobe; in a container: the nvidia runtime, CDI or a device mount",
        )
        return
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    yield Finding(
        Grade.BAD if closed else Grade.GOOD,
        "device nodes",
        f"no rights to {', '.join(closed)}" if closed else f"{len(nodes)} may be opened",
        "run as a user who may read and write them" if closed else "",
    )


def ffprobe(settings: Settings) -> Iterator[Finding]:
    """What probes finished files."""
    named = settings.video.ffprobe
    yield _program(settings, "ffprobe", str(named) if named else "ffprobe", "ffmpeg", "-version")


def prlimit(settings: Settings) -> Iterator[Finding]:
    """What bounds an ffprobe: without it none is started."""
    yield _program(settings, "prlimit", "prlimit", "util-linux", "--version")


def _program(settings: Settings, what: str, name: str, package: str, version_flag: str) -> Finding:
    """A program that probing files needs, and its version as it says itself."""
    if not settings.video.enabled:
        return Finding(Grade.GOOD, what, "not needed (video.enabled is false)")
    path = shutil.which(name)
    if path is None and name != what:
        return Finding(
            Grade.WARNING,
            what,
            f"{name} (video.ffprobe) is no program that we may run",
            "no file is probed: correct video.ffprobe, or unset it to use the one on PATH",
        )
    if path is None:
        return Finding(
            Grade.WARNING,
            what,
            "not on PATH",
            f"not needed to serve metrics; to get it: apt-get install {package}",
        )
    try:
        run = subprocess.run(  # noqa: S603, the path is from PATH or the settings and the flag is fixed
            [path, version_flag],
            capture_output=True,
            text=True,
            timeout=PROGRAM_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(Grade.BAD, what, f"{path} does not run: {error}", f"install {package} again")
    broken = run.returncode != 0
    first = run.stdout.partition("\n")[0] or f"exit status {run.returncode}"
    return Finding(
        Grade.BAD if broken else Grade.GOOD,
        what,
        f"{path}: {first}",
        f"install {package} again" if broken else "",
    )


def address(settings: Settings) -> Iterator[Finding]:
    """Whether the port is free, or ours already."""
    host, _, port = settings.web.listen_address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((host.strip("[]"), int(port)))
        except OSError as error:
            yield Finding(
                Grade.WARNING,
                "listen address",
                f"{settings.web.listen_address}: {error.strerror}",
                "fine if the exporter runs already; else free the port or set web.listen_address",
            )
            return
    yield Finding(Grade.GOOD, "listen address", f"{settings.web.listen_address} is free")


def unix_socket(settings: Settings) -> Iterator[Finding]:
    """Whether the socket's folder may be written."""
    path = settings.web.unix_socket
    if path is None:
        yield Finding(
            Grade.GOOD, "unix socket", "not asked for (web.unix_socket); reload by SIGHUP alone"
        )
        return
    writable = path.parent.is_dir() and os.access(path.parent, os.W_OK)
    yield Finding(
        Grade.GOOD if writable else Grade.BAD,
        "unix socket",
        f"{path}" if writable else f"{path.parent} is no folder that we may write to",
        "" if writable else "make the folder, or choose another with web.unix_socket",
    )
