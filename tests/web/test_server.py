# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The HTTP server on real sockets: routes, headers, counts, and who may listen where."""

import asyncio
import errno
import os
import re
import socket
import stat
from pathlib import Path

import pytest

from tests.web import Said, landing, serving
from veo_exporter.errors import BadConfig, ListenFailed
from veo_exporter.web import Server, build_application


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "veo.sock"


@pytest.fixture
def precious(path: Path) -> str:
    """What somebody else keeps where the socket should be."""
    path.write_text("precious")
    return "precious"


def mode_of(path: Path) -> int | None:
    """The rights of a socket; None if nothing is there."""
    if not path.exists():
        return None
    assert path.is_socket()
    return stat.S_IMODE(path.stat().st_mode)


async def refusal_to_listen(address: str, path: Path | None = None) -> str:
    server = Server(build_application(Said().answers()))
    try:
        with pytest.raises(ListenFailed) as failed:
            await server.start(address, path)
    finally:
        await server.stop()
    return str(failed.value)


async def test_metrics_are_what_the_page_says(path: Path) -> None:
    async with serving(path) as site:
        status, text, headers = await site.ask(
            "GET", "/metrics", Accept="text/plain", **{"Accept-Encoding": "identity"}
        )
        assert (status, text) == (200, "veo_gpus_visible 8.0\n")
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert site.said.asked == [("text/plain", "identity")]


async def test_head_is_answered_like_get_without_the_body(path: Path) -> None:
    async with serving(path) as site:
        status, text, headers = await site.ask("HEAD", "/metrics")
        assert (status, text) == (200, "")
        assert headers["Content-Length"] == str(len("veo_gpus_visible 8.0\n"))
        assert (await site.ask("HEAD", "/-/healthy"))[0] == 200
        assert (await site.ask("HEAD", "/"))[0] == 200


async def test_health_is_of_the_process(path: Path) -> None:
    async with serving(path) as site:
        assert (await site.ask("GET", "/-/healthy"))[:2] == (200, "healthy\n")
        site.said.fault = "the sampler's thread has ended"
        assert (await site.ask("GET", "/-/healthy"))[:2] == (
            503,
            "the sampler's thread has ended\n",
        )


async def test_readiness_names_what_is_withdrawn(path: Path) -> None:
    async with serving(path) as site:
        assert (await site.ask("GET", "/-/ready"))[:2] == (200, "ready\n")
        site.said.withdrawn = ["GPU 3 (GPU-3): lost", "GPU 4 (GPU-4): hung"]
        assert (await site.ask("GET", "/-/ready"))[:2] == (
            503,
            "withdrawn:\nGPU 3 (GPU-3): lost\nGPU 4 (GPU-4): hung\n",
        )
        assert (await site.ask("GET", "/-/healthy"))[0] == 200


async def test_the_landing_page_may_load_nothing_and_stand_in_no_frame(path: Path) -> None:
    async with serving(path) as site:
        status, text, headers = await site.ask("GET", "/")
        assert status == 200
        assert "veo-exporter on node-1" in text
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["Content-Security-Policy"] == (
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
        )
        assert headers["Referrer-Policy"] == "no-referrer"


async def test_what_utf8_cannot_say_costs_a_character_of_the_landing_page(path: Path) -> None:
    async with serving(path) as site:
        site.said.landing = lambda: landing(node="node\udcff1")
        status, text, _ = await site.ask("GET", "/")
        assert status == 200
        assert "veo-exporter on node?1" in text


@pytest.mark.parametrize("asked", ["/metrics", "/-/healthy", "/-/ready", "/", "/nothing"])
async def test_every_answer_is_signed_and_not_guessed_at(path: Path, asked: str) -> None:
    async with serving(path) as site:
        for host in ("localhost", "evil.example"):
            _, _, headers = await site.ask("GET", asked, Host=host)
            assert headers["Server"] == "veo-exporter/1.2.3"
            assert headers["X-Content-Type-Options"] == "nosniff"


async def test_requests_are_counted_by_path_and_status(path: Path) -> None:
    async with serving(path) as site:
        for _ in range(2):
            await site.ask("GET", "/metrics?collect[]=x")
        site.said.withdrawn = ["all"]
        for method, asked in (
            ("GET", "/-/ready"),
            ("HEAD", "/"),
            ("GET", "/wp-login.php"),
            ("GET", "/%2e%2e/etc/passwd"),
            ("PUT", "/metrics"),
            ("POST", "/-/reload"),
        ):
            await site.ask(method, asked)
        await site.ask("GET", "/", Host="evil.example")
        assert site.said.requests == {
            ("/metrics", 200): 2,
            ("/-/ready", 503): 1,
            ("/", 200): 1,
            ("/", 403): 1,
            ("other", 404): 2,
            ("other", 405): 1,
            ("/-/reload", 403): 1,
        }


