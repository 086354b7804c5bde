# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""values.yaml to the table of values in the chart's README."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class Row:
    """A value: where it stands, what it is by default, and the comment above it."""

    name: str
    default: object
    meaning: str


def values_table(text: str) -> str:
    """The table, in Markdown."""
    lines = ["| value | default | meaning |", "|---|---|---|"]
    lines += [
        f"| `{row.name}` | `{_cell(json.dumps(row.default, ensure_ascii=False))}` | {_cell(row.meaning)} |"
        for row in values_rows(text)
    ]
    return "\n".join(lines) + "\n"


def values_rows(text: str) -> list[Row]:
    """The values, in their order. A mapping without a comment inside is one value."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("values.yaml must be a mapping")
    return list(_rows(root, text.splitlines(), yaml.safe_load(text), ""))


def _rows(
    node: yaml.MappingNode, lines: list[str], values: dict[str, object], prefix: str
) -> Iterator[Row]:
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        default = values[key.value]
        if isinstance(value, yaml.MappingNode) and _explained_within(value, lines):
            assert isinstance(default, dict)
            yield from _rows(value, lines, default, f"{name}.")
        else:
            yield Row(name, default, _comment(key, lines))


def _explained_within(node: yaml.MappingNode, lines: list[str]) -> bool:
    return any(
        _comment(key, lines)
        or (isinstance(value, yaml.MappingNode) and _explained_within(value, lines))
        for key, value in node.value
    )


def _comment(key: yaml.Node, lines: list[str]) -> str:
    """The comment that stands directly above a key, at its indentation."""
    start = " " * key.start_mark.column + "# "
    said: list[str] = []
    for line in reversed(lines[: key.start_mark.line]):
        if not line.startswith(start):
            break
        said.insert(0, line.removeprefix(start).strip())
    return " ".join(said)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
