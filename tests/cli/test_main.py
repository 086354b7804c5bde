# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Words to commands: what a wrong word is answered with, and the exit statuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import veo_exporter
from veo_exporter.cli import main
from veo_exporter.cli.main import build_parser, settings_flags
from veo_exporter.config import flag_name, setting_places

PATIENCE_SECONDS = 60


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The last line of what a usage error says."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("serve", "--gpu.fast-intervall=1s"),
            (
                "veo-exporter serve: error: --gpu.fast-intervall: no such flag; "
                "the nearest is --gpu.fast-interval"
            ),
        ),
        (
            ("serve", "--gpu.fast_interval", "1s"),
            (
                "veo-exporter serve: error: --gpu.fast_interval: no such flag; "
                "the nearest is --gpu.fast-interval"
            ),
        ),
        # An abbreviation is not guessed at.
        (
            ("check", "config", "--gpu.win", "1s"),
            (
                "veo-exporter check config: error: --gpu.win: no such flag; "
                "the nearest is --gpu.window"
            ),
        ),
        (
            ("demo", "--scenarios", "busy"),
            "veo-exporter demo: error: --scenarios: no such flag; the nearest is --scenario",
        ),
        (
            ("show", "metrics", "--formt=json"),
            "veo-exporter show metrics: error: --formt: no such flag; the nearest is --format",
        ),
        (("doctor", "--xyzzy"), "veo-exporter doctor: error: --xyzzy: no such flag"),
    ],
)
def test_an_unknown_flag_is_named_with_the_nearest(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert refused(capsys, *words) == sentence


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "COMMAND"),
        (("serv",), "invalid choice: 'serv'"),
        (("check",), "WHAT"),
        (("show", "metric"), "invalid choice: 'metric'"),
        (("show", "metrics", "--format", "xml"), "invalid choice: 'xml'"),
        (("serve", "--gpu.window"), "--gpu.window: expected one argument"),
    ],
)
def test_a_wrong_command_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], part: str
) -> None:
    assert part in refused(capsys, *words)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"veo-exporter {veo_exporter.__version__}\n"


@pytest.mark.parametrize("command", [["serve"], ["demo"], ["check", "config"], ["doctor"]])
def test_every_setting_is_a_flag_of_what_reads_settings(command: list[str]) -> None:
    words = [f"{flag_name(place)}=v{number}" for number, place in enumerate(setting_places())]
    arguments = build_parser().parse_args([*command, *words])
    assert settings_flags(arguments) == {
        place: f"v{number}" for number, place in enumerate(setting_places())
    }
    assert settings_flags(build_parser().parse_args(command)) == {}


def test_a_flag_given_empty_is_given() -> None:
    arguments = build_parser().parse_args(["serve", "--gpu.window="])
    assert settings_flags(arguments) == {("gpu", "window"): ""}


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert [flag_name(place) for place in setting_places() if flag_name(place) not in text] == []


def test_a_scenario_that_is_not_there_ends_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--scenario", "bussy"]) == 2
    assert capsys.readouterr().err == (
        "veo-exporter demo: there is no scenario 'bussy': write a path, or one of "
        "busy, driver-reload, gpu-hung, gpu-lost, mig, node-lost\n"
    )


def test_the_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--list-scenarios"]) == 0
    names = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["busy", "driver-reload", "gpu-hung", "gpu-lost", "mig", "node-lost"]


def test_a_taken_address_ends_it_with_a_sentence(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = subprocess.run(
            [sys.executable, "-m", "veo_exporter", "serve", f"--web.listen-address={address}",
             "--log.level=error"],
            capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"veo-exporter serve: web.listen_address {address}: Address already in use: "
        "free the port or choose another\n"
    )


@pytest.mark.parametrize(
    "words",
    # More than a pipe holds at once, and less than Python's own buffer.
    [["show", "metrics", "--format=json"], ["check", "config"]],
)
def test_a_reader_who_has_gone_is_no_error(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        run = subprocess.run(
            [sys.executable, "-m", "veo_exporter", *words],
            stdout=write, stderr=subprocess.PIPE, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (run.returncode, run.stderr) == (0, b"")
