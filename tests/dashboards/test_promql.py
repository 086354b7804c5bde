# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the builders refuse, and what they write."""

import re
from pathlib import Path

import pytest

from dashboards.panels import graph, rows
from dashboards.promql import (
    BadQuery,
    age,
    firing_alerts,
    gauge,
    increase,
    of_exporters,
    quantile,
    rate,
    up,
)
from dashboards.questions import About, Query, title_of
from dashboards.thresholds import Line, lines_of
from veo_exporter.catalog import Kind, Label, MetricSpec, gpu
from veo_exporter.catalog import exporter as own
from veo_exporter.units import Unit

DURATION = MetricSpec(
    "veo_job_duration_seconds",
    Kind.HISTOGRAM,
    Unit.SECONDS,
    "Time from start to end of a job.",
    (Label("outcome", "how it ended", "8"),),
    (1.0, 10.0),
)
CHOSEN = 'cluster=~"$cluster",job=~"$job",node=~"$node"'


def test_what_is_written() -> None:
    assert gauge(gpu.POWER).text == f'veo_gpu_power_watts{{{CHOSEN},gpu=~"$gpu"}}'
    assert gauge(gpu.GPUS_USABLE).text == f"veo_gpus_usable{{{CHOSEN}}}"
    assert up().text == (
        f"(up{{{CHOSEN}}} and on (cluster, job) group by (cluster, job) "
        '(last_over_time(veo_exporter_build_info{cluster=~"$cluster",job=~"$job"}[1d])))'
    )
    assert of_exporters(gauge(own.PROCESS_OPEN_FDS)).text == (
        f"(process_open_fds{{{CHOSEN}}} and on (cluster, job, instance) "
        f"veo_exporter_build_info{{{CHOSEN}}})"
    )
    assert (
        gauge(gpu.GPU_STATE, state="lost").text
        == f'veo_gpu_state{{{CHOSEN},gpu=~"$gpu",state="lost"}}'
    )
    assert (
        rate(gpu.ENERGY).aggregate("sum", "cluster", "node").text
        == f'sum by (cluster, node) (rate(veo_gpu_energy_joules_total{{{CHOSEN},gpu=~"$gpu"}}[$__rate_interval]))'
    )
    assert (
        increase(own.DROPPED, "$__range").aggregate("sum").text
        == f"sum(increase(veo_exporter_dropped_total{{{CHOSEN}}}[$__range]))"
    )
    assert (
        age(own.LAST_SUCCESS).text
        == f"time() - (veo_exporter_last_success_timestamp_seconds{{{CHOSEN}}} > 0)"
    )
    assert (
        quantile(0.95, DURATION, "node", outcome="success").text
        == "histogram_quantile(0.95, sum by (node, le) (rate(veo_job_duration_seconds_bucket{"
        f'{CHOSEN},outcome="success"}}[$__rate_interval])))'
    )


def test_a_value_cannot_end_its_quotes() -> None:
    assert gauge(gpu.GPU_STATE, state='a"b').text.endswith(r'state="a\"b"}')


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda: rate(gpu.POWER), "veo_gpu_power_watts is a gauge"),
        (lambda: increase(gpu.POWER, "1h"), "veo_gpu_power_watts is a gauge"),
        (lambda: gauge(gpu.ENERGY), "veo_gpu_energy_joules_total is a counter"),
        (lambda: gauge(own.LAST_SUCCESS), "show its age"),
        (lambda: gauge(DURATION), "veo_job_duration_seconds is a histogram"),
        (lambda: quantile(0.5, gpu.POWER), "only a histogram has quantiles"),
        (lambda: quantile(0.5, gpu.ENERGY), "only a histogram has quantiles"),
        (lambda: quantile(50, DURATION), "no quantile 50"),
        (lambda: age(gpu.POWER), "veo_gpu_power_watts is no timestamp"),
        (lambda: gauge(gpu.POWER, state="ok"), "veo_gpu_power_watts has no label state"),
        (lambda: rate(gpu.ENERGY, reason="x"), "veo_gpu_energy_joules_total has no label reason"),
        (lambda: gauge(gpu.POWER).aggregate("max", "state"), "has no label state"),
        (lambda: quantile(0.5, DURATION, "gpu"), "has no label gpu"),
        (lambda: Query(gauge(gpu.GPUS_USABLE), "{{node}} GPU {{gpu}}"), "has no label gpu"),
        (
            lambda: Query(gauge(gpu.POWER).aggregate("max", "node"), "{{node}} GPU {{gpu}}"),
            "has no label gpu",
        ),
        (
            lambda: rows(
                About(gpu.GPU_INFO, "What is it?"),
                Query(gauge(gpu.GPU_INFO)),
                {"model": "Model"},
                sorted_by="Model",
            ),
            "has no label model",
        ),
    ],
)
def test_what_is_refused(write: "object", sentence: str) -> None:
    assert callable(write)
    with pytest.raises(BadQuery, match=re.escape(sentence)):
        write()


