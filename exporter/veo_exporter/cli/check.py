# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""check: what is written, without running it."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from veo_exporter.config import Settings, load_settings
from veo_exporter.errors import BadConfig
from veo_exporter.jobs import unsafe_timeouts
from veo_exporter.logs import load_rules
from veo_exporter.video import folders_of


def check_config(config_file: Path | None, flags: Mapping[tuple[str, ...], str]) -> int:
    """Print the settings that would hold, as YAML that may be used as a file. Raises BadConfig.

    What is allowed and unwise is told on standard error.
    """
    settings = load_settings(config_file, os.environ, flags)
    _refuse_what_no_start_would_take(settings)
    yaml.safe_dump(settings.model_dump(mode="json"), sys.stdout, sort_keys=False)
    sys.stdout.flush()
    for sentence in unsafe_timeouts(settings.jobs):
        print(f"veo-exporter check: warning: {sentence}", file=sys.stderr)
    return 0


def _refuse_what_no_start_would_take(settings: Settings) -> None:
    """Some settings have a grammar of their own, which the room they belong to reads."""
    readers: tuple[Callable[[], object], ...] = (
        lambda: folders_of(settings.video),
        lambda: load_rules(settings.logs.rules),
    )
    faults: list[str] = []
    for read in readers:
        try:
            read()
        except BadConfig as error:
            faults += error.faults
    if faults:
        raise BadConfig(faults)
