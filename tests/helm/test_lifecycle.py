# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The chart within another chart, and on top of an older release."""

from pathlib import Path

import yaml

from tests.helm.chart import CHART, EVERYTHING, container, copy_chart, only, render, template
from tests.helm.kinds import validate


def test_works_as_a_subchart(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    copy_chart(parent / "charts")
    dependency = {"name": "veo-exporter", "version": "0.1.0", "condition": "veo-exporter.enabled"}
    (parent / "Chart.yaml").write_text(
        yaml.safe_dump(
            {"apiVersion": "v2", "name": "p", "version": "1.0.0", "dependencies": [dependency]}
        )
    )
    values = {
        "global": {"imageRegistry": "registry.example.com"},
        "veo-exporter": {"enabled": True, **EVERYTHING},
    }
    (parent / "values.yaml").write_text(yaml.safe_dump(values))
    kinds = {manifest["kind"] for manifest in render(chart=parent)}
    assert {"DaemonSet", "PodMonitor", "PrometheusRule"} <= kinds
    assert render({"veo-exporter": {"enabled": False}}, chart=parent) == []


def test_values_of_an_older_release_render(tmp_path: Path) -> None:
    """`helm upgrade --reuse-values`: the new values.yaml is not there, all of it at the worst."""
    chart = copy_chart(tmp_path)
    (chart / "values.yaml").write_text("{}\n")
    manifests = render(EVERYTHING, chart=chart)
    for manifest in manifests:
        validate(manifest)
    assert {manifest["kind"] for manifest in manifests} == {
        manifest["kind"] for manifest in render(EVERYTHING)
    }
    assert only(manifests, "PrometheusRule") == only(render(EVERYTHING), "PrometheusRule")
    assert container(manifests)["ports"] == container(render())["ports"]


def test_values_without_one_section_render(tmp_path: Path) -> None:
    """As above, for each section by itself: what the others say still holds."""
    chart = copy_chart(tmp_path)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for missing in values:
        # Without config the node's sysfs is mounted where the exporter looks by itself.
        older = {name: value for name, value in values.items() if name != missing}
        (chart / "values.yaml").write_text(yaml.safe_dump(older))
        rendered = template(chart=chart)
        assert rendered.returncode == 0, f"without {missing}: {rendered.stderr}"
