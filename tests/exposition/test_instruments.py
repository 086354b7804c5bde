# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Histograms and exemplars: the bytes that prometheus_client writes for the same observations."""

import io
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import prometheus_client
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    enable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_fd_to_metric_families

from veo_exporter.catalog import Kind, Label, MetricSpec
from veo_exporter.exposition import Folds, Format, TextWriter
from veo_exporter.exposition import text as text_module
from veo_exporter.units import Unit

STAGE, ENGINE, MODEL = (Label(name, "which", "8") for name in ("stage", "engine", "model"))

# A label on either side of "le", in an order that is not the one in which they are written.
STAGES = MetricSpec(
    "veo_stage_seconds",
    Kind.HISTOGRAM,
    Unit.SECONDS,
    'Time "in" stages.',
    (STAGE, ENGINE),
    (0.0005, 1, 6.8, 120.0, 1e6),
)
DRIFT = MetricSpec(
    "veo_drift_seconds", Kind.HISTOGRAM, Unit.SECONDS, "Drift.", (), (-1.0, 0.0, 1.0)
)
FINISHED = MetricSpec("veo_finished_total", Kind.COUNTER, Unit.NONE, "Finished.", (MODEL,))
DEPTH = MetricSpec("veo_depth", Kind.GAUGE, Unit.NONE, "Depth.", (MODEL,))
TRACE = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}
NOW = 1790000000.25


