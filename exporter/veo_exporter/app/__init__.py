# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The composition root: makes the rooms, hands each the others' callables, owns their lifetimes.

It decides nothing about data. root has everything; work has the second road: jobs, logs, files, traces.
"""

from veo_exporter.app.root import App, Hardware

__all__ = ["App", "Hardware"]
