# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: one frozen model, and how it is read."""

from veo_exporter.config.advice import Advice
from veo_exporter.config.dcgm import DcgmHostnameLabel, DcgmNames, DcgmUuidLabel
from veo_exporter.config.gpm import GpmMode
from veo_exporter.config.jobs import Jobs, Logs
from veo_exporter.config.kernel import Kernel, KernelLogMode
from veo_exporter.config.kubernetes import Kubernetes, KubernetesEnabled
from veo_exporter.config.load import (
    environment_name,
    flag_name,
    load_settings,
    sections,
    setting_places,
)
from veo_exporter.config.quantities import Duration, format_duration, parse_duration
from veo_exporter.config.section import Section
from veo_exporter.config.settings import Gpu, Log, LogFormat, LogLevel, Settings, Web
from veo_exporter.config.state import State
from veo_exporter.config.traces import Traces
from veo_exporter.config.video import Video

__all__ = [
    "Advice",
    "DcgmHostnameLabel",
    "DcgmNames",
    "DcgmUuidLabel",
    "Duration",
    "GpmMode",
    "Gpu",
    "Jobs",
    "Kernel",
    "KernelLogMode",
    "Kubernetes",
    "KubernetesEnabled",
    "Log",
    "LogFormat",
    "LogLevel",
    "Logs",
    "Section",
    "Settings",
    "State",
    "Traces",
    "Video",
    "Web",
    "environment_name",
    "flag_name",
    "format_duration",
    "load_settings",
    "parse_duration",
    "sections",
    "setting_places",
]
