# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""tools/media.sh: ffmpeg from PATH, else installed where that may be, else the line that does it."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools/media.sh"
ALL = ("ffmpeg", "ffprobe", "prlimit")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """All that is on PATH; its user is root, and may not install anything yet."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "id", "echo 0")
    return folder


def program(folder: Path, name: str, script: str = "exit 0") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def run(path: Path, need: str = "required") -> tuple[int, list[str]]:
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT), need],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


def test_what_is_there_is_passed_over_in_silence(path: Path) -> None:
    for name in ALL:
        program(path, name)
    assert run(path) == (0, [])


@pytest.mark.parametrize(
    ("there", "packages"),
    [
        ((), "ffmpeg util-linux"),
        (("ffmpeg", "prlimit"), "ffmpeg"),
        (("ffprobe", "prlimit"), "ffmpeg"),
        (("ffmpeg", "ffprobe"), "util-linux"),
    ],
)
def test_what_may_not_be_installed_is_named_with_its_line(
    path: Path, there: tuple[str, ...], packages: str
) -> None:
    for name in there:
        program(path, name)
    said = [
        f"Files cannot be made and probed without {packages}. Install them, for example:",
        f"    apt-get install {packages}",
    ]
    assert run(path) == (1, said)
    assert run(path, "optional") == (0, [*said, "going on without video files"])


def test_whoever_is_not_root_installs_nothing(path: Path) -> None:
    program(path, "id", "echo 1000")
    program(path, "apt-get", "echo installed by apt-get")
    status, lines = run(path)
    assert status == 1
    assert not any("installed" in line for line in lines)


def test_root_installs_what_is_missing(path: Path) -> None:
    program(path, "apt-get", 'echo "apt-get $*"')
    assert run(path) == (
        0,
        [
            "installing ffmpeg util-linux from the system's packages ...",
            "apt-get update -qq",
            "apt-get install -qq --yes --no-install-recommends ffmpeg util-linux",
        ],
    )


def test_an_installation_that_fails_is_told_with_the_line(path: Path) -> None:
    program(path, "apt-get", "echo no network >&2; exit 100")
    status, lines = run(path)
    assert (status, lines[1]) == (1, "no network")
    assert lines[-1] == "    apt-get install ffmpeg util-linux"
