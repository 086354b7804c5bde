# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which binary `make tools` takes; nothing is built or downloaded here."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools import install
from tools.pins import Tool, Version, load_catalog, parse_version, released_version
from tools.watch import BuildError, describe, watch

TOOLS = Path(__file__).resolve().parent.parent / "tools"
CATALOG = load_catalog(TOOLS)
BUILT = Path("/cache/built")


def found(version: Version) -> install.Found:
    return install.Found(Path("/usr/bin/tool"), version, "PATH, /usr/bin/tool")


def built() -> Path:
    return BUILT


def not_built() -> Path:
    raise BuildError("PATH has no Go 1.26.7 or newer")


def executable(file: Path, script: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def promtool() -> Tool:
    return CATALOG["promtool"]


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    file = tmp_path / "cached"
    file.touch()
    return file


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("prometheus, version 3.16.0 (branch: , revision: unknown)", (3, 16, 0)),
        ("promtool, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)", (2, 42, 0)),
        ("amtool, version 0.28.1 (branch: HEAD)\n  go version: go1.24.4", (0, 28, 1)),
        ("v4.3.2+g1234567", (4, 3, 2)),
        ("v4.0.0-rc.1", (4, 0, 0)),
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go1.27rc1", (1, 27, 0)),
        ("3.0", (3, 0, 0)),
        ("no version here", None),
        ("", None),
    ],
)
def test_parse_version(text: str, version: Version | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("pin", "style", "version"),
    [
        ("v0.316.0", "shifted", (3, 16, 0)),
        ("v0.305.2", "shifted", (3, 5, 2)),
        ("v0.400.0", "shifted", (4, 0, 0)),
        ("v0.35.0", "plain", (0, 35, 0)),
        ("v4.3.2", "plain", (4, 3, 2)),
    ],
)
def test_released_version(pin: str, style: str, version: Version) -> None:
    assert released_version(pin, style) == version


def test_released_version_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="version style"):
        released_version("v1.0.0", "odd")
    with pytest.raises(ValueError, match="module version"):
        released_version("latest", "plain")


def test_catalog_has_the_tools_that_the_tests_run() -> None:
    assert {"prometheus", "promtool", "alertmanager", "amtool", "helm"} <= set(CATALOG)


@pytest.mark.parametrize("name", CATALOG)
def test_every_pin_meets_its_own_minimum(name: str) -> None:
    tool = CATALOG[name]
    if tool.minimum is None:
        assert tool.older_lacks == ""
    else:
        assert tool.version >= tool.minimum
        assert tool.older_lacks


@pytest.mark.parametrize("name", CATALOG)
def test_every_module_has_its_checksums(name: str) -> None:
    module = CATALOG[name].module
    assert f"{module.path} {module.pin} h1:" in (module.folder / "go.sum").read_text()


def test_cache_name_changes_with_whatever_changes_the_binary(promtool: Tool) -> None:
    module = promtool.module
    names = {
        tool.cache_name
        for tool in (
            promtool,
            replace(promtool, package="example.org/other"),
            replace(promtool, module=replace(module, pin="v0.316.1")),
            replace(promtool, module=replace(module, tags=())),
            replace(promtool, module=replace(module, ldflags="")),
            replace(promtool, module=replace(module, digest="other")),
        )
    }
    assert len(names) == 6
    assert promtool.cache_name.startswith("promtool-3.16.0-")


def test_path_is_taken_when_new_enough(promtool: Tool, cached: Path) -> None:
    on_path = found((3, 0, 0))
    assert install.choose(promtool, on_path, cached) == on_path


def test_cache_is_taken_when_path_is_older(promtool: Tool, cached: Path) -> None:
    expected = install.Found(cached, promtool.version, "cache")
    assert install.choose(promtool, found((2, 53, 3)), cached) == expected
    assert install.choose(promtool, None, cached) == expected


def test_path_is_never_taken_without_a_minimum(promtool: Tool, cached: Path) -> None:
    own = replace(promtool, minimum=None)
    assert install.choose(own, found((99, 0, 0)), cached) == install.Found(
        cached, own.version, "cache"
    )


def test_nothing_is_taken_when_only_an_older_one_is_there(promtool: Tool, tmp_path: Path) -> None:
    assert install.choose(promtool, found((2, 53, 3)), tmp_path / "absent") is None