async def test_an_answer_that_fails_is_counted_and_says_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(path) as site:
        site.said.page = RuntimeError("secret")
        status, text, _ = await site.ask("GET", "/metrics")
        assert status == 500
        assert "secret" not in text
        assert site.said.requests == {("/metrics", 500): 1}
        assert (await site.ask("GET", "/-/healthy"))[0] == 200
    assert "secret" in caplog.text


async def test_a_refused_reload_says_why(path: Path) -> None:
    async with serving(path) as site:
        site.said.reload_error = BadConfig(["gpu.windoww: no such setting", "log: no"])
        assert (await site.ask("POST", "/-/reload", by="socket"))[:2] == (
            400,
            "refused, the old configuration stays:\ngpu.windoww: no such setting\nlog: no\n",
        )
        assert (await site.ask("GET", "/-/reload", by="socket"))[0] == 405


async def test_the_socket_is_for_its_owner_and_gone_at_the_end(path: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    async with serving(path) as site:
        assert mode_of(path) == 0o600
        assert (await site.ask("GET", "/metrics", by="socket"))[0] == 200
        # Files that are made later have the rights they would have had.
        assert os.umask(mask) == mask
    assert mode_of(path) is None


async def test_a_socket_that_a_killed_process_left_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    # Closed without removing the file, as the kernel does for a killed process.
    assert mode_of(path) is not None
    async with serving(path) as site:
        assert (await site.ask("GET", "/metrics", by="socket"))[0] == 200


async def test_a_socket_that_is_served_is_left_alone(path: Path) -> None:
    async with serving(path) as first:
        assert await refusal_to_listen("127.0.0.1:0", path) == (
            f"web.unix_socket {path}: another process is serving on it: end it or choose another"
        )
        assert (await first.ask("GET", "/metrics", by="socket"))[0] == 200


async def test_a_file_that_is_no_socket_is_left_alone(path: Path, precious: str) -> None:
    assert await refusal_to_listen("127.0.0.1:0", path) == (
        f"web.unix_socket {path}: a file that is no socket stands there: remove it or choose another"
    )
    assert await asyncio.to_thread(path.read_text) == precious


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent/veo.sock", "No such file or directory"),
        ("s" * 120, "AF_UNIX path too long"),
        ("s" * 300, "File name too long"),
    ],
)
async def test_a_socket_that_cannot_be_made_is_named(tmp_path: Path, name: str, why: str) -> None:
    path = tmp_path / name
    assert await refusal_to_listen("127.0.0.1:0", path) == (
        f"web.unix_socket {path}: {why}: choose a shorter path in a folder we may write to"
    )


async def test_a_taken_port_is_named_with_the_remedy(path: Path) -> None:
    async with serving(path) as site:
        address = f"127.0.0.1:{site.port}"
        assert await refusal_to_listen(address) == (
            f"web.listen_address {address}: Address already in use: free the port or choose another"
        )


async def test_an_address_of_another_machine_is_named_with_the_remedy() -> None:
    refused = await refusal_to_listen("203.0.113.1:0")
    remedy = "write an address of this machine, or none for all of them"
    assert re.fullmatch(rf"web\.listen_address 203\.0\.113\.1:0: .+: {remedy}", refused)
    assert os.strerror(errno.EADDRNOTAVAIL) in refused or "could not bind" in refused


async def test_a_name_that_does_not_resolve_is_named_with_the_remedy() -> None:
    refused = await refusal_to_listen("no-such-host.invalid:9420")
    remedy = "write an address of this machine, or none for all of them"
    assert re.fullmatch(rf"web\.listen_address no-such-host\.invalid:9420: .+: {remedy}", refused)
    assert "Unknown error" not in refused


async def test_a_failed_socket_gives_the_port_back(tmp_path: Path) -> None:
    server = Server(build_application(Said().answers()))
    with pytest.raises(ListenFailed):
        await server.start("127.0.0.1:0", tmp_path / "absent" / "veo.sock")
    assert server.port
    await server.stop()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", server.port))


@pytest.mark.parametrize("address", ["localhost:0", ":0", "127.0.0.1:0"])
async def test_it_listens_where_it_is_told(path: Path, address: str) -> None:
    async with serving(path, address) as site:
        assert site.port > 0
        # Whichever family a free port was found for first.
        statuses = []
        for by in ("127.0.0.1", "[::1]"):
            try:
                statuses.append((await site.ask("GET", "/metrics", by=by))[0])
            except OSError:
                continue
        assert 200 in statuses
