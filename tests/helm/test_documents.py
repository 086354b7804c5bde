# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What stands about the chart is what is in it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import helm.generation
import tests.helm.chart
import veo_exporter
from helm.values_table import values_rows
from tests.helm.chart import CHART, FEATURES, ROOT
from veo_exporter.cli.show import settings_json

VALUES = (CHART / "values.yaml").read_text()
GENERATED = {
    str(path.relative_to(ROOT)): text for path, text in helm.generation.generated_files().items()
}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_files_are_current(name: str) -> None:
    assert (ROOT / name).read_text() == GENERATED[name], "run `make generate`"


def test_a_dashboard_of_the_same_run_is_copied_as_it_will_be() -> None:
    fresh = {ROOT / "dashboards/json/new.json": "{}\n", ROOT / "docs/metrics.md": "no dashboard"}
    files = helm.generation.generated_files(fresh)
    assert files[CHART / "files/dashboards/new.json"] == "{}\n"
    assert not any("metrics" in path.name for path in files)


def test_versions() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == veo_exporter.__version__
    assert chart["version"] == "0.1.0"


def test_every_value_is_explained() -> None:
    assert [row.name for row in values_rows(VALUES) if not row.meaning] == []


def test_every_value_is_in_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load(VALUES)
    assert schema["properties"].keys() - values.keys() == {"global", "enabled"}
    for name, value in values.items():
        known = schema["properties"][name].get("properties")
        if isinstance(value, dict) and known and name not in ("config", "affinity"):
            assert value.keys() <= known.keys()
            if name in ("image", "service", "scrape", "podMonitor", "prometheusRule", "dashboards"):
                assert value.keys() == known.keys()


def test_the_schema_of_config_is_that_of_the_settings() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]
    settings = {row["setting"] for row in json.loads(settings_json())["settings"]}
    assert settings == {
        f"{section}.{name}"
        for section, inner in schema["properties"].items()
        for name in inner["properties"]
    }
    assert not _keys(schema) & {"$ref", "$defs"}


def _keys(node: Any) -> set[str]:
    if isinstance(node, list):
        return {key for item in node for key in _keys(item)}
    if isinstance(node, dict):
        return set(node) | {key for item in node.values() for key in _keys(item)}
    return set()


def test_templates_name_one_kind_each() -> None:
    for path in (CHART / "templates").glob("*.yaml"):
        assert path.read_text().count("\nkind: ") == 1, path.name


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(CHART.rglob("*")) if path.is_file() and path.suffix != ".json"],
    ids=lambda path: str(path.relative_to(CHART)),
)
def test_every_file_names_its_licence(path: Path) -> None:
    assert "SPDX-License-Identifier: Apache-2.0" in path.read_text()[:400]


def test_features_have_values_of_their_own() -> None:
    assert len(FEATURES) >= 10
    for file in FEATURES:
        assert yaml.safe_load(file.read_text()), file.name


def test_a_missing_tool_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tests.helm.chart, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="run `make tools`"):
        tests.helm.chart.tool("helm")
