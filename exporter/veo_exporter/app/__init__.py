# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The composition root: makes the rooms, hands each the others' callables, owns their lifetimes.

It decides nothing about data. Read in this order: root (everything), work (the second road), jobs, logs,
videos and traces (its rooms), loops (what is done again and again), reloading (what may change).
"""

from veo_exporter.app.root import App, Hardware

__all__ = ["App", "Hardware"]
