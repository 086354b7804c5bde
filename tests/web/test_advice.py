# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""GET /api/v1/advice: for this machine alone, as JSON."""

import json
from pathlib import Path

import pytest

from tests.web import serving

PATH = "/api/v1/advice"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "veo.sock"


@pytest.mark.parametrize("by", ["127.0.0.1", "socket"])
async def test_the_document_is_answered_as_json(path: Path, by: str) -> None:
    async with serving(path) as site:
        site.said.advice = {"schema": "veo.gpu.advice/1", "gpus": [{"uuid": "GPU-é"}]}
        status, text, headers = await site.ask("GET", PATH, by=by)
        assert (status, json.loads(text)) == (200, site.said.advice)
        assert headers["Content-Type"] == "application/json; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert site.said.requests == {(PATH, 200): 1}


async def test_a_name_that_is_not_this_machines_is_refused(path: Path) -> None:
    async with serving(path) as site:
        assert (await site.ask("GET", PATH, Host="evil.example"))[0] == 403
        assert site.said.requests == {(PATH, 403): 1}


async def test_a_parameter_is_refused_and_not_ignored(path: Path) -> None:
    async with serving(path) as site:
        status, text, _ = await site.ask("GET", f"{PATH}?gpu=0")
        assert (status, json.loads(text)) == (
            400,
            {"error": "gpu: no such parameter; /api/v1/advice takes none"},
        )


async def test_it_is_only_asked_for(path: Path) -> None:
    async with serving(path) as site:
        assert (await site.ask("POST", PATH))[0] == 405
