# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Rules: what a line means, and rules that cannot be meant."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.errors import BadConfig
from veo_exporter.exposition import Folds, Format, TextWriter
from veo_exporter.logs import DROPPED_SEEDS, Follower, LogReading, load_rules, shipped_rules
from veo_exporter.logs.rules import event_of_line, parse_rules, read_line

ENGINE = load_rules(["veo-engine"])


def test_what_comes_along_fits_its_own_examples() -> None:
    # Loading proves each rule on its examples.
    assert shipped_rules() == ["veo-engine"]
    assert [rule.name for rule in load_rules(shipped_rules())] == ["render_abort"]


@pytest.mark.parametrize(
    ("line", "data"),
    [
        (
            'RENDER_ABORT frame=37 gpu=3 reason="device lost"',
            {"frame": 37, "gpus": ["3"], "reason": "device lost"},
        ),
        ('RENDER_ABORT reason="" gpu=3', {"gpus": ["3"], "reason": ""}),
        ("RENDER_ABORT frame=x gpu=", {"gpus": []}),
        ("RENDER_ABORT frame=99999999999999 gpu=3", {"gpus": ["3"]}),
        ('RENDER_ABORT reason="unsaid', {"gpus": [], "reason": "unsaid"}),
        ('RENDER_ABORT reason="caf�"', {"gpus": [], "reason": "caf�"}),
    ],
)
def test_aborts_of_the_engine(line: str, data: dict[str, Any]) -> None:
    name, event = read_line(ENGINE, line)
    assert name == "render_abort"
    assert event == {
        "type": "veo.job.finished",
        "data": {"engine": "veo-engine", "outcome": "aborted"} | data,
    }


def said(**data: Any) -> dict[str, Any]:
    return {"engine": "veo-engine", "outcome": "aborted", "gpus": [], **data}


ABORT = 'RENDER_ABORT frame=3 reason="device lost" job=JS1'


@pytest.mark.parametrize("name", ["msg", "message", "log", "event", "text", "detail"])
def test_an_object_is_read_without_its_quotes(name: str) -> None:
    line = json.dumps({"level": "error", name: ABORT + "\n", "n": 1})
    assert read_line(ENGINE, line) == (
        "render_abort",
        {"type": "veo.job.finished", "subject": "JS1", "data": said(frame=3, reason="device lost")},
    )


@pytest.mark.parametrize(
    ("line", "subject", "data"),
    [
        # What stands beside the message fills in, and takes no place.
        (
            {"msg": "RENDER_ABORT frame=3", "job": "J1", "gpu": 0, "frame": 9, "reason": "CUDA OOM"},
            "J1",
            {"frame": 3, "gpus": ["0"], "reason": "CUDA OOM"},
        ),
        # A runtime's object around a logger's; the logger's own word stands nearer.
        (
            {"log": json.dumps({"msg": ABORT, "gpu": "1"}) + "\n", "stream": "stderr", "gpu": "9"},
            "JS1",
            {"frame": 3, "gpus": ["1"], "reason": "device lost"},
        ),
        # No stamp that a rule knows, no number, and no name.
        ({"msg": ABORT, "time": 1772366400, "gpu": True}, "JS1", {"frame": 3, "reason": "device lost"}),
        ({"msg": "RENDER_ABORT", "job": "j" * 201}, None, {}),
    ],
)  # fmt: skip
def test_fields_beside_a_message(
    line: dict[str, Any], subject: str | None, data: dict[str, Any]
) -> None:
    name, event = read_line(ENGINE, json.dumps(line))
    assert name == "render_abort"
    assert event is not None
    assert (event.get("subject"), event["data"], "time" in event) == (subject, said(**data), False)


@pytest.mark.parametrize(
    "line",
    [
        '{"msg":"RENDER_ABORT job=JS1 frame=3"',
        "{RENDER_ABORT job=JS1 frame=3}",
        '{"detail":{"msg":"RENDER_ABORT job=JS1 frame=3"}}',
        '{"a":"\\ud800","msg":"RENDER_ABORT job=JS1 frame=3"}',
    ],
)
def test_what_is_no_object_with_a_message_is_read_as_it_stands(line: str) -> None:
    name, event = read_line(ENGINE, line)
    assert name == "render_abort"
    assert event is not None
    assert (event["subject"], event["data"]) == ("JS1", said(frame=3))


def test_a_word_that_json_writes_otherwise_is_found() -> None:
    text = """\
rules:
- name: r
  contains: 'café "'
  pattern: 'café "(?P<what>\\w+)"'
  event: {type: t, data: {a: "{what}"}}
  examples: [{line: '{"msg":"caf\\u00e9 \\"x\\""}', event: {type: t, data: {a: x}}}]
"""
    assert read_line(parse_rules(text, "mine"), json.dumps({"msg": 'café "y"'}))[0] == "r"


@pytest.mark.parametrize("line", ["", "frame=37 gpu=3", "render_abort frame=1", "XRENDER_ABORTX"])
def test_other_lines_mean_nothing(line: str) -> None:
    assert read_line(ENGINE, line) == ("none", None)


def test_a_line_stands_for_one_event() -> None:
    event = event_of_line({"type": "t", "data": {}}, "/var/log/a.log", "7-1-0-3")
    assert event == {
        "specversion": "1.0",
        "source": "/var/log/a.log",
        "id": "7-1-0-3",
        "type": "t",
        "data": {},
    }


@given(st.text(max_size=200))
def test_no_line_is_too_odd(text: str) -> None:
    assert read_line(ENGINE, text + "RENDER_ABORT" + text)[0] in ("render_abort", "none")