@pytest.fixture(autouse=True)
def _reference_without_created_series(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(prometheus_client.metrics, "time", SimpleNamespace(time=lambda: NOW))
    disable_created_metrics()  # type: ignore[no-untyped-call]
    yield
    enable_created_metrics()  # type: ignore[no-untyped-call]


class Both:
    """The same instruments, ours and prometheus_client's own, in one order."""

    def __init__(self) -> None:
        self.folds = Folds()
        self.registry = CollectorRegistry()
        self.stages = self.folds.histogram(STAGES)
        self.drift = self.folds.histogram(DRIFT)
        self.finished = self.folds.counter(FINISHED)
        self.depth = self.folds.gauge(DEPTH)
        self.their_stages = _theirs(Histogram, STAGES, self.registry, buckets=STAGES.buckets)
        self.their_drift = _theirs(Histogram, DRIFT, self.registry, buckets=DRIFT.buckets)
        self.their_finished = _theirs(Counter, FINISHED, self.registry)
        self.their_depth = _theirs(Gauge, DEPTH, self.registry)
        self.writers = {form: TextWriter(form) for form in Format}

    def written(self, form: Format) -> str:
        return self.writers[form].write(self.folds.families(0))

    def wanted(self, form: Format) -> str:
        if form is Format.TEXT:
            lines = generate_latest(self.registry).decode().split("\n")
        else:
            page: bytes = generate_openmetrics(self.registry)  # type: ignore[no-untyped-call]
            lines = page.decode().removesuffix("# EOF\n").split("\n")
        # Ours leaves out what has no rows yet.
        counts = [line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")]
        kept = [
            line
            for line in lines
            if not line.startswith("#") or any(name.startswith(line.split()[2]) for name in counts)
        ]
        return "\n".join(kept)


def _theirs(of_kind: Any, spec: MetricSpec, registry: CollectorRegistry, **more: Any) -> Any:
    return of_kind(
        spec.name.removesuffix(f"_{spec.unit.openmetrics}"),
        spec.help,
        spec.label_names,
        unit=spec.unit.openmetrics,
        registry=registry,
        **more,
    )


def test_a_histogram_is_written_in_text() -> None:
    folds = Folds()
    stages = folds.histogram(STAGES)
    stages.labels("render", 'a"b').observe(0.5)
    stages.labels("render", 'a"b').observe(6.8, exemplar=TRACE)
    stages.labels("render", 'a"b').observe(1e7)
    assert TextWriter(Format.TEXT).write(folds.families(0)) == (
        '# HELP veo_stage_seconds Time "in" stages.\n'
        "# TYPE veo_stage_seconds histogram\n"
        'veo_stage_seconds_bucket{engine="a\\"b",le="0.0005",stage="render"} 0.0\n'
        'veo_stage_seconds_bucket{engine="a\\"b",le="1.0",stage="render"} 1.0\n'
        'veo_stage_seconds_bucket{engine="a\\"b",le="6.8",stage="render"} 2.0\n'
        'veo_stage_seconds_bucket{engine="a\\"b",le="120.0",stage="render"} 2.0\n'
        'veo_stage_seconds_bucket{engine="a\\"b",le="1e+06",stage="render"} 2.0\n'
        'veo_stage_seconds_bucket{engine="a\\"b",le="+Inf",stage="render"} 3.0\n'
        'veo_stage_seconds_count{engine="a\\"b",stage="render"} 3.0\n'
        'veo_stage_seconds_sum{engine="a\\"b",stage="render"} 1.00000073e+07\n'
    )


def test_exemplars_stand_in_openmetrics_alone() -> None:
    folds = Folds()
    folds.histogram(DRIFT).observe(0.5, exemplar=TRACE)
    folds.counter(FINISHED).labels("a").inc(2, exemplar=TRACE)
    openmetrics = TextWriter(Format.OPENMETRICS).write(folds.families(0))
    labels = '{span_id="00f067aa0ba902b7",trace_id="4bf92f3577b34da6a3ce929d0e0e4736"}'
    lines = openmetrics.splitlines()
    assert f'veo_drift_seconds_bucket{{le="1.0"}} 1.0 # {labels} 0.5 1790000000.25' in lines
    assert f'veo_finished_total{{model="a"}} 2.0 # {labels} 2.0 1790000000.25' in lines
    assert openmetrics.count("span_id") == 2
    assert "span_id" not in TextWriter(Format.TEXT).write(folds.families(0))


LABEL = st.sampled_from(["", "render", 'a"\\\n', "é"])
SECONDS = st.floats(0, 1e9, allow_subnormal=False) | st.sampled_from([0.0005, 1, 6.8, 120, 1e6])
EXEMPLARS = st.none() | st.fixed_dictionaries({"trace_id": LABEL}, optional={"span_id": LABEL})
HAPPENINGS = st.lists(
    st.tuples(st.just("stages"), LABEL, LABEL, SECONDS, EXEMPLARS)
    | st.tuples(st.just("drift"), LABEL, LABEL, st.floats(-10, 10), EXEMPLARS)
    | st.tuples(st.just("finished"), LABEL, LABEL, SECONDS, EXEMPLARS)
    | st.tuples(st.just("depth"), LABEL, LABEL, SECONDS, EXEMPLARS)
    | st.just(("scrape", "", "", 0.0, None)),
    max_size=25,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HAPPENINGS)
def test_bytes_equal_those_of_prometheus_client(
    happenings: list[tuple[str, str, str, Any, dict[str, str] | None]],
) -> None:
    both = Both()
    for what, one, other, amount, exemplar in [*happenings, ("scrape", "", "", 0.0, None)]:
        match what:
            case "stages":
                both.stages.labels(one, other).observe(amount, exemplar)
                both.their_stages.labels(one, other).observe(amount, exemplar)
            case "drift":
                both.drift.observe(amount, exemplar)
                both.their_drift.observe(amount, exemplar)
            case "finished":
                both.finished.labels(one).inc(amount, exemplar)
                both.their_finished.labels(one).inc(amount, exemplar)
            case "depth":
                both.depth.labels(one).set(amount)
                both.their_depth.labels(one).set(amount)
            case "scrape":
                for form in Format:
                    assert both.written(form) == both.wanted(form)


def test_openmetrics_reads_back_what_was_written() -> None:
    folds = Folds()
    folds.histogram(STAGES, [("render", "veo-engine")])
    stages = folds.histogram(
        MetricSpec("veo_b_seconds", Kind.HISTOGRAM, Unit.SECONDS, "B.", (STAGE,), (1.0, 2.0))
    )
    stages.labels("x").observe(1.5, exemplar=TRACE)
    written = TextWriter(Format.OPENMETRICS).write(folds.families(0)) + "# EOF\n"
    lines = io.StringIO(written, newline="\n")
    seeded, observed = text_fd_to_metric_families(lines)  # type: ignore[no-untyped-call]
    assert {sample.value for sample in seeded.samples} == {0.0}
    assert (seeded.type, seeded.unit) == ("histogram", "seconds")
    found: dict[Any, Any] = {
        (sample.name, sample.labels.get("le")): (sample.value, sample.exemplar)
        for sample in observed.samples
    }
    count, exemplar = found.pop(("veo_b_seconds_bucket", "2.0"))
    assert (count, exemplar.labels, exemplar.value) == (1.0, TRACE, 1.5)
    assert float(exemplar.timestamp) == NOW
    assert found == {
        ("veo_b_seconds_bucket", "1.0"): (0.0, None),
        ("veo_b_seconds_bucket", "+Inf"): (1.0, None),
        ("veo_b_seconds_count", None): (1.0, None),
        ("veo_b_seconds_sum", None): (1.5, None),
    }


def test_an_exemplar_beyond_the_limit_costs_only_itself() -> None:
    folds = Folds()
    drift, finished = folds.histogram(DRIFT), folds.counter(FINISHED)
    fits, too_long = {"k": "v" * 127}, {"k": "v" * 128}
    drift.observe(0.5, exemplar=fits)
    drift.observe(0.75, exemplar=too_long)
    finished.labels("a").inc(exemplar=too_long)
    written = TextWriter(Format.OPENMETRICS).write(folds.families(0))
    assert 'veo_drift_seconds_bucket{le="1.0"} 2.0 # {k="' + "v" * 127 + '"} 0.5' in written
    assert 'veo_finished_total{model="a"} 1.0\n' in written


def test_a_row_is_the_same_object_until_something_is_observed() -> None:
    folds = Folds()
    stages = folds.histogram(STAGES, [("render", "a"), ("upload", "a")])
    before = dict(next(iter(folds.families(0))).distributions)
    stages.labels("render", "a").observe(1)
    after = dict(next(iter(folds.families(0))).distributions)
    assert after["upload", "a"] is before["upload", "a"]
    assert list(after["render", "a"].counts) == [0, 1, 1, 1, 1, 1]
    assert list(before["render", "a"].counts) == [0, 0, 0, 0, 0, 0]


def test_nothing_observed_meanwhile_is_lost() -> None:
    folds = Folds()
    drift = folds.histogram(DRIFT)

    def observe() -> None:
        for _ in range(2000):
            drift.observe(0.5)

    threads = [threading.Thread(target=observe) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        list(folds.families(0))
    for thread in threads:
        thread.join()
    ((_, distribution),) = next(iter(folds.families(0))).distributions
    assert distribution.counts == (0, 0, 6000, 6000)


def test_the_wrong_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^veo_depth is no histogram$"):
        Folds().histogram(DEPTH)
    with pytest.raises(ValueError, match=r"^veo_stage_seconds is no gauge$"):
        Folds().gauge(STAGES)


def test_labels_are_forgotten_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MAX_REMEMBERED_SERIES", 30)
    both = Both()
    for number in range(12):
        both.stages.labels(str(number), "a").observe(number)
        both.their_stages.labels(str(number), "a").observe(number)
        assert both.written(Format.TEXT) == both.wanted(Format.TEXT)
        blocks = both.writers[Format.TEXT]._blocks
        assert sum(len(rows) for rows in blocks.values()) <= 4
