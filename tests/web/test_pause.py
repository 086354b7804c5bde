# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who may ask for a pause, and what a request may say."""

from pathlib import Path

import pytest

from tests.web import serving
from veo_exporter.web.doors import Refusal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "veo.sock"


@pytest.mark.parametrize("asked", ["/-/pause", "/-/resume", "/-/pause?for=1m"])
async def test_only_the_socket_may_ask(path: Path, asked: str) -> None:
    async with serving(path) as site:
        status, text, _ = await site.ask("POST", asked)
        assert status == 403
        assert "unix socket alone" in text
        assert site.said.refusals == {Refusal.NOT_ON_SOCKET: 1}
        assert (site.said.pauses, site.said.resumes) == ([], 0)
        assert (await site.ask("GET", asked, by="socket"))[0] == 405


@pytest.mark.parametrize(("asked", "written"), [("", None), ("?for=10m", "10m"), ("?for=", "")])
async def test_the_duration_is_handed_over_as_written(
    path: Path, asked: str, written: str | None
) -> None:
    async with serving(path) as site:
        site.said.pause_answer = (202, "paused, but not released")
        status, text, _ = await site.ask("POST", f"/-/pause{asked}", by="socket")
        assert (status, text) == (202, "paused, but not released\n")
        assert site.said.pauses == [written]
        assert site.said.requests == {("/-/pause", 202): 1}


async def test_the_end_of_it(path: Path) -> None:
    async with serving(path) as site:
        assert (await site.ask("POST", "/-/resume", by="socket"))[:2] == (200, "resumed\n")
        assert site.said.resumes == 1


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ("/-/pause?four=10m", "four: no such parameter; /-/pause takes for only"),
        ("/-/pause?for=10m&for=20m", "for: stands twice"),
        ("/-/resume?for=10m", "for: no such parameter; /-/resume takes none"),
    ],
)
async def test_a_parameter_that_would_be_ignored_is_refused(
    path: Path, asked: str, fault: str
) -> None:
    async with serving(path) as site:
        assert (await site.ask("POST", asked, by="socket"))[:2] == (400, fault + "\n")
        assert (site.said.pauses, site.said.resumes) == ([], 0)
