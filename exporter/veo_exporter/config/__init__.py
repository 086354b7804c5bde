# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: one frozen model, and how it is read."""

from veo_exporter.config.load import (
    environment_name,
    flag_name,
    load_settings,
    sections,
    setting_places,
)
from veo_exporter.config.quantities import Duration, format_duration
from veo_exporter.config.settings import Gpu, Log, LogFormat, LogLevel, Section, Settings, Web

__all__ = [
    "Duration",
    "Gpu",
    "Log",
    "LogFormat",
    "LogLevel",
    "Section",
    "Settings",
    "Web",
    "environment_name",
    "flag_name",
    "format_duration",
    "load_settings",
    "sections",
    "setting_places",
]
