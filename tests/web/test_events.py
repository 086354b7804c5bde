# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""POST /api/v1/events on a real socket, with a real intake behind it."""

import asyncio
import gzip
import io
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.jobs import Desk, event, written
from veo_exporter.jobs import BadBody, Limits, Result
from veo_exporter.web.events import PATH, events_handler
from veo_exporter.web.server import build_runner
from veo_exporter.web.unpacking import unpack

ONE = "application/cloudevents+json"
SEVERAL = "application/cloudevents-batch+json; charset=utf-8"
MAX_BODY_BYTES = 10_000
DAMAGED = "the body is damaged or not packed as its Content-Encoding says: "


class Door:
    """The route, served on a loopback address."""

    def __init__(self, desk: Desk, port: int) -> None:
        self.desk, self.port = desk, port

    async def post(
        self, body: object, content_type: str = SEVERAL, **headers: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        said = {"Content-Type": content_type, **headers}
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"http://127.0.0.1:{self.port}{PATH}", data=data, headers=said) as response,
        ):
            return response.status, await response.json(), dict(response.headers)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not so in time")


@asynccontextmanager
async def open_door(limits: Limits | None = None) -> AsyncIterator[Door]:
    desk = Desk(limits)
    application = web.Application()
    handler = events_handler(desk.intake, max_body_bytes=MAX_BODY_BYTES, max_batch=lambda: 200)
    application.router.add_post(PATH, handler)
    runner = build_runner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield Door(desk, runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_events_are_taken_and_counted() -> None:
    async with open_door() as door:
        body = [written("started", "1"), written("heartbeat", "2"), written("heartbeat", "2")]
        status, answer, _ = await door.post(body)
        assert (status, answer) == (
            202,
            {"taken": {"applied": 2, "repeated": 1}, "refused_count": 0, "refused": []},
        )
        assert (await door.post(written("finished", "3", outcome="success"), ONE))[0] == 202
        assert [job.job_id for job in door.desk.finished] == ["job-1"]
        assert (await door.post([]))[0] == 202


async def test_an_event_may_stand_in_headers() -> None:
    async with open_door() as door:
        headers = {
            "ce-specversion": "1.0",
            "ce-id": "1",
            "ce-source": "worker/1",
            "ce-type": "veo.job.finished",
            "ce-subject": "job-1",
        }
        status, _, _ = await door.post({"outcome": "failed"}, "application/json", **headers)
        assert status == 202
        assert [job.outcome.value for job in door.desk.finished] == ["failed"]


async def test_what_is_wrong_is_named_and_the_rest_is_taken() -> None:
    async with open_door() as door:
        body = [written("started", "1"), written("stage", "2", stage="?", duration_s=1)]
        status, answer, _ = await door.post([*body, written("heartbeat", "3")])
        assert status == 400
        assert answer["taken"] == {"applied": 2}
        (refused,) = answer["refused"]
        assert (refused["index"], refused["id"], refused["reason"]) == (1, "2", "unknown_stage")
        assert refused["message"].startswith("data.stage: '?' is none of queue, prompt,")
        assert len(door.desk.table.in_flight) == 1


async def test_a_long_list_of_faults_is_cut() -> None:
    async with open_door() as door:
        _, answer, _ = await door.post(b"[" + b",".join([b"7"] * 150) + b"]")
        assert (answer["refused_count"], len(answer["refused"])) == (150, 100)


@pytest.mark.parametrize(
    ("body", "content_type", "status", "reason"),
    [
        (b"no json", SEVERAL, 400, "not_json"),
        (b"", ONE, 400, "not_json"),
        (b"{}", "application/json", 415, "unsupported_media_type"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        ([7] * 201, SEVERAL, 413, "too_many"),
        (b" " * (MAX_BODY_BYTES + 1), SEVERAL, 413, "body_too_large"),
        (b" " * 10_000_000, SEVERAL, 413, "body_too_large"),
    ],
    ids=["no json", "empty", "json", "text", "too many", "too large", "10 MB"],
)
async def test_bodies_that_are_not_looked_at(
    body: object, content_type: str, status: int, reason: str
) -> None:
    async with open_door() as door:
        found, answer, _ = await door.post(body, content_type)
        assert (found, answer["refused"][0]["reason"]) == (status, reason)
        assert answer["refused"][0]["message"]
        assert door.desk.dropped == {("event", reason): 1}
        # Nothing else is lost by it.
        assert (await door.post([written("started", "1")]))[0] == 202


async def test_a_body_that_unpacks_to_much_is_refused() -> None:
    async with open_door() as door:
        packed = gzip.compress(b" " * 50_000_000, mtime=0)
        assert len(packed) < 100_000
        status, answer, _ = await door.post(packed, **{"Content-Encoding": "gzip"})
        assert (status, answer["refused"][0]["reason"]) == (413, "body_too_large")
        good = gzip.compress(json.dumps([written("started")]).encode())
        assert (await door.post(good, **{"Content-Encoding": "gzip"}))[0] == 202


@pytest.mark.parametrize(
    ("coding", "body", "status", "reason", "sentence"),
    [
        ("gzip", b"[]", 400, "not_json", DAMAGED + "gzip"),
        ("gzip", b"", 400, "not_json", DAMAGED + "gzip"),
        ("gzip", gzip.compress(b"[]", mtime=0)[:-9], 400, "not_json", DAMAGED + "gzip"),
        ("gzip", gzip.compress(b"[]", mtime=0) + b"rest", 400, "not_json", DAMAGED + "gzip"),
        ("X-Gzip", b"[]", 400, "not_json", DAMAGED + "x-gzip"),
        ("deflate", b"zzz", 400, "not_json", DAMAGED + "deflate"),
        ("deflate", zlib.compress(b"[]") + b"rest", 400, "not_json", DAMAGED + "deflate"),
        ("gzip", b"\0" * (MAX_BODY_BYTES + 1), 413, "body_too_large", "the body is larger than"),
        ("deflate", zlib.compress(b" " * 20_000), 413, "body_too_large", "the body is larger than"),
        *(
            (coding, b"[]", 415, "unsupported_media_type", f"Content-Encoding '{coding}' is not un")
            for coding in ("br", "zstd", "compress", "snappy", "gzip, gzip")
        ),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_told_and_counted(
    coding: str, body: bytes, status: int, reason: str, sentence: str
) -> None:
    async with open_door() as door:
        found, answer, _ = await door.post(body, **{"Content-Encoding": coding})
        assert (found, answer["refused"][0]["reason"]) == (status, reason)
        assert answer["refused"][0]["message"].startswith(sentence)
        assert door.desk.dropped == {("event", reason): 1}
        assert (await door.post([written("started", "1")]))[0] == 202


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        # Two strung together are one.
        ("GZIP", lambda body: gzip.compress(body[:7], mtime=0) + gzip.compress(body[7:], mtime=0)),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body)[2:-4]),
        ("identity", bytes),
    ],
)
async def test_a_body_may_be_packed(coding: str, pack: Callable[[bytes], bytes]) -> None:
    async with open_door() as door:
        body = pack(json.dumps([written("started")]).encode())
        status, answer, _ = await door.post(body, **{"Content-Encoding": coding})
        assert (status, answer["taken"]) == (202, {"applied": 1})


