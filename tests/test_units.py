# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What dashboards and rules rely on: base units, and the names that say so."""

import pytest

from veo_exporter.units import (
    Unit,
    megahertz_to_hertz,
    millijoules_to_joules,
    milliwatts_to_watts,
    percent_to_ratio,
)


def test_values_are_converted_to_base_units() -> None:
    assert percent_to_ratio(97) == 0.97
    assert percent_to_ratio(100) == 1
    assert megahertz_to_hertz(1980) == 1_980_000_000
    assert milliwatts_to_watts(612_345) == 612.345
    assert millijoules_to_joules(1_500) == 1.5


@pytest.mark.parametrize(
    ("unit", "suffix", "openmetrics", "grafana"),
    [
        (Unit.SECONDS, "seconds", "seconds", "s"),
        (Unit.BYTES, "bytes", "bytes", "bytes"),
        (Unit.BYTES_PER_SECOND, "bytes_per_second", "bytes_per_second", "Bps"),
        (Unit.HERTZ, "hertz", "hertz", "hertz"),
        (Unit.WATTS, "watts", "watts", "watt"),
        (Unit.JOULES, "joules", "joules", "joule"),
        (Unit.CELSIUS, "celsius", "celsius", "celsius"),
        (Unit.RATIO, "ratio", "ratio", "percentunit"),
        (Unit.TIMESTAMP, "timestamp_seconds", "seconds", "dateTimeAsIso"),
        (Unit.INFO, "info", "", "none"),
        (Unit.NONE, "", "", "short"),
    ],
)
def test_a_unit_is_named_for_prometheus_openmetrics_and_grafana(
    unit: Unit, suffix: str, openmetrics: str, grafana: str
) -> None:
    assert (unit.suffix, unit.openmetrics, unit.grafana) == (suffix, openmetrics, grafana)


def test_an_openmetrics_unit_ends_the_name_it_stands_with() -> None:
    # OpenMetrics: the name of a metric with a unit must end with it.
    assert all(unit.suffix.endswith(unit.openmetrics) for unit in Unit)
