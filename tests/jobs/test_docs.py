# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""docs/jobs.md: its commands work as they are written, and its words are those of the code."""

from pathlib import Path

import pytest
import yaml

from tests.cli.examples import (
    DOCS,
    blocks,
    examples,
    metrics_that_are_not_there,
    run,
    tables,
    words,
)
from tests.conftest import StartDaemon
from tests.jobs import Desk, event
from veo_client.vocabulary import OUTCOME_OF, USUAL_REASON, EventType, Outcome, Reason, Stage
from veo_exporter.config import Jobs, Logs, Section
from veo_exporter.jobs import DROPPED_SEEDS, PRESETS, Result, unsafe_timeouts
from veo_exporter.jobs.durations import LEFT_OUT
from veo_exporter.jobs.lifecycle import MAX_EVALUATIONS, MAX_RETRIES, MAX_STAGES
from veo_exporter.jobs.payload import DATA_OF, Data, Payload
from veo_exporter.logs import DROPPED_SEEDS as LOGS_DROPPED
from veo_exporter.logs import load_rules
from veo_exporter.logs.rules import parse_rules, read_line

PAGE = "jobs.md"
SETTINGS: dict[str, type[Section]] = {"jobs": Jobs, "logs": Logs}


def test_the_commands_print_what_is_said(start: StartDaemon, tmp_path: Path) -> None:
    place = start("--gpu.enabled=false").url.removeprefix("http://")
    told = [
        (example, run(example.commands, tmp_path, {"localhost:9420": place}))
        for example in examples(PAGE)
    ]
    assert len(told) == 7
    for example, printed in told:
        assert printed.splitlines() == example.output.splitlines()


def test_each_type_is_told_with_its_fields() -> None:
    rows = tables(PAGE)["type", "data"]
    assert sorted(kind for kind, _ in rows) == sorted(kind.value for kind in EventType)
    common = set(Data.model_fields)
    text = (DOCS / PAGE).read_text()
    for kind, said in rows:
        data: type[Payload] = DATA_OF[EventType(kind)]
        of_its_own = set(data.model_fields) - common
        assert {field for field in of_its_own if field not in said} == set()
    assert {field for field in common if f"`{field}`" not in text} == set()


def test_each_stage_is_told() -> None:
    text = (DOCS / PAGE).read_text()
    listed = text[text.index("Stages: ") + len("Stages: ") : text.index(". The wait from")]
    assert words(listed.replace("`", "")) == [stage.value for stage in Stage]


def test_each_result_is_told_with_its_bounds() -> None:
    rows = dict(tables(PAGE)["result", "the event"])
    assert sorted(rows) == sorted(result.value for result in Result)
    for most in (MAX_STAGES, MAX_RETRIES, MAX_EVALUATIONS):
        assert f"({most})" in rows["over_limit"]


def test_outcomes_and_reasons_are_those_of_the_vocabulary() -> None:
    rows = tables(PAGE)["outcome", "reasons", "unsaid"]
    assert {outcome: words(reasons) for outcome, reasons, _ in rows} == {
        outcome.value: [reason.value for reason in Reason if OUTCOME_OF[reason] is outcome]
        for outcome in Outcome
    }
    assert {outcome: unsaid for outcome, _, unsaid in rows} == {
        outcome.value: reason.value for outcome, reason in USUAL_REASON.items()
    }


def test_what_is_left_out_is_told() -> None:
    rows = tables(PAGE)["kind", "reason", "means"]
    assert [(kind, reason) for kind, reason, _ in rows] == [
        (kind, doubt.value) for kind, doubt in LEFT_OUT
    ]


def test_what_is_dropped_is_named_as_it_is() -> None:
    known = {*DROPPED_SEEDS, *LOGS_DROPPED}
    for _, setting, beyond in tables(PAGE)["bound", "setting", "beyond it"]:
        section, _, name = setting.partition(".")
        assert name in SETTINGS[section].model_fields
        for kind, reason in known:
            if f'kind="{kind}",reason=' in beyond:
                told = beyond[beyond.index('reason="') :].split('"')[1]
                assert (kind, told) in known, (kind, reason, told)


def test_the_preset_is_told() -> None:
    seconds = {row.part: row.seconds for row in PRESETS["veo-engine"]}
    assert seconds == {"render": 6.8, "prompt": 0.025, "request": 90.0}
    assert "6.8 s for `render`, 25 ms for `prompt` and 90 s for `request`" in (
        DOCS / PAGE
    ).read_text().replace("\n", " ")


def test_the_settings_are_sound() -> None:
    written = [yaml.safe_load(block) for block in blocks(PAGE, "yaml")]
    (jobs,) = [said["jobs"] for said in written if "jobs" in said]
    assert list(unsafe_timeouts(Jobs.model_validate(jobs))) == []
    (logs,) = [said["logs"] for said in written if "logs" in said]
    assert Logs.model_validate(logs).rules == ("veo-engine", "/etc/veo/rules.yaml")


def test_the_rule_is_proven_and_the_line_is_read() -> None:
    (written,) = [block for block in blocks(PAGE, "yaml") if block.startswith("rules:")]
    (rule,) = parse_rules(written, PAGE)
    assert rule.name == "worker_died"
    (line,) = [block for block in blocks(PAGE, "text") if "RENDER_ABORT" in block]
    name, event = read_line(load_rules(["veo-engine"]), line.strip())
    assert name == "render_abort"
    assert event is not None
    assert (event["subject"], event["data"]["frame"]) == ("job-7", 37)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ({"outcome": "failed", "error": {"code": 504}}, Outcome.TIMEOUT),
        ({"outcome": "failed", "reason": "CUDA out of memory"}, Outcome.ABORTED),
        ({"outcome": "success", "outputs": []}, Outcome.EMPTY),
        ({"outcome": "success", "outputs": [{"path": "/a", "bytes": 0}]}, Outcome.EMPTY),
        ({"outcome": "success", "outputs": [], "filtered_count": 1}, Outcome.FILTERED),
    ],
)
def test_how_an_end_is_judged(said: dict[str, object], outcome: Outcome) -> None:
    desk = Desk()
    step = desk.table.apply(event("finished", **said))
    assert step.finished is not None
    assert step.finished.outcome is outcome


def test_every_metric_is_there() -> None:
    assert metrics_that_are_not_there(PAGE) == set()
