# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where settings come from, which of them wins, and how a fault is told."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veo_exporter.config import (
    LogLevel,
    Settings,
    environment_name,
    flag_name,
    load_settings,
    sections,
    setting_places,
)
from veo_exporter.errors import BadConfig

Place = tuple[str, ...]
WINDOW: Place = ("gpu", "window")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "veo.yaml"


def faults(
    file: Path | None = None,
    text: str | bytes | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[Place, str] | None = None,
) -> list[str]:
    if file is not None and text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadConfig) as refused:
        load_settings(file, environment or {}, flags or {})
    assert str(refused.value) == "\n".join(refused.value.faults)
    return refused.value.faults


def test_without_anything_the_defaults_hold() -> None:
    assert load_settings(None, {}, {}) == Settings()


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "gpu:\n", "gpu: {}\nweb:\nlog: {}\n"])
def test_an_empty_file_or_section_changes_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    assert load_settings(file, {}, {}) == Settings()


def test_a_flag_overrides_the_environment_which_overrides_the_file(file: Path) -> None:
    file.write_text("gpu: {window: 10s, fast_interval: 2s}\nlog: {level: debug}\n")
    environment = {"VEO_GPU__WINDOW": "20s", "VEO_GPU__FAST_INTERVAL": "3s"}
    flags: dict[Place, str] = {WINDOW: "40s"}

    assert load_settings(file, {}, {}).gpu.window == 10
    assert load_settings(file, environment, {}).gpu.window == 20
    assert load_settings(file, {}, flags).gpu.window == 40
    all_three = load_settings(file, environment, flags)
    assert (all_three.gpu.window, all_three.gpu.fast_interval) == (40, 3)
    assert all_three.log.level is LogLevel.DEBUG


def test_a_wrong_value_that_is_overridden_is_no_fault(file: Path) -> None:
    file.write_text("gpu: {window: soon}\n")
    assert load_settings(file, {"VEO_GPU__WINDOW": "20s"}, {}).gpu.window == 20