@pytest.mark.parametrize("bound", [10_000, 10_001])
def test_the_bound_is_of_what_comes_out(bound: int) -> None:
    packed = gzip.compress(b"x" * 10_001, mtime=0)
    if bound == 10_001:
        assert unpack(packed, "gzip", bound) == b"x" * 10_001
        return
    with pytest.raises(BadBody, match="larger than 10000 bytes"):
        unpack(packed, "gzip", bound)


async def test_a_body_that_breaks_off_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with open_door() as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            f"Expect: 100-continue\r\nContent-Type: {ONE}\r\n\r\n"
        )
        writer.write(head.encode())
        # The route waits for the body by now.
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b'{"specversion"')
        writer.close()
        await writer.wait_closed()
        await until(lambda: bool(door.desk.dropped))
        assert door.desk.dropped == {("event", "not_json"): 1}
        assert (await door.post([written("started", "1")]))[0] == 202
    assert caplog.records == []


async def test_a_full_table_asks_for_patience() -> None:
    async with open_door(Limits(max_in_flight=1)) as door:
        body = [written("started", "1"), written("started", "2", job="job-2")]
        status, answer, headers = await door.post(body)
        assert (status, headers["Retry-After"]) == (429, "5")
        assert answer["taken"] == {"applied": 1, "table_full": 1}
        door.desk.table.apply(event("finished", "3", outcome="success"))
        # Sent again as it was: what was taken is not taken twice.
        status, answer, _ = await door.post(body)
        assert (status, answer["taken"]) == (202, {Result.APPLIED: 1, Result.REPEATED: 1})
