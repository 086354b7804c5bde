# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The pages under docs/ as programs read them: their commands, what these print, their tables."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from veo_exporter.catalog import CATALOG

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A block of commands, and what the block after it says that they print; "" if nothing is said."""

    commands: str
    output: str


def blocks(page: str, language: str) -> list[str]:
    """The blocks in one language."""
    found = _BLOCK.findall((DOCS / page).read_text())
    return [text for written, text in found if written == language]


def examples(page: str) -> Iterator[Example]:
    """Blocks of commands in their order, each with its output: a block `text` or `json` right after it."""
    text = (DOCS / page).read_text()
    found = list(_BLOCK.finditer(text))
    for place, block in enumerate(found):
        if block[1] != "sh":
            continue
        after = found[place + 1] if place + 1 < len(found) else None
        follows = after is not None and not text[block.end() : after.start()].strip()
        told = after is not None and follows and after[1] in ("text", "json")
        yield Example(block[2], after[2] if after is not None and told else "")


def run(commands: str, folder: Path, replaced: Mapping[str, str] | None = None) -> str:
    """What the commands print, standard error included, in a folder that has the checkout's .venv."""
    environment = folder / ".venv"
    if not environment.exists():
        environment.symlink_to(sys.prefix)
    for old, new in (replaced or {}).items():
        commands = commands.replace(old, new)
    done = subprocess.run(
        ["/bin/sh", "-c", commands],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("VEO_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def tables(page: str) -> dict[tuple[str, ...], list[list[str]]]:
    """The rows of each table by its headings, without the marks of code."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    rows: list[list[str]] | None = None
    for line in (DOCS / page).read_text().splitlines():
        if not line.startswith("|"):
            rows = None
            continue
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")]
        if rows is None:
            rows = found.setdefault(tuple(cells), [])
        elif not line.startswith("|-"):
            rows.append(cells)
    return found


def metrics_that_are_not_there(page: str) -> set[str]:
    """Names of metrics on a page that the catalogue does not have."""
    named = set(re.findall(r"\bveo_[a-z0-9_]+", (DOCS / page).read_text()))
    return named - {spec.name for spec in CATALOG} - {"veo_client", "veo_exporter"}


def words(cell: str) -> list[str]:
    """The words of a cell that lists them."""
    return [word for word in re.split(r"[,\s]+", cell) if word]
