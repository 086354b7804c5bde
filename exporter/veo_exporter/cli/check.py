# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""check: what is written, without running it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from veo_exporter.config import load_settings


def check_config(config_file: Path | None, flags: Mapping[tuple[str, ...], str]) -> int:
    """Print the settings that would hold, as YAML that may be used as a file. Raises BadConfig."""
    settings = load_settings(config_file, os.environ, flags)
    yaml.safe_dump(settings.model_dump(mode="json"), sys.stdout, sort_keys=False)
    return 0
