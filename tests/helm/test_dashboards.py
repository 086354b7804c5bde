# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Dashboards arrive in Grafana's sidecar byte by byte, one ConfigMap each."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.helm.chart import CHART, ROOT, Manifest, copy_chart, render

LARGEST_BYTES = 250_000


def _dashboards(manifests: list[Manifest]) -> list[Manifest]:
    return [
        manifest
        for manifest in manifests
        if manifest["kind"] == "ConfigMap" and "dashboard" in manifest["metadata"]["name"]
    ]


def _rendered(chart: Path = CHART, **values: Any) -> list[Manifest]:
    return _dashboards(render({"dashboards": {"enabled": True, **values}}, chart=chart))


def _linked(runbooks: str, *, rules: bool) -> dict[str, Any]:
    values = {
        "dashboards": {"enabled": True},
        "prometheusRule": {"enabled": rules, "runbookBaseUrl": runbooks},
    }
    texts = [
        text
        for manifest in _dashboards(render(values))
        for name, text in manifest["data"].items()
        if name == "veo-node-gpu.json"
    ]
    dashboard: dict[str, Any] = json.loads(texts[0])
    return dashboard


@pytest.mark.parametrize("rules", [True, False], ids=["with rules", "without rules"])
def test_the_links_to_runbooks_go_where_those_of_the_alerts_go(rules: bool) -> None:
    whole = json.loads((CHART / "files/dashboards/node-gpu.json").read_text())
    found = _linked("https://wiki.example.org/a&b/", rules=rules)
    (constant,) = (row for row in found["templating"]["list"] if row["name"] == "runbooks")
    assert constant["query"] == "https://wiki.example.org/a&b"
    (theirs,) = (row for row in whole["templating"]["list"] if row["name"] == "runbooks")
    theirs["query"] = constant["query"]
    assert found == whole, "and nothing else is changed"


def test_without_runbooks_there_is_no_link_to_them() -> None:
    found = _linked("", rules=True)
    assert "${runbooks}" not in json.dumps(found)
    whole = json.loads((CHART / "files/dashboards/node-gpu.json").read_text())
    assert [panel["title"] for panel in found["panels"]] == [
        panel["title"] for panel in whole["panels"]
    ]


def test_the_chart_has_those_of_the_repository() -> None:
    theirs = {path.name: path.read_text() for path in (ROOT / "dashboards/json").glob("*.json")}
    ours = {path.name: path.read_text() for path in (CHART / "files/dashboards").glob("*.json")}
    assert ours == theirs, "run `make generate`, and delete copies of dashboards that are gone"


def test_each_has_a_config_map() -> None:
    texts = sorted(path.read_text() for path in (CHART / "files/dashboards").glob("*.json"))
    found = _rendered()
    assert sorted(text for manifest in found for text in manifest["data"].values()) == texts
    for manifest in found:
        assert manifest["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert manifest["metadata"]["annotations"] == {"grafana_folder": "Veo"}
        assert len(str(manifest["data"]).encode()) < LARGEST_BYTES


def test_file_names_in_the_sidecars_folder_are_ours() -> None:
    names = [name for manifest in _rendered() for name in manifest["data"]]
    assert len(names) == len(set(names))
    assert all(name.startswith("veo-") and not name.startswith("veo-veo-") for name in names)


def test_none_and_many(tmp_path: Path) -> None:
    chart = copy_chart(tmp_path)
    shutil.rmtree(chart / "files/dashboards", ignore_errors=True)
    assert _rendered(chart) == []
    (chart / "files/dashboards").mkdir()
    text = '{"title": "{{node}} {{ `x` }} ${y}",\n "expr": "a{b=\\"c\\"}"}\n'
    for name in ("one", "veo-two"):
        (chart / f"files/dashboards/{name}.json").write_text(text)
    found = {
        manifest["metadata"]["name"].partition("-dashboard-")[2]: manifest["data"]
        for manifest in _rendered(chart)
    }
    assert found == {"one": {"veo-one.json": text}, "veo-two": {"veo-two.json": text}}


def test_folder_and_labels_are_the_users(tmp_path: Path) -> None:
    chart = copy_chart(tmp_path)
    (chart / "files/dashboards").mkdir(exist_ok=True)
    (chart / "files/dashboards/one.json").write_text("{}\n")
    found = _rendered(chart, folder="A: b", folderAnnotation="f", labels={"mine": "yes"})
    assert found[0]["metadata"]["annotations"] == {"f": "A: b"}
    assert found[0]["metadata"]["labels"]["mine"] == "yes"
    assert all(
        "annotations" not in manifest["metadata"] for manifest in _rendered(chart, folder="")
    )
