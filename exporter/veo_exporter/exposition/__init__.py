# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Snapshots and folds to text."""

from veo_exporter.exposition.families import Distribution, Family, Labels, Source
from veo_exporter.exposition.folds import Folds
from veo_exporter.exposition.own import OwnSource
from veo_exporter.exposition.page import Page
from veo_exporter.exposition.text import Format, TextWriter

__all__ = [
    "Distribution",
    "Family",
    "Folds",
    "Format",
    "Labels",
    "OwnSource",
    "Page",
    "Source",
    "TextWriter",
]
