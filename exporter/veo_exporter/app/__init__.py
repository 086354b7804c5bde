# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The composition root: makes the rooms, hands each the others' callables, owns their lifetimes.

It decides nothing about data. Read in this order: root (everything); node (the first road), life, kernel, gpu_work,
pods, advice and dcgm (its rooms); work (the second road), jobs, logs, videos and traces (its rooms);
loops (what is done again and again), reloading (what may change).
"""

from veo_exporter.app.node import Hardware
from veo_exporter.app.root import App

__all__ = ["App", "Hardware"]