def test_the_longest_line_is_read_to_its_end() -> None:
    for filling in ('"', "RENDER_ABORT", "frame=", "\\", "2026-03-01T12:00:00Z ", "a"):
        line = f"RENDER_ABORT {filling * (65_536 // len(filling))}"
        # A pattern that goes back and forth would never come to its end.
        assert read_line(ENGINE, line)[0] == "render_abort"


def rule(**changes: Any) -> str:
    fields = {
        "name": "r",
        "contains": "ABORT",
        "pattern": "ABORT (?P<what>\\\\w+)",
        "event": '{type: t, data: {a: "{what}", b: "{what:int}"}}',
        "examples": "[{line: ABORT 7, event: {type: t, data: {a: '7', b: 7}}}]",
    } | changes
    return "rules:\n- " + "\n  ".join(
        f"{key}: {value}" if value[:1] in "[{" else f'{key}: "{value}"'
        for key, value in fields.items()
        if value
    )


def test_a_rule_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(rule())
    rules = load_rules(["veo-engine", str(tmp_path / "mine.yaml")])
    assert read_line(rules, "ABORT 7") == ("r", {"type": "t", "data": {"a": "7", "b": 7}})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("rules: [", "mine: while parsing a flow node"),
        ("rules: 7", "mine: rules: Input should be a valid list"),
        ("a: 1", "mine: rules: Field required"),
        ("", "mine: it: Input should be a valid dictionary"),
        ("rules: 2024-99-99", "mine: a value in it cannot be read"),
        (rule(pattern="("), "mine: rule r: pattern: missing ), unterminated subpattern"),
        (rule(pattern="ABORT"), "mine: rule r: event: the pattern has no group what"),
        (rule(examples="[]"), "mine: rule r: wants examples: a line with the event it means"),
        (
            rule(examples="[{line: ABORT 7, event: null}]"),
            "mine: rule r: example 'ABORT 7' gives {'type': 't', 'data': {'a': '7', 'b': 7}}, not None",
        ),
        (rule(colour="red"), "mine: rules.0.colour: Extra inputs are not permitted"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(text: str, fault: str) -> None:
    with pytest.raises(BadConfig) as refused:
        parse_rules(text, "mine")
    assert refused.value.faults[0].startswith(fault)


@pytest.mark.parametrize("word", ["seven", "7" * 5000, "٧x"])
def test_what_is_no_number_is_left_out(word: str) -> None:
    rules = parse_rules(rule(), "mine")
    assert read_line(rules, f"ABORT {word}") == ("r", {"type": "t", "data": {"a": word[:1000]}})


def test_a_line_that_fails_costs_no_other(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(f"RENDER_ABORT frame={number}\n" for number in range(4)))
    taken: list[int] = []
    dropped: Counter[tuple[str, str]] = Counter()

    def event(said: Mapping[str, Any]) -> None:
        frame = said["data"]["frame"]
        taken.append(frame // (frame - 1))

    reading = LogReading(
        Follower([str(log)], from_beginning=True),
        ENGINE,
        Folds(),
        event=event,
        dropped=lambda kind, reason, count: dropped.update({(kind, reason): count}),
    )
    with structlog.testing.capture_logs() as logged:
        take(reading, 0.0)
    reading.close()
    # 0/-1, 1/0, 2/1, 3/2: the second one cannot be done.
    assert taken == [0, 2, 1]
    assert dropped == {("log_line", "failed"): 1}
    assert set(dropped) <= set(DROPPED_SEEDS)
    assert [line["event"] for line in logged] == ["a line of a log was lost by a fault of ours"]


@pytest.mark.parametrize("name", ["mine", "/nowhere/mine.yaml"])
def test_sets_that_are_not_there_are_refused(name: str) -> None:
    with pytest.raises(BadConfig, match=name):
        load_rules([name])


def take(reading: LogReading, now: float) -> None:
    found = reading.look(now)
    reading.count(found)
    reading.hand_on(found.events)


def test_from_a_file_to_events_and_counts(tmp_path: Path) -> None:
    log = tmp_path / "veo-engine.log"
    log.write_text("")
    events: list[Mapping[str, Any]] = []
    dropped: Counter[tuple[str, str]] = Counter()
    folds = Folds()
    reading = LogReading(
        Follower([str(log), str(tmp_path)]),
        ENGINE,
        folds,
        event=events.append,
        dropped=lambda kind, reason, count: dropped.update({(kind, reason): count}),
    )
    with structlog.testing.capture_logs() as logged:
        take(reading, 0.0)
    assert [line["fault"] for line in logged] == [f"{tmp_path}: {tmp_path} is no regular file"]
    with log.open("ab") as file:
        file.write(b"\0\0caf\xc3\n" + b"x" * (1 << 20) + b"\n")
        file.write(b'RENDER_ABORT frame=37 gpu=3 reason="device lost"\n')
    with structlog.testing.capture_logs() as logged:
        take(reading, 1.0)
    assert sorted(line["fault"].removeprefix(f"{log}: ")[:16] for line in logged) == [
        "a line is not in",
        "a line of more t",
    ]
    reading.close()
    assert [(event["source"], event["data"]["frame"]) for event in events] == [(str(log), 37)]
    assert dropped == {
        ("log_file", "not_a_file"): 1,
        ("log_line", "cut"): 1,
        ("log_line", "encoding"): 1,
    }
    assert set(dropped) <= set(DROPPED_SEEDS)
    lines = TextWriter(Format.TEXT).write(folds.families(0)).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'veo_exporter_log_lines_total{log_rule="none"} 2.0',
        'veo_exporter_log_lines_total{log_rule="render_abort"} 1.0',
        'veo_exporter_log_restarts_total{cause="truncated"} 0.0',
        'veo_exporter_log_restarts_total{cause="rewritten"} 0.0',
        'veo_exporter_log_restarts_total{cause="replaced"} 0.0',
    ]
