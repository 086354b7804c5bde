# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""check config: what holds, as a file that says the same."""

from pathlib import Path

import pytest
import yaml

from veo_exporter.cli import main
from veo_exporter.config import Settings, environment_name, load_settings, setting_places


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in setting_places():
        monkeypatch.delenv(environment_name(place), raising=False)


def test_the_defaults_are_printed_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "config"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "web:\n"
        "  listen_address: :9420\n"
        "  unix_socket: null\n"
        "gpu:\n"
        "  enabled: true\n"
        "  fast_interval: 1s\n"
        "  driver_samples: true\n"
        "  full_interval: 5s\n"
        "  static_interval: 1m\n"
        "  window: 30s\n"
        "  call_deadline: 2s\n"
        "  start_deadline: 30s\n"
        "  expected_count: null\n"
        "  sysfs_root: /sys\n"
        "  device_root: /dev\n"
        "  pause_default: 10m\n"
        "  pause_max: 1h\n"
        "  dcgm_names: 'off'\n"
        "  dcgm_uuid_label: UUID\n"
        "  dcgm_hostname_label: Hostname\n"
        "  process_names: 3\n"
        "  process_names_max: 50\n"
        "  proc_root: /proc\n"
        "  gpm: auto\n"
        "advice:\n"
        "  medium_from: 0.6\n"
        "  low_above: 0.85\n"
        "  hysteresis: 0.03\n"
        "  sweeps: 3\n"
        "  pressure_free_bytes: 1610612736\n"
        "video:\n"
    )
    assert printed.endswith("log:\n  level: info\n  format: console\n")
    assert yaml.safe_load(printed)["jobs"]["lost_after"] == "10m"


def test_what_is_printed_says_the_same_as_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "veo.yaml"
    # More digits than a short form of a number would keep.
    file.write_text("gpu: {static_interval: 1234.5678s, window: 10s, fast_interval: 33ms}\n")
    monkeypatch.setenv("VEO_GPU__WINDOW", "20s")
    assert main(["check", "config", f"--config.file={file}", "--web.unix-socket=/run/veo.sock",
                 "--log.level=warning"]) == 0  # fmt: skip
    printed = capsys.readouterr().out
    content = yaml.safe_load(printed)
    assert content["gpu"]["static_interval"] == "1234.5678s"
    assert content["gpu"]["window"] == "20s"
    assert content["web"]["unix_socket"] == "/run/veo.sock"
    assert content["log"]["level"] == "warning"

    again = tmp_path / "again.yaml"
    again.write_text(printed)
    flags: dict[tuple[str, ...], str] = {
        ("web", "unix_socket"): "/run/veo.sock",
        ("log", "level"): "warning",
    }
    held = load_settings(file, {"VEO_GPU__WINDOW": "20s"}, flags)
    assert load_settings(again, {}, {}) == held != Settings()


def test_faults_are_told_and_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "veo.yaml"
    file.write_text("gpu: {windoww: 10s}\n")
    assert main(["check", "config", f"--config.file={file}", "--gpu.enabled=perhaps"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "veo-exporter check: --gpu.enabled: must be true or false, not 'perhaps'\n"
        f"{file}: gpu.windoww: no such setting; the nearest setting is gpu.window\n"
    )


def test_unsafe_timeouts_are_told_and_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "config", '--jobs.budgets=["veo-engine/*/request=10s"]']) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["jobs"]["budgets"] == ["veo-engine/*/request=10s"]
    assert printed.err == (
        "veo-exporter check: warning: jobs.budgets: veo-engine/*/request=10s is under three times the 6.825s "
        "that its stages may take: jobs that are merely slow end as timeouts; from 20.475s on it is safe\n"
    )


def test_safe_settings_are_told_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "config"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("expect", "sentence"),
    [
        ("fps=quick", "fps=quick: write a number or a fraction, as 24 or 24000/1001"),
        ("fps=0", "fps=0: must be above 0 and at most 1000"),
        (
            "fps=24,duration=6.2s",
            "duration=6.2s: write a number or a fraction, as 24 or 24000/1001",
        ),
        (
            "rate=24",
            (
                "'rate=24' is no expectation: write one or more of "
                "fps=24,duration=6.2,keyframe_interval=2 (fractions such as 24000/1001 are fine)"
            ),
        ),
    ],
)
def test_what_a_folder_cannot_expect_is_refused(
    tmp_path: Path, expect: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "veo.yaml"
    file.write_text(
        yaml.safe_dump(
            {"video": {"folders": [{"name": "out", "path": "/srv/out", "expect": expect}]}}
        )
    )
    assert main(["check", "config", f"--config.file={file}"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"veo-exporter check: video.folders: out: expect: {sentence}\n"


def test_each_fault_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    folders = '[{"name": "out", "path": "/srv/out", "expect": "fps=x"}]'
    assert main(["check", "config", f"--video.folders={folders}", '--logs.rules=["mine"]']) == 2
    assert capsys.readouterr().err == (
        "veo-exporter check: video.folders: out: expect: fps=x: write a number or a fraction, as 24 or 24000/1001\n"
        "logs.rules: 'mine' is neither an absolute path nor one of these sets: veo-engine\n"
    )
