# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of the spans that the exporter makes.

Those that never reach the Collector's door are counted in veo_exporter_dropped_total, kind span.
"""

from typing import Final

from veo_exporter.catalog.spec import Kind, MetricSpec
from veo_exporter.units import Unit

SPANS_EXPORTED: Final = MetricSpec(
    "veo_exporter_spans_exported_total",
    Kind.COUNTER,
    Unit.NONE,
    "Spans that a Collector has taken.",
)
SPANS_FAILED: Final = MetricSpec(
    "veo_exporter_spans_failed_total",
    Kind.COUNTER,
    Unit.NONE,
    "Spans that were lost because no Collector took them in time, or it refused them.",
)
