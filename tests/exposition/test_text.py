# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The bytes of a page: those that prometheus_client would write, in both formats."""

import io
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_fd_to_metric_families
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from veo_exporter.catalog import Kind, Label, MetricSpec
from veo_exporter.exposition import Family, Format, TextWriter
from veo_exporter.exposition import text as text_module
from veo_exporter.units import Unit

UUID, GPU, CODE = (Label(name, "which", "8") for name in ("uuid", "gpu", "code"))

# Labels are declared in an order that is not the one in which they are written.
POWER = MetricSpec("veo_gpu_power_watts", Kind.GAUGE, Unit.WATTS, "Power draw.", (UUID, GPU))
ERRORS = MetricSpec(
    "veo_errors_total", Kind.COUNTER, Unit.NONE, 'Odd: \\ and "quotes"\nand lines.', (UUID, CODE)
)
ENERGY = MetricSpec("veo_energy_joules_total", Kind.COUNTER, Unit.JOULES, "Energy.", (GPU,))
VISIBLE = MetricSpec("veo_gpus_visible", Kind.GAUGE, Unit.NONE, "GPUs.")
SPECS = (POWER, ERRORS, ENERGY, VISIBLE)


class _Reference(Collector):
    """The same families, as prometheus_client has them."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            spec = family.spec
            of_kind = GaugeMetricFamily if spec.kind is Kind.GAUGE else CounterMetricFamily
            metric: Any = of_kind(
                spec.name.removesuffix("_total"),
                spec.help,
                labels=spec.label_names,
                unit=spec.unit.openmetrics,
            )
            for labels, value in family.rows:
                metric.add_metric(labels, value)
            yield metric


def reference(families: Iterable[Family], form: Format) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Reference(families))
    if form is Format.TEXT:
        return generate_latest(registry)
    return bytes(generate_openmetrics(registry))  # type: ignore[no-untyped-call]


def write(families: Iterable[Family], form: Format, writer: TextWriter | None = None) -> bytes:
    ending = "# EOF\n" if form is Format.OPENMETRICS else ""
    return ((writer or TextWriter(form)).write(families) + ending).encode()


def test_a_gauge_and_a_counter_are_written_in_text() -> None:
    families = [
        Family(POWER, [(("GPU-b", "0"), 612.5), (("GPU-a", "1"), 0.0)]),
        Family(ERRORS, [(('a"b\\c\nd', "999"), 3)]),
        Family(VISIBLE, [((), 8)]),
    ]
    assert write(families, Format.TEXT).decode() == (
        "# HELP veo_gpu_power_watts Power draw.\n"
        "# TYPE veo_gpu_power_watts gauge\n"
        'veo_gpu_power_watts{gpu="0",uuid="GPU-b"} 612.5\n'
        'veo_gpu_power_watts{gpu="1",uuid="GPU-a"} 0.0\n'
        '# HELP veo_errors_total Odd: \\\\ and "quotes"\\nand lines.\n'
        "# TYPE veo_errors_total counter\n"
        'veo_errors_total{code="999",uuid="a\\"b\\\\c\\nd"} 3.0\n'
        "# HELP veo_gpus_visible GPUs.\n"
        "# TYPE veo_gpus_visible gauge\n"
        "veo_gpus_visible 8.0\n"
    )


def test_a_gauge_and_a_counter_are_written_in_openmetrics() -> None:
    families = [
        Family(POWER, [(("GPU-b", "0"), 1e9)]),
        Family(ENERGY, [(("0",), 2.5)]),
        Family(ERRORS, [(("a", "3"), 1)]),
    ]
    assert TextWriter(Format.OPENMETRICS).write(families) == (
        "# HELP veo_gpu_power_watts Power draw.\n"
        "# TYPE veo_gpu_power_watts gauge\n"
        "# UNIT veo_gpu_power_watts watts\n"
        'veo_gpu_power_watts{gpu="0",uuid="GPU-b"} 1e+09\n'
        "# HELP veo_energy_joules Energy.\n"
        "# TYPE veo_energy_joules counter\n"
        "# UNIT veo_energy_joules joules\n"
        'veo_energy_joules_total{gpu="0"} 2.5\n'
        '# HELP veo_errors Odd: \\\\ and \\"quotes\\"\\nand lines.\n'
        "# TYPE veo_errors counter\n"
        'veo_errors_total{code="3",uuid="a"} 1.0\n'
    )


@pytest.mark.parametrize("form", Format)
def test_a_family_without_rows_is_left_out(form: Format) -> None:
    assert TextWriter(form).write([Family(POWER), Family(VISIBLE, []), Family(ENERGY)]) == ""


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(
    "value",
    [0, -0.0, 1, True, 0.1, 999_999, 999_999.9, 1e6, 1_000_000.5, 123_456_789, 1e15, 1e16, 1e21,
     1e22, 1.7976931348623157e308, 5e-324, 1e-5, 1e-4, -1e6, -1e22, -0.5, math.inf, -math.inf,
     math.nan, 85_520_809_984, 2**63, 1_790_000_000.123],
)  # fmt: skip
def test_a_value_is_written_as_prometheus_client_does(form: Format, value: float) -> None:
    families = [Family(VISIBLE, [((), value)])]
    assert write(families, form) == reference(families, form)


LABELS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    'ab\\"\n\r{},= #\t\u2028é', max_size=8
)
VALUES = st.floats(allow_nan=False) | st.integers(-(2**70), 2**70) | st.sampled_from([0, 1e6, -1e6])


@st.composite
def pages(draw: st.DrawFn) -> list[Family]:
    families = []
    for spec in draw(st.permutations(SPECS)):
        values = VALUES.map(abs) if spec.kind is Kind.COUNTER else VALUES
        labels = st.tuples(*[LABELS for _ in spec.labels])
        rows = draw(st.dictionaries(labels, values, max_size=4))
        if rows:
            families.append(Family(spec, list(rows.items())))
    return families


@settings(deadline=None)
@given(pages())
def test_bytes_equal_those_of_prometheus_client(families: list[Family]) -> None:
    for form in Format:
        writer = TextWriter(form)
        wanted = reference(families, form)
        assert write(families, form, writer) == wanted
        # Once more, now with remembered labels.
        assert write(families, form, writer) == wanted


def rows_of(parsed: Iterable[Metric]) -> list[tuple[str, dict[str, str], float]]:
    return [
        (sample.name, sample.labels, sample.value) for metric in parsed for sample in metric.samples
    ]


@settings(deadline=None)
@given(pages())
def test_openmetrics_reads_back_what_was_written(families: list[Family]) -> None:
    written = write(families, Format.OPENMETRICS).decode()
    lines = io.StringIO(written, newline="\n")
    parsed = list(text_fd_to_metric_families(lines))  # type: ignore[no-untyped-call]
    assert rows_of(parsed) == [
        (family.spec.name, dict(zip(family.spec.label_names, labels, strict=True)), float(value))
        for family in families
        for labels, value in family.rows
    ]
    assert [metric.unit for metric in parsed] == [
        family.spec.unit.openmetrics for family in families
    ]


def test_text_reads_back_what_was_written() -> None:
    families = [Family(ERRORS, [(('a"b\\n\nc', "é"), 1e7)]), Family(VISIBLE, [((), math.inf)])]
    written = write(families, Format.TEXT).decode()
    assert rows_of(text_string_to_metric_families(written)) == [
        ("veo_errors_total", {"uuid": 'a"b\\n\nc', "code": "é"}, 1e7),
        ("veo_gpus_visible", {}, math.inf),
    ]


def test_a_row_with_too_few_labels_is_an_error_and_no_wrong_page() -> None:
    with pytest.raises(ValueError, match="shorter"):
        TextWriter(Format.TEXT).write([Family(POWER, [(("GPU-a",), 1)])])


def test_labels_are_forgotten_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MAX_REMEMBERED_SERIES", 10)
    writer = TextWriter(Format.TEXT)
    for round in range(7):
        families = [
            Family(POWER, [((f"GPU-{round}-{number}", "0"), 1.0) for number in range(4)]),
            Family(ENERGY, [((str(number),), 1.0) for number in range(4)]),
        ]
        assert write(families, Format.TEXT, writer) == reference(families, Format.TEXT)
        assert sum(len(series) for series in writer._lines.values()) <= 10
