# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What tools there are, at which version, and which file in the cache holds each."""

import hashlib
import platform
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Module:
    """One Go module in this folder: the pin, and how its programs are built."""

    name: str
    folder: Path
    path: str
    pin: str
    go: Version
    tags: tuple[str, ...]
    ldflags: str
    placeholders: Mapping[str, str]
    digest: str


@dataclass(frozen=True)
class Tool:
    """One program; without a minimum, what PATH has is never taken."""

    name: str
    module: Module
    package: str
    version: Version
    version_args: tuple[str, ...]
    minimum: Version | None
    older_lacks: str

    @property
    def title(self) -> str:
        return f"{self.name} {show_version(self.version)}"

    @property
    def ldflags(self) -> str:
        version = show_version(self.version)
        return f"-s -w {self.module.ldflags.format(version=version)}".rstrip()

    @property
    def cache_name(self) -> str:
        """Changes with everything that changes the binary, except the Go that builds it."""
        flags = (self.module.pin, self.package, ",".join(self.module.tags), self.ldflags)
        machine = (platform.system(), platform.machine())
        key = hashlib.sha256("\0".join((self.module.digest, *flags, *machine)).encode())
        return f"{self.name}-{show_version(self.version)}-{key.hexdigest()[:12]}"


def parse_version(text: str) -> Version | None:
    """The first version number in what a tool prints about itself."""
    match = re.search(r"(?<![\w.])(?:v|go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    if match is None:
        return None
    major, minor, patch = (int(part or 0) for part in match.groups())
    return major, minor, patch


def show_version(version: Version) -> str:
    return ".".join(map(str, version))


def released_version(pin: str, style: str) -> Version:
    """The version a program names for the version of its Go module."""
    version = parse_version(pin)
    if version is None:
        raise ValueError(f"{pin!r} is no module version")
    if style == "plain":
        return version
    if style == "shifted":
        return version[1] // 100, version[1] % 100, version[2]
    raise ValueError(f"unknown version style {style!r}")


def load_catalog(folder: Path) -> dict[str, Tool]:
    """Read tools.toml and the go.mod files it speaks of."""
    catalog = tomllib.loads((folder / "tools.toml").read_text("utf-8"))
    rows = catalog["module"]
    modules = {name: _module(folder / name, row) for name, row in rows.items()}
    styles = {name: row.get("version_style", "plain") for name, row in rows.items()}
    return {
        name: _tool(name, row, modules[row["module"]], styles[row["module"]])
        for name, row in catalog["tool"].items()
    }


def _module(folder: Path, row: Mapping[str, object]) -> Module:
    go_mod = (folder / "go.mod").read_text("utf-8")
    path = str(row["path"])
    pin = re.search(rf"^(?:require)?\s+{re.escape(path)} (v\S+)", go_mod, re.MULTILINE)
    go = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    go_version = parse_version(go[1]) if go else None
    if pin is None or go_version is None:
        raise ValueError(f"{folder / 'go.mod'} must name a Go version and require {path}")
    tags, placeholders = row.get("tags", []), row.get("placeholders", {})
    assert isinstance(tags, list)
    assert isinstance(placeholders, dict)
    return Module(
        name=folder.name,
        folder=folder,
        path=path,
        pin=pin[1],
        go=go_version,
        tags=tuple(tags),
        ldflags=str(row.get("ldflags", "")),
        placeholders=placeholders,
        digest=_digest(folder, placeholders),
    )


def _digest(folder: Path, placeholders: Mapping[str, str]) -> str:
    digest = hashlib.sha256(repr(sorted(placeholders.items())).encode())
    for file in sorted((folder / "go.mod", folder / "go.sum", *folder.glob("*.go"))):
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _tool(name: str, row: Mapping[str, object], module: Module, style: str) -> Tool:
    version_args = row.get("version_args", ["--version"])
    assert isinstance(version_args, list)
    return Tool(
        name=name,
        module=module,
        package=str(row["package"]),
        version=released_version(module.pin, style),
        version_args=tuple(version_args),
        minimum=parse_version(str(row.get("minimum", ""))),
        older_lacks=str(row.get("older_lacks", "")),
    )
