# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who is let in: this machine for everything, others for the scrape and no more."""

import socket
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from tests.web import serving
from veo_exporter.web import Refusal
from veo_exporter.web.doors import judge_request, names_loopback

PUBLIC = ("/metrics", "/-/healthy", "/-/ready")


class _Socket:
    def __init__(self, family: socket.AddressFamily) -> None:
        self.family = family


class _Transport:
    """What a request knows of the connection it came by."""

    def __init__(self, peer: object, family: socket.AddressFamily) -> None:
        self._known = {"peername": peer, "socket": _Socket(family)}

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._known.get(name, default)


def request(
    path: str = "/",
    *,
    method: str = "GET",
    peer: object = ("127.0.0.1", 40000),
    host: str | None = "localhost:9420",
    family: socket.AddressFamily = socket.AF_INET,
) -> web.Request:
    headers = {} if host is None else {"Host": host}
    return make_mocked_request(method, path, headers, transport=_Transport(peer, family))


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:9420", "LocalHost:1", "localhost.localdomain:9420", "127.0.0.1",
     "127.0.0.1:9420", "127.8.9.10:80", "[::1]", "[::1]:9420", "[::ffff:127.0.0.1]:9420",
     "[0:0:0:0:0:0:0:1]:9420", "[::1%lo]:9420", "[::1%25lo]:9420", " localhost:9420 "],
)  # fmt: skip
def test_a_host_that_is_this_machine(host: str) -> None:
    assert names_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", ":9420", "evil.example", "evil.example:9420", "localhost.evil.example",
     "127.0.0.1.evil.example", "evil.example.localhost.evil", "10.0.0.1", "192.168.0.1:9420",
     "0.0.0.0:9420", "[::]:9420", "[fe80::1]:9420", "[fe80::1%lo]:9420", "[::ffff:10.0.0.1]:9420",
     "::1", "[::1", "[::1x", "[]", "[", "[localhost", "127.0.0.1/8", "2130706433", "0x7f000001",
     "127.1", "localhost@evil.example", "evil.example#localhost", "127.0.0.1\x00", "١٢٧.0.0.1"],
)  # fmt: skip
def test_a_host_that_is_not(host: str) -> None:
    assert not names_loopback(host)


@given(st.text() | st.text("[]:.%1270localhost", max_size=12))
def test_any_host_header_is_judged(host: str) -> None:
    assert names_loopback(host) in (True, False)


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,8}\.(com|example|net)", fullmatch=True), st.integers(0, 9999)
)
def test_a_name_that_a_web_page_may_own_is_never_this_machine(name: str, port: int) -> None:
    # A page's name server may say 127.0.0.1; its browser still sends the page's name.
    assert not names_loopback(f"{name}:{port}")


@pytest.mark.parametrize(
    ("peer", "refusal"),
    [
        (("127.0.0.1", 1), None),
        (("127.5.5.5", 1), None),
        (("::1", 1, 0, 0), None),
        (("::ffff:127.0.0.1", 1, 0, 0), None),
        (("10.0.0.7", 1), Refusal.NOT_LOCAL),
        (("fe80::1%eth0", 1, 0, 2), Refusal.NOT_LOCAL),
        (("::ffff:10.0.0.7", 1, 0, 0), Refusal.NOT_LOCAL),
        (("2001:db8::1", 1, 0, 0), Refusal.NOT_LOCAL),
        (("junk", 1), Refusal.NOT_LOCAL),
        (None, Refusal.NOT_LOCAL),
        ("", Refusal.NOT_LOCAL),
    ],
)
def test_what_is_not_public_is_for_this_machine(peer: object, refusal: Refusal | None) -> None:
    assert judge_request(request("/", peer=peer)) is refusal


@pytest.mark.parametrize("path", PUBLIC)
def test_others_get_the_scrape_by_any_name(path: str) -> None:
    stranger = ("10.0.0.7", 1)
    for method in ("GET", "HEAD"):
        seen = request(path, method=method, peer=stranger, host="node-1.example:9420")
        assert judge_request(seen) is None
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        seen = request(path, method=method, peer=stranger, host="node-1.example:9420")
        assert judge_request(seen) is Refusal.NOT_LOCAL


@pytest.mark.parametrize(
    "path", ["/", "/-/reload", "/metrics/", "//metrics", "/metrics/x", "/METRICS", "/nothing"]
)
def test_others_get_nothing_else(path: str) -> None:
    assert judge_request(request(path, peer=("10.0.0.7", 1))) is Refusal.NOT_LOCAL


@pytest.mark.parametrize("host", ["evil.example:9420", "", None])
def test_this_machine_is_asked_for_by_its_name(host: str | None) -> None:
    assert judge_request(request("/", host=host)) is Refusal.BAD_HOST
    assert judge_request(request("/metrics", host=host)) is None


@pytest.mark.parametrize("host", ["anything", "", None])
def test_file_rights_have_decided_on_the_socket(host: str | None) -> None:
    seen = request("/-/reload", method="POST", peer="", host=host, family=socket.AF_UNIX)
    assert judge_request(seen) is None


def own_address() -> str | None:
    """An address of this machine that is not loopback. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


async def test_by_loopback_the_host_is_checked(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as site:
        assert (await site.ask("GET", "/"))[0] == 200
        assert (await site.ask("GET", "/", Host="localhost"))[0] == 200
        status, text, _ = await site.ask("GET", "/", Host="evil.example")
        assert status == 403
        assert text == (
            "The Host header names another machine than this one, as a web page that was led here "
            "by its name server would. Ask for localhost or a loopback address.\n"
        )
        assert (await site.ask("GET", "/metrics", Host="evil.example"))[0] == 200
        assert site.said.refusals == {Refusal.BAD_HOST: 1}


async def test_by_another_address_only_the_scrape_is_answered(tmp_path: Path) -> None:
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has no address but loopback: give it a network interface")
    async with serving(tmp_path / "s", "0.0.0.0:0") as site:
        for path in PUBLIC:
            assert (await site.ask("GET", path, by=address))[0] == 200
        status, text, headers = await site.ask("GET", "/", by=address, Host="localhost")
        assert status == 403
        assert text == (
            "Only /metrics, /-/healthy and /-/ready are answered to other hosts while no "
            "authentication is configured. Ask from this machine.\n"
        )
        assert headers["X-Content-Type-Options"] == "nosniff"
        for method, path in (("POST", "/metrics"), ("POST", "/-/reload"), ("GET", "/nothing")):
            assert (await site.ask(method, path, by=address))[0] == 403
        assert site.said.reloads == 0
        assert site.said.refusals == {Refusal.NOT_LOCAL: 4}
        # The unix socket is another door, and its key is a file's rights.
        assert (await site.ask("GET", "/", by="socket"))[0] == 200


async def test_a_reload_is_taken_on_the_socket_alone(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as site:
        status, text, _ = await site.ask("POST", "/-/reload")
        assert (status, text) == (
            403,
            "This is answered on the unix socket alone (web.unix_socket).\n",
        )
        assert site.said.reloads == 0
        assert site.said.refusals == {Refusal.NOT_ON_SOCKET: 1}
        assert (await site.ask("POST", "/-/reload", by="socket"))[:2] == (200, "reloaded\n")
        assert site.said.reloads == 1
