# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The models of Grafana's dashboards, from one place."""

import warnings

with warnings.catch_warnings():
    # On import the SDK says that a second dashboard schema exists. Grafana 10 and 11 read the first
    # one only, and 12 and 13 read both.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import (
        common,
        dashboard,
        heatmap,
        prometheus,
        stat,
        statetimeline,
        table,
        timeseries,
    )

__all__ = [
    "JSONEncoder",
    "common",
    "dashboard",
    "heatmap",
    "prometheus",
    "stat",
    "statetimeline",
    "table",
    "timeseries",
]
