# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Log lines: on standard error, for people or for collectors, without anybody's secrets."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from veo_exporter.cli.log_output import set_up_logging
from veo_exporter.cli.patient_stream import PatientStream
from veo_exporter.config import Log, LogFormat, LogLevel


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


STREAMS: list[PatientStream] = []
"""Lines are written on a thread: what is read has to be waited for."""


def set_up(level: LogLevel = LogLevel.INFO, form: LogFormat = LogFormat.JSON) -> None:
    STREAMS.append(set_up_logging(Log(level=level, format=form)))


def printed_by(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    for stream in STREAMS:
        stream.drain()
    STREAMS.clear()
    out, err = capsys.readouterr()
    return out, err


def objects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    out, err = printed_by(capsys)
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


def test_a_line_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    set_up()
    structlog.get_logger("a").info("serving", port=9420, text='é "\n')
    [entry] = objects(capsys)
    assert str(entry.pop("timestamp")).endswith("Z")
    assert entry == {"event": "serving", "level": "info", "port": 9420, "text": 'é "\n'}


def test_console_lines_carry_level_event_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(form=LogFormat.CONSOLE)
    structlog.get_logger("a").warning("serving", port=9420)
    out, err = printed_by(capsys)
    assert out == ""
    [line] = err.splitlines()
    assert "warning" in line
    assert "serving" in line
    assert "port=9420" in line
    # Nobody's terminal, so no colours.
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        (LogLevel.DEBUG, ["debug", "info", "warning", "error"]),
        (LogLevel.INFO, ["info", "warning", "error"]),
        (LogLevel.WARNING, ["warning", "error"]),
        (LogLevel.ERROR, ["error"]),
    ],
)
def test_less_than_the_level_is_not_logged(
    capsys: pytest.CaptureFixture[str], level: LogLevel, logged: list[str]
) -> None:
    set_up(level)
    for name in ("debug", "info", "warning", "error"):
        getattr(structlog.get_logger("a"), name)(name)
    assert [entry["event"] for entry in objects(capsys)] == logged


def test_what_libraries_warn_of_is_in_the_same_stream(capsys: pytest.CaptureFixture[str]) -> None:
    set_up()
    library = logging.getLogger("some.library")
    library.warning("%d %% of %s", 5, "x")
    library.info("too little to be told")
    [entry] = objects(capsys)
    assert (entry["event"], entry["level"], entry["logger"]) == (
        "5 % of x",
        "warning",
        "some.library",
    )


@pytest.mark.parametrize(
    ("number", "level"), [(35, "warning"), (45, "error"), (50, "critical"), (99, "critical")]
)
def test_a_level_of_a_librarys_own_is_told_as_the_one_below(
    capsys: pytest.CaptureFixture[str], number: int, level: str
) -> None:
    set_up()
    logging.getLogger("some.library").log(number, "odd")
    [entry] = objects(capsys)
    assert (entry["event"], entry["level"]) == ("odd", level)


@pytest.mark.parametrize("form", LogFormat)
def test_a_traceback_tells_where_and_not_what_variables_held(
    capsys: pytest.CaptureFixture[str], form: LogFormat
) -> None:
    set_up(form=form)

    def fail(token: str) -> None:
        raise RuntimeError("it broke")

    for log in (structlog.get_logger("ours").exception, logging.getLogger("theirs").exception):
        try:
            fail("hunter" + "2")
        except RuntimeError:
            log("failed")
    _, text = printed_by(capsys)
    if form is LogFormat.CONSOLE:
        assert text.count("RuntimeError: it broke\n") == 2
    assert "fail" in text
    assert "hunter2" not in text
    if form is LogFormat.JSON:
        first, second = (json.loads(line) for line in text.splitlines())
        for entry in (first, second):
            [trace] = entry["exception"]
            assert (trace["exc_type"], trace["exc_value"]) == ("RuntimeError", "it broke")
