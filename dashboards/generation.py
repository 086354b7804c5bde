# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every dashboard's file, with what it should hold."""

from pathlib import Path
from typing import Final

from dashboards import jobs_video, node_gpu

FOLDER: Final = Path(__file__).resolve().parent / "json"


def generated_files() -> dict[Path, str]:
    """The files, in the order of their names."""
    return {
        FOLDER / "jobs-video.json": jobs_video.text(),
        FOLDER / "node-gpu.json": node_gpu.text(),
    }


def stale_files() -> list[Path]:
    """Those that are missing or differ."""
    return [
        path
        for path, text in generated_files().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
