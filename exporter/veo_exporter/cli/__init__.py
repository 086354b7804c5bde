# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of veo-exporter."""

from veo_exporter.cli.main import main

__all__ = ["main"]
