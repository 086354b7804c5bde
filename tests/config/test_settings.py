# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every setting's bounds, from what the documentation promises."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from veo_exporter.config import Gpu, Log, LogFormat, LogLevel, Settings, Web


def refusal(section: type[Web | Gpu | Log], **values: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        section.model_validate(values)
    return str(refused.value.errors()[0].get("ctx", {}).get("error", ""))


def test_defaults_are_those_of_the_design() -> None:
    settings = Settings()
    assert settings.web.listen_address == ":9420"
    assert settings.web.unix_socket is None
    assert settings.gpu == Gpu(
        enabled=True,
        fast_interval="1s",
        full_interval="5s",
        static_interval="60s",
        window="30s",
        call_deadline="2s",
        start_deadline="30s",
        expected_count=None,
        sysfs_root=Path("/sys"),
    )
    assert (settings.gpu.static_interval, settings.gpu.window) == (60, 30)
    assert settings.log == Log(level=LogLevel.INFO, format=LogFormat.CONSOLE)


def test_settings_cannot_be_changed_once_read() -> None:
    with pytest.raises(ValidationError):
        setattr(Settings().gpu, "window", 1)  # noqa: B010, the type checker would refuse it too


@pytest.mark.parametrize(
    "written", [":9420", ":0", ":65535", "127.0.0.1:9420", "localhost:80", "[::1]:9420", "[::]:1"]
)
def test_a_listen_address_is_taken(written: str) -> None:
    assert Web(listen_address=written).listen_address == written


@pytest.mark.parametrize(
    "written", ["9420", "localhost", "", ":", "host:", ":65536", ":-1", ":²", ":٣", ":94 20",
                "a[b:80", ":" + "9" * 5000]
)  # fmt: skip
def test_what_is_no_listen_address_is_refused(written: str) -> None:
    assert refusal(Web, listen_address=written) == (
        f"{written!r} is not host:port: write :9420, 127.0.0.1:9420 or [::1]:9420"
    )


@pytest.mark.parametrize("written", ["::1:9420", "[::1:9420", "::1]:9420"])
def test_an_ipv6_address_wants_brackets(written: str) -> None:
    assert refusal(Web, listen_address=written) == (
        f"{written!r}: write an IPv6 address in brackets, as [::1]:9420"
    )


def test_paths_are_absolute() -> None:
    assert Web(unix_socket=Path("/run/veo.sock")).unix_socket == Path("/run/veo.sock")
    sentence = "'run/veo.sock' is not an absolute path"
    assert refusal(Web, unix_socket="run/veo.sock") == sentence
    assert refusal(Gpu, sysfs_root="run/veo.sock") == sentence


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("fast_interval", "20ms", "60s"),
        ("full_interval", "1s", "10m"),
        ("static_interval", "5s", "1h"),
        ("window", "1s", "1h"),
        ("call_deadline", "100ms", "60s"),
        ("start_deadline", "1s", "10m"),
    ],
)
def test_a_duration_has_bounds_and_they_are_inside(name: str, least: str, most: str) -> None:
    # The others are such that only the one in question is at its bound.
    roomy = {
        "fast_interval": "20ms" if name != "fast_interval" else "60s",
        "full_interval": "1s" if name in ("static_interval", "full_interval") else "60s",
        "static_interval": "1h",
        "window": "60s",
    }
    for inside in (least, most):
        others = {key: value for key, value in roomy.items() if key != name}
        assert isinstance(Gpu.model_validate({**others, name: inside}), Gpu)
    for outside, kind in (("1ms", "greater_than_equal"), ("2d", "less_than_equal")):
        with pytest.raises(ValidationError) as refused:
            Gpu.model_validate({name: outside})
        assert [fault["type"] for fault in refused.value.errors()] == [kind]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"fast_interval": "10s"},
            (
                "fast_interval (10s) is longer than full_interval (5s): "
                "raise full_interval or lower fast_interval"
            ),
        ),
        (
            {"full_interval": "90s"},
            (
                "full_interval (1m30s) is longer than static_interval (1m): "
                "raise static_interval or lower full_interval"
            ),
        ),
        (
            {"fast_interval": "2.5s", "window": "2s"},
            "fast_interval (2.5s) is longer than window (2s): raise window or lower fast_interval",
        ),
    ],
)
def test_intervals_are_in_order(values: dict[str, str], sentence: str) -> None:
    assert refusal(Gpu, **values) == sentence


def test_equal_intervals_are_in_order() -> None:
    equal = dict.fromkeys(("fast_interval", "full_interval", "static_interval", "window"), "5s")
    assert Gpu.model_validate(equal).fast_interval == 5


@pytest.mark.parametrize("count", [0, 1, 8, 1024, "8", None])
def test_a_count_of_gpus_is_taken(count: object) -> None:
    expected = None if count is None else int(str(count))
    assert Gpu.model_validate({"expected_count": count}).expected_count == expected


@pytest.mark.parametrize("count", [-1, 1025, 1.5, "many", True, [8]])
def test_what_is_no_count_of_gpus_is_refused(count: object) -> None:
    with pytest.raises(ValidationError):
        Gpu.model_validate({"expected_count": count})


def test_a_truth_value_is_no_count() -> None:
    # YAML reads a bare "yes" or "on" so.
    assert refusal(Gpu, expected_count=True) == "must be a whole number, not True"


def test_every_setting_says_what_it_does() -> None:
    for section in (Web, Gpu, Log):
        for name, field in section.model_fields.items():
            assert re.fullmatch(r"[A-Za-z].*[.]", field.description or ""), name
