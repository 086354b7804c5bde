# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A counter of another exporter's whose name does not say so, in both formats."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from veo_exporter.catalog import Kind, Label, MetricSpec
from veo_exporter.catalog.dcgm import DCGM
from veo_exporter.exposition import Family, Format, TextWriter
from veo_exporter.units import Unit

ENERGY = MetricSpec(
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    Kind.COUNTER,
    Unit.NONE,
    "Energy, in mJ.",
    (Label("gpu", "index", "8"), Label("UUID", "identity", "8")),
    namespace=DCGM,
)
REPLAYS = MetricSpec(
    "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", Kind.COUNTER, Unit.NONE, "Replays.", namespace=DCGM
)
ROWS: list[tuple[tuple[str, ...], float]] = [(("0", 'GPU-"a"'), 123456789.0), (("1", "GPU-b"), 0.0)]


class _Reference(Collector):
    def __init__(self, of_kind: Any) -> None:
        self._of_kind = of_kind

    def collect(self) -> Iterator[Metric]:
        metric = self._of_kind(ENERGY.name, ENERGY.help, labels=ENERGY.label_names)
        for labels, value in ROWS:
            metric.add_metric(labels, value)
        yield metric


def registry(of_kind: Any) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Reference(of_kind))
    return registry


def test_openmetrics_calls_it_unknown_byte_for_byte_as_prometheus_client() -> None:
    written = TextWriter(Format.OPENMETRICS).write([Family(ENERGY, ROWS)]) + "# EOF\n"
    wanted = generate_openmetrics(registry(UnknownMetricFamily))  # type: ignore[no-untyped-call]
    assert written.encode() == wanted
    assert written.startswith(
        "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy, in mJ.\n"
        "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n"
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID="GPU-\\"a\\"",gpu="0"} 1.23456789e+08\n'
    )


def test_text_calls_it_a_counter() -> None:
    # prometheus_client would add _total to a counter; but for its type, a gauge is written the same.
    written = TextWriter(Format.TEXT).write([Family(ENERGY, ROWS)])
    wanted = generate_latest(registry(GaugeMetricFamily)).decode()
    assert written == wanted.replace(" gauge\n", " counter\n")
    assert "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n" in written


@pytest.mark.parametrize(
    ("form", "kind"), [(Format.TEXT, "counter"), (Format.OPENMETRICS, "unknown")]
)
def test_capitals_do_not_make_the_ending(form: Format, kind: str) -> None:
    assert TextWriter(form).write([Family(REPLAYS, [((), 4)])]) == (
        "# HELP DCGM_FI_DEV_PCIE_REPLAY_TOTAL Replays.\n"
        f"# TYPE DCGM_FI_DEV_PCIE_REPLAY_TOTAL {kind}\n"
        "DCGM_FI_DEV_PCIE_REPLAY_TOTAL 4.0\n"
    )