def test_each_setting_has_its_variable_and_flag() -> None:
    assert environment_name(("gpu", "fast_interval")) == "VEO_GPU__FAST_INTERVAL"
    assert flag_name(("gpu", "fast_interval")) == "--gpu.fast-interval"
    places = setting_places()
    assert list(sections()) == [
        *(
            "web",
            "gpu",
            "advice",
            "video",
            "jobs",
            "logs",
            "traces",
            "kubernetes",
            "kernel",
            "state",
            "log",
        )
    ]
    assert len(places) > 13
    assert len({environment_name(place) for place in places}) == len(places)
    assert len({flag_name(place) for place in places}) == len(places)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # A typo.
        (
            "gpu: {fast_intervall: 5s}",
            "gpu.fast_intervall: no such setting; the nearest setting is gpu.fast_interval",
        ),
        ("gpu: {xyzzy_plugh: 1}", "gpu.xyzzy_plugh: no such setting"),
        ("gpus: {window: 5s}", "gpus: no such section; the nearest section is gpu"),
        ("alerting: {}", "alerting: no such section"),
        ("listen_address: ':9420'", "listen_address: no such section"),
        ("1: {}", "1: keys should be strings, not 1"),
        # A wrong unit, or none.
        ("gpu: {window: 5}", "gpu.window: 5 has no unit: write 5ms, 5s or 5m"),
        (
            "gpu: {window: 5 parsecs}",
            ("gpu.window: '5 parsecs' is not a duration: write a number with ms, s, m, h or d, "
            "such as 100ms or 1m30s"),
        ),
        (
            "gpu: {window:}",
            ("gpu.window: None is not a duration: write a number with ms, s, m, h or d, "
            "such as 100ms or 1m30s"),
        ),
        # Out of bounds.
        ("gpu: {fast_interval: 10ms}", "gpu.fast_interval: must be at least 20ms, not 10ms"),
        ("gpu: {window: 2h}", "gpu.window: must be at most 1h, not 2h"),
        ("gpu: {expected_count: 5000}", "gpu.expected_count: must be at most 1024, not 5000"),
        ("gpu: {expected_count: 5000.0}", "gpu.expected_count: must be at most 1024, not 5000.0"),
        ("gpu: {expected_count: -1}", "gpu.expected_count: must be at least 0, not -1"),
        # A wrong type.
        ("gpu: 5", "gpu: must be a mapping of settings, not 5"),
        ("gpu: [window]", "gpu: must be a mapping of settings, not ['window']"),
        ("gpu: {expected_count: many}", "gpu.expected_count: must be a whole number, not 'many'"),
        ("gpu: {expected_count: 1.5}", "gpu.expected_count: must be a whole number, not 1.5"),
        ("gpu: {expected_count: yes}", "gpu.expected_count: must be a whole number, not True"),
        ("gpu: {enabled: maybe}", "gpu.enabled: must be true or false, not 'maybe'"),
        ("web: {unix_socket: 5}", "web.unix_socket: must be a path, not 5"),
        ("web: {listen_address: 9420}",
         "web.listen_address: must be a string (in quotes), not 9420"),
        (
            "log: {level: loud}",
            "log.level: input should be 'debug', 'info', 'warning' or 'error', not 'loud'",
        ),
        # Two settings that do not go together.
        (
            "gpu: {fast_interval: 10s}",
            ("gpu: fast_interval (10s) is longer than full_interval (5s): "
            "raise full_interval or lower fast_interval"),
        ),
    ],
)  # fmt: skip
def test_a_fault_of_the_file_names_file_and_setting(file: Path, text: str, sentence: str) -> None:
    assert faults(file, text) == [f"{file}: {sentence}"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gpu:\n  enabled: true\n  enabled: false\n", "line 3: enabled stands twice"),
        ("gpu: {}\nweb: {}\ngpu: {}\n", "line 3: gpu stands twice"),
        ("- gpu", "wants sections such as 'gpu:' at its top, not a list"),
        ("hello", "wants sections such as 'gpu:' at its top, not a str"),
        ("gpu: {window: 2024-99-99}", "a value in it cannot be read: month must be in 1..12"),
        ("gpu: {[1]: 2}", "line 1: found unhashable key"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        (b"\xff", "unacceptable character #x00ff: invalid start byte in \"<byte string>\", position 0"),
        ("gpu: !!python/object:os.system {}",
         "line 1: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_understood_is_named_with_the_line(
    file: Path, text: str | bytes, sentence: str
) -> None:
    assert faults(file, text) == [f"{file}: {sentence}"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent.yaml"
    assert faults(absent) == [f"{absent}: cannot be read: No such file or directory"]
    assert faults(tmp_path) == [f"{tmp_path}: cannot be read: Is a directory"]


def test_yaml_merges_are_understood_and_may_be_overridden(file: Path) -> None:
    file.write_text(
        "log: &common {level: debug}\ngpu: {<<: {window: 10s, fast_interval: 2s}, window: 20s}\n"
    )
    read = load_settings(file, {}, {})
    assert (read.gpu.window, read.gpu.fast_interval) == (20, 2)


def test_a_fault_of_a_variable_names_the_variable_and_not_the_file(file: Path) -> None:
    assert faults(file, "gpu: {window: 5s}", environment={"VEO_GPU__WINDOW": "7"}) == [
        (
            "VEO_GPU__WINDOW: '7' is not a duration: write a number with ms, s, m, h or d, "
            "such as 100ms or 1m30s"
        )
    ]


def test_a_fault_of_a_flag_names_the_flag(file: Path) -> None:
    environment = {"VEO_GPU__EXPECTED_COUNT": "8"}
    flags: dict[Place, str] = {("gpu", "expected_count"): "2000", ("log", "format"): "xml"}
    assert faults(file, "", environment=environment, flags=flags) == [
        "--gpu.expected-count: must be at most 1024, not 2000",
        "--log.format: input should be 'console' or 'json', not 'xml'",
    ]


def test_a_fault_without_a_file_names_the_setting_alone() -> None:
    assert faults(environment={"VEO_GPU__WINDOWS": "5s"}) == [
        (
            "environment variable VEO_GPU__WINDOWS: no such setting; "
            "the nearest setting is VEO_GPU__WINDOW"
        )
    ]


def test_settings_that_do_not_go_together_name_who_said_so(file: Path) -> None:
    sentence = (
        "fast_interval (10s) is longer than full_interval (6s): "
        "raise full_interval or lower fast_interval"
    )
    flags: dict[Place, str] = {("gpu", "fast_interval"): "10s"}
    assert faults(file, "gpu: {full_interval: 6s}", flags=flags) == [
        f"--gpu.fast-interval: {sentence}"
    ]
    assert faults(environment={"VEO_GPU__FULL_INTERVAL": "6s"}, flags=flags) == [
        f"--gpu.fast-interval, VEO_GPU__FULL_INTERVAL: {sentence}"
    ]


def test_every_fault_is_told_at_once(file: Path) -> None:
    assert faults(
        file, "gpu: {windoww: 5s, enabled: maybe}\nlogg: {}\n",
        environment={"VEO_LOGG": "x", "VEO_GPU__CALL_DEADLINE": "1us"},
    ) == [
        "environment variable VEO_LOGG: no such setting; the nearest setting is VEO_LOG__LEVEL",
        f"{file}: gpu.enabled: must be true or false, not 'maybe'",
        ("VEO_GPU__CALL_DEADLINE: '1us' is not a duration: write a number with ms, s, m, h or d, "
        "such as 100ms or 1m30s"),
        f"{file}: gpu.windoww: no such setting; the nearest setting is gpu.window",
        f"{file}: logg: no such section; the nearest section is log",
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", ["VEO", "VEO_EXPORTER", "VEO_JOB_GATEWAY"])
def test_service_links_of_kubernetes_are_no_settings(prefix: str) -> None:
    # What kubelet sets for a Service on port 9420, beside any pod of its namespace.
    environment = {
        f"{prefix}_SERVICE_HOST": "10.96.0.12",
        f"{prefix}_SERVICE_PORT": "9420",
        f"{prefix}_SERVICE_PORT_METRICS": "9420",
        f"{prefix}_PORT": "tcp://10.96.0.12:9420",
        f"{prefix}_PORT_9420_TCP": "tcp://10.96.0.12:9420",
        f"{prefix}_PORT_9420_TCP_PROTO": "tcp",
        f"{prefix}_PORT_9420_TCP_PORT": "9420",
        f"{prefix}_PORT_9420_TCP_ADDR": "10.96.0.12",
    }
    assert load_settings(None, environment, {}) == Settings()


@pytest.mark.parametrize("name", ["VEO_WEB_PORT", "VEO_PORT"])
def test_a_port_that_a_person_wrote_is_no_service_link(name: str) -> None:
    [sentence] = faults(environment={name: "9421"})
    assert sentence.startswith(f"environment variable {name}: no such setting")


def test_variables_of_others_are_left_alone() -> None:
    assert (
        load_settings(None, {"VEOX": "1", "PATH": "/bin", "veo_gpu__window": "x"}, {}) == Settings()
    )


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["5s", "100ms", "debug", "json", ":0", "/sys", "9" * 400 + "s", 10**30])
)  # fmt: skip
KEYS = (
    st.sampled_from(["gpu", "web", "log", *(name for _, name in setting_places())])
    | st.text(max_size=6)
    | st.integers()
)
NESTED: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ENVIRONMENT = st.dictionaries(
    st.sampled_from([environment_name(place) for place in setting_places()])
    | st.text("ABC_PORT", max_size=6).map("VEO_".__add__),
    st.text(max_size=8) | st.sampled_from(["5s", "1", "true"]),
    max_size=3,
)
FLAGS = st.dictionaries(st.sampled_from(setting_places()), st.text(max_size=8), max_size=3)
QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def refused_in_words_if_at_all(
    file: Path, text: str, environment: dict[str, str], flags: dict[Place, str]
) -> None:
    file.write_text(text, encoding="utf-8")
    faults = ["none"]
    try:
        load_settings(file, environment, flags)
    except BadConfig as refused:
        faults = refused.faults
    assert faults
    assert all(faults)


@QUICK
@given(content=NESTED, environment=ENVIRONMENT, flags=FLAGS)
def test_any_content_is_taken_or_refused_in_words(
    file: Path, content: Any, environment: dict[str, str], flags: dict[Place, str]
) -> None:
    refused_in_words_if_at_all(
        file, yaml.safe_dump(content, allow_unicode=True), environment, flags
    )


YAMLISH = st.lists(
    st.sampled_from(
        ["gpu", "window", ": ", ":", "\n", "\n  ", "- ", "[", "]", "{", "}", ",", "&a ", "*a", "<<",
         "!!int ", "!!bool ", "!!timestamp ", "!!float ", "!!set ", "!!omap ", "!!binary ", "? ",
         "| ", "> ", "'", '"', "#", "5s", "2024-13-01", "0x_", "1:60:1.5", "~", "%YAML 1.1", "---"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@QUICK
@given(text=YAMLISH | st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_is_taken_or_refused_in_words(file: Path, text: str) -> None:
    refused_in_words_if_at_all(file, text, {}, {})


@pytest.mark.parametrize(
    "text",
    ["[" * 1000, "gpu: !!bool x", "gpu: !!timestamp x", "gpu: !!int ''", "gpu: {window: 0x_}",
     "gpu: {expected_count: " + "9" * 5000 + "}", "gpu: &a {window: *a}", "gpu: &a [*a]",
     "1:" * 300 + "1.5"],
)  # fmt: skip
def test_what_the_yaml_reader_chokes_on_is_refused_in_words(file: Path, text: str) -> None:
    refused_in_words_if_at_all(file, text, {}, {})
