# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""show: complete, for people and for programs."""

import json
import re
from typing import Any

import pytest

from veo_exporter.catalog import CATALOG
from veo_exporter.cli import main
from veo_exporter.config import environment_name, flag_name, setting_places


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["show", *words]) == 0
    return capsys.readouterr().out


def test_metrics_as_json_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = json.loads(shown(capsys, "metrics", "--format", "json"))
    assert [metric["name"] for metric in metrics] == [spec.name for spec in CATALOG]
    for metric in metrics:
        assert metric.keys() == {"name", "type", "unit", "help", "labels", "buckets"}
        assert metric["help"]
        for label in metric["labels"]:
            assert label.keys() == {"name", "meaning", "values"}
    by_name = {metric["name"]: metric for metric in metrics}
    power = by_name["veo_gpu_power_watts"]
    assert (power["type"], power["unit"]) == ("gauge", "watts")
    assert [label["name"] for label in power["labels"]] == ["gpu", "uuid"]
    assert by_name["veo_gpu_energy_joules_total"]["type"] == "counter"
    assert by_name["veo_gpus_visible"]["unit"] is None


def test_metrics_as_markdown_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "metrics")
    rows = re.findall(r"^\| `(\w+)` \| (?:gauge|counter|histogram) \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(spec.name for spec in CATALOG)
    labels = {label.name for spec in CATALOG for label in spec.labels}
    told = re.findall(r"^\| `(\w+)` \| ", text.partition("## Labels")[2], re.MULTILINE)
    assert sorted(told) == sorted(labels)
    widths = {line.count("|") for line in text.splitlines() if line.startswith("| `veo_")}
    assert widths == {5}


def test_settings_as_json_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(shown(capsys, "settings", "--format", "json"))
    rows: list[dict[str, Any]] = content["settings"]
    assert [row["setting"] for row in rows] == [".".join(place) for place in setting_places()]
    window = next(row for row in rows if row["setting"] == "gpu.window")
    assert (window["default"], window["environment"], window["flag"]) == (
        "30s",
        "VEO_GPU__WINDOW",
        "--gpu.window",
    )
    assert all(row["description"] for row in rows)


def test_the_schema_gives_defaults_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(shown(capsys, "settings", "--format", "json"))["schema"]
    assert schema["additionalProperties"] is False
    gpu = schema["$defs"]["Gpu"]["properties"]
    assert gpu["window"]["default"] == "30s"
    assert gpu["window"]["type"] == "string"
    assert re.fullmatch(gpu["window"]["pattern"], gpu["window"]["default"])
    assert not re.search(gpu["window"]["pattern"], "30")
    assert gpu["expected_count"]["default"] is None
    assert schema["properties"]["gpu"]["default"]["static_interval"] == "1m"


def test_settings_as_markdown_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "settings")
    for place in setting_places():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{'.'.join(place)}`"))
        assert f"`{environment_name(place)}`" in row
        assert f"`{flag_name(place)}`" in row
        assert row.count("|") == 6
    assert "| `gpu.enabled` | `true` |" in text
    assert "| `gpu.expected_count` | unset |" in text
    assert "| `gpu.static_interval` | `1m` |" in text