def test_a_panel_without_a_question_is_refused() -> None:
    with pytest.raises(ValueError, match="answers a question"):
        About(gpu.POWER, "Power.")
    with pytest.raises(ValueError, match="unit or meaning is missing"):
        About(None, "What is up?", title="Up")


def test_a_panel_takes_its_words_from_the_metric() -> None:
    panel = graph(About(gpu.SM_CLOCK, "How fast?"), Query(gauge(gpu.SM_CLOCK), "{{gpu}}"))
    assert panel.title == "SM clock"
    assert panel.description == f"How fast?\n\n{gpu.SM_CLOCK.help}"
    assert panel.field_config is not None
    assert panel.field_config.defaults.unit == "hertz"
    assert title_of(gpu.GPUS_EXPECTED) == "GPUs expected"
    assert title_of(gpu.NVML_ERRORS) == "NVML errors"
    assert title_of(gpu.MEMORY_COPY_UTILIZATION) == "Memory copy utilization"


def test_exemplars_are_asked_for_where_there_are_any() -> None:
    def exemplars(query: Query) -> list[object]:
        panel = graph(About(DURATION, "How slow?"), query)
        return [getattr(target, "exemplar", None) for target in panel.targets or []]

    assert exemplars(Query(quantile(0.95, DURATION, "node"), "{{node}}")) == [True]
    assert exemplars(Query(gauge(gpu.POWER), "{{gpu}}")) == [None]


def test_the_watchdog_is_no_news() -> None:
    assert 'severity=~"critical|warning|info"' in firing_alerts().text


def test_lines_are_read_lowest_first(tmp_path: Path) -> None:
    file = tmp_path / "thresholds.yaml"
    row = "{{metric: veo_gpu_power_watts, value: {}, severity: info, meaning: m.}}"
    rows = "".join(f"\n  t{value}: {row.format(value)}" for value in (7, 5))
    file.write_text(f"thresholds:{rows}\n")
    lines = lines_of(gpu.POWER, file)
    assert [line.value for line in lines] == [5, 7]
    assert lines[0].sentence("watt") == "Line at 5 W (info): m."
    assert lines_of(gpu.TEMPERATURE, file) == ()


def test_a_threshold_of_an_unknown_metric_is_no_line_that_nobody_misses(tmp_path: Path) -> None:
    file = tmp_path / "thresholds.yaml"
    row = "{metric: veo_gpu_pover_watts, value: 1, severity: info, meaning: m.}"
    file.write_text(f"thresholds:\n  too_much: {row}\n")
    with pytest.raises(ValueError, match="too_much: veo_gpu_pover_watts is not in the catalogue"):
        lines_of(gpu.POWER, file)


def test_lines_are_told_in_words() -> None:
    line = Line(1, "critical", "there should be none.")
    assert line.sentence("none", drawn=False) == (
        "Coloured from 1 on (critical): there should be none."
    )
    assert line.sentence("short") == "Line at 1 (critical): there should be none."
    assert line.sentence("percentunit").startswith("Line at 100 % (critical)")
    for unit in Unit:
        if unit is not Unit.TIMESTAMP:
            assert line.sentence(unit.grafana)
