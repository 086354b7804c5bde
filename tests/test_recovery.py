# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A runbook does not call a node recovered whose GPU did not come back from a reboot."""

import json
import subprocess
from typing import Any

import pytest

from tools.programs import tool
from tools.references import runbook_queries

ABOUT_GPUS = ("VeoGpuLost", "VeoGpuHung", "VeoGpuResetRequired", "VeoGpusMissing")
NODE = 'job="veo", instance="n1:9420", node="n1"'


@pytest.mark.parametrize("alert", ABOUT_GPUS)
def test_a_gpu_that_stayed_away_is_no_recovery_and_one_that_is_back_is(alert: str) -> None:
    asked = [
        query.expr.replace('"NODE"', '"n1"')
        for query in runbook_queries()
        if query.file.endswith(f"/{alert}.md")
        and query.where == "Verify recovery"
        and "veo_gpus_usable" in query.expr
    ]
    assert asked, "the count of before is asked for"
    # Eight; then one is lost; then the node was rebooted without it, and knows of seven.
    series = [
        {"series": f"veo_gpus_expected{{{NODE}}}", "values": "8x9 8x9 7x9 8x9"},
        {"series": f"veo_gpus_usable{{{NODE}}}", "values": "8x9 7x9 7x9 8x9"},
    ]
    none_yet: list[dict[str, Any]] = [
        {"expr": expr, "eval_time": when, "exp_samples": []}
        for expr in asked
        for when in ("15m", "25m")
    ]
    back = [
        {"expr": expr, "eval_time": "35m", "exp_samples": [{"labels": '{node="n1"}', "value": 8}]}
        for expr in asked
    ]
    tests = [{"interval": "1m", "input_series": series, "promql_expr_test": none_yet + back}]
    run = subprocess.run(
        [str(tool("promtool")), "test", "rules", "/dev/stdin"],
        input=json.dumps({"tests": tests}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
