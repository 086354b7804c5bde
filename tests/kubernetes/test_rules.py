# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The recording rules that join pods to their GPUs, run by promtool."""

import subprocess
from pathlib import Path

from alerts.generation import rule_files
from tests.helm.chart import tool

STORY = Path(__file__).parent / "rules.yaml"


def test_story(tmp_path: Path) -> None:
    for name, text in rule_files().items():
        (tmp_path / name).write_text(text)
    story = tmp_path / STORY.name
    story.write_text(STORY.read_text())
    run = subprocess.run(
        [tool("promtool"), "test", "rules", str(story)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
