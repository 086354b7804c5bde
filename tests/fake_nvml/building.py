# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

"""Compiles the fake library, once for each state of its sources and compiler."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
SOURCES = Path(__file__).parent
FLAGS = [
    "-shared",
    "-fPIC",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    f"-Wl,-soname,{LIBRARY}",
]


class CompilerMissingError(RuntimeError):
    def __init__(self) -> None:
        super().__init__(
            "The fake NVML library needs a C compiler and none is in PATH: apt-get install gcc"
        )


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise CompilerMissingError


def _key(compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(version + b"\0" + "\0".join(FLAGS).encode())
    for source in sorted(SOURCES.glob("*.[ch]")) + sorted(SOURCES.glob("*.inc")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "veo-exporter" / "fake-nvml"


def compile_library(target: Path, compiler: str | None = None) -> None:
    """Compile into `target`; raises with the compiler's messages, warnings being errors."""
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    command = [compiler or _compiler(), *FLAGS, "-o", str(target), *sources, "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"The fake NVML library does not compile:\n{done.stderr}")


def build(cache_directory: Path | None = None) -> Path:
    """The folder that holds libnvidia-ml.so.1, compiled if it is not there yet."""
    compiler = _compiler()
    cache = cache_directory or _default_cache()
    folder = cache / _key(compiler)
    if (folder / LIBRARY).exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        compile_library(made / LIBRARY, compiler)
        try:
            made.rename(folder)
        except OSError:
            # Another process was first; a folder with a library in it is never half made.
            if not (folder / LIBRARY).exists():
                raise
    return folder