def test_nothing_is_built_when_path_or_cache_has_it(promtool: Tool, cached: Path) -> None:
    for on_path in (found((3, 1, 0)), None):
        chosen, warning = install.obtain(promtool, on_path, cached, not_built)
        assert chosen.origin in {"PATH, /usr/bin/tool", "cache"}
        assert warning == ""


def test_an_older_one_on_path_does_not_prevent_the_build(promtool: Tool, tmp_path: Path) -> None:
    chosen, warning = install.obtain(promtool, found((2, 53, 3)), tmp_path / "absent", built)
    assert (chosen.binary, chosen.version, warning) == (BUILT, promtool.version, "")
    assert re.fullmatch(r"built in \d+ s", chosen.origin)


def test_an_older_one_on_path_is_used_loudly_when_the_build_fails(
    promtool: Tool, tmp_path: Path
) -> None:
    chosen, warning = install.obtain(promtool, found((2, 53, 3)), tmp_path / "absent", not_built)
    assert (chosen.binary, chosen.origin) == (Path("/usr/bin/tool"), "FALLBACK, /usr/bin/tool")
    assert warning.count("WARNING") == 2
    assert "PATH has no Go 1.26.7 or newer" in warning
    assert "promtool 2.53.3: too old, it lacks" in warning
    assert promtool.older_lacks in warning


def test_a_failed_build_with_nothing_on_path_is_an_error(promtool: Tool, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"put promtool 3\.0\.0 or newer on PATH"):
        install.obtain(promtool, None, tmp_path / "absent", not_built)


def test_find_on_path_reads_either_stream(
    promtool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    binary = executable(tmp_path / "promtool", "echo 'promtool, version 2.15.2+ds' >&2")
    assert install.find_on_path(promtool) == install.Found(binary, (2, 15, 2), f"PATH, {binary}")
    executable(binary, "echo 'promtool, version 3.1.0'; echo 'warning 9.9.9' >&2")
    assert install.find_on_path(promtool) == install.Found(binary, (3, 1, 0), f"PATH, {binary}")


def test_find_on_path_passes_over_what_names_no_version(
    promtool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install.find_on_path(promtool) is None
    executable(tmp_path / "promtool", "exit 1")
    assert install.find_on_path(promtool) is None


def test_find_on_path_passes_over_our_own_links(
    promtool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "_LINKS", tmp_path / "links")
    executable(tmp_path / "links" / "promtool", "echo 3.16.0")
    other = executable(tmp_path / "other" / "promtool", "echo 3.2.0")
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / "links"), str(other.parent))))
    assert install.find_on_path(promtool) == install.Found(other, (3, 2, 0), f"PATH, {other}")


def test_link_replaces_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_LINKS", tmp_path / "bin")
    for binary in (tmp_path / "one", tmp_path / "two", tmp_path / "two"):
        install.link("promtool", binary)
        assert (tmp_path / "bin" / "promtool").readlink() == binary
    assert [file.name for file in (tmp_path / "bin").iterdir()] == ["promtool"]


def test_cache_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert install.cache_folder() == tmp_path / "veo-exporter" / "tools"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for useless in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", useless)
        expected = tmp_path / "home" / ".cache" / "veo-exporter" / "tools"
        assert install.cache_folder() == expected


def test_check_reports_and_changes_nothing(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = subprocess.run(
        [sys.executable, str(TOOLS / "install.py"), "--check", "amtool"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (1, "")
    assert re.fullmatch(r"amtool +[\d.]+ +missing, would be built\n", run.stdout)
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        install.main(["nothing-like-it"])
    assert "no such tool: nothing-like-it" in capsys.readouterr().err


def test_describe_counts_packages_and_downloads() -> None:
    lines = ["go: downloading example.org/a v1.0.0", "example.org/a", "# example.org/b", "fmt"]
    assert describe(lines, 61.4, 10) == "61 s, 2 of at most 10 packages, 1 modules downloaded"
    assert describe([], 2, 0) == "2 s"


def test_watch_returns_the_output() -> None:
    assert watch([sys.executable, "-c", "print('answer')"], "asking") == "answer\n"


def test_watch_says_what_the_failed_command_said() -> None:
    script = "import sys; print('why it failed', file=sys.stderr); sys.exit(3)"
    with pytest.raises(BuildError, match="why it failed"):
        watch([sys.executable, "-c", script], "failing")


def test_watch_says_when_the_command_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot be started: No such file"):
        watch([str(tmp_path / "absent")], "starting")


def test_all_tools_are_meant_unless_some_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    install.main(["--check"])
    named = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert named == list(CATALOG)
