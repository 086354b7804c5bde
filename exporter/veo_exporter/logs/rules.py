# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Rules that read a line of a log as an event. Each brings examples, which it must fit."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from veo_exporter.errors import BadConfig
from veo_exporter.logs.json_lines import read_json_line

NO_RULE: Final = "none"
MAX_VALUE_CHARS: Final = 1000
"""Of a value found in a line this much is taken."""
_SHIPPED: Final = resources.files("veo_exporter.logs") / "shipped"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ .:-]*")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)(?::(int))?\}")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _WrittenExample(_Model):
    line: str
    event: dict[str, Any] | None


class _WrittenRule(_Model):
    name: str
    contains: str
    pattern: str
    event: dict[str, Any]
    examples: list[_WrittenExample]


class _WrittenRules(_Model):
    rules: list[_WrittenRule]


@dataclass(frozen=True, slots=True)
class Rule:
    """A line that holds a word and fits a pattern means an event."""

    name: str
    contains: str
    pattern: re.Pattern[str]
    event: Mapping[str, Any]
    plain: bool = False
    """Whether JSON writes its word as it is."""

    def read(self, line: str, beside: Mapping[str, str] = _NOTHING) -> dict[str, Any] | None:
        """The event that the line means; None if the rule does not fit it.

        What stands beside the line, by name, fills in for groups that it leaves empty.
        """
        # Most lines are about something else, and a search for a word costs next to nothing.
        if self.contains not in line:
            return None
        match = self.pattern.search(line)
        if match is None:
            return None
        groups = match.groupdict()
        if beside:
            groups = {
                name: beside.get(name) if found is None else found for name, found in groups.items()
            }
        filled: dict[str, Any] = _fill(dict(self.event), groups)
        return filled


def read_line(rules: Iterable[Rule], line: str) -> tuple[str, dict[str, Any] | None]:
    """The first rule that fits and the event it means; `none` and None if there is none."""
    if line[:1] == "{":
        return _read_object(tuple(rules), line)
    for rule in rules:
        event = rule.read(line)
        if event is not None:
            return rule.name, event
    return NO_RULE, None


def _read_object(rules: tuple[Rule, ...], line: str) -> tuple[str, dict[str, Any] | None]:
    """In an object the texts are what a rule fits; the line as it stands, if none of them does."""
    # To look for a word costs a tenth of reading JSON, which escapes no letter and no digit.
    if not any(not rule.plain or rule.contains in line for rule in rules):
        return NO_RULE, None
    said = read_json_line(line)
    for rule in rules:
        for text in (line,) if said is None else said.texts:
            event = rule.read(text, said.fields if said else _NOTHING)
            if event is not None:
                return rule.name, event
    return NO_RULE, None


def event_of_line(event: Mapping[str, Any], path: str, place: str) -> dict[str, Any]:
    """The event as it would be posted: where the line stands is what makes it that one."""
    return {"specversion": "1.0", "source": path, "id": place, **event}


def _fill(template: Any, groups: Mapping[str, str | None]) -> Any:
    """The template with what was found put in. What rests on nothing found is left out."""
    if isinstance(template, dict):
        filled = {key: _fill(value, groups) for key, value in template.items()}
        return {key: value for key, value in filled.items() if value is not None}
    if isinstance(template, list):
        return [value for value in (_fill(item, groups) for item in template) if value is not None]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole is not None:
        found = groups[whole[1]]
        if found is None:
            return None
        return _number(found) if whole[2] else found[:MAX_VALUE_CHARS]
    return _PLACEHOLDER.sub(lambda name: (groups[name[1]] or "")[:MAX_VALUE_CHARS], template)


def _number(found: str) -> int | None:
    try:
        return int(found)
    except ValueError:
        # What a rule takes for a number may be a word, or thousands of digits.
        return None


def shipped_rules() -> list[str]:
    """Names of the sets that come along."""
    return sorted(file.name.removesuffix(".yaml") for file in _SHIPPED.iterdir())


def load_rules(names: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of shipped sets, by name, and of files, by path. Raises BadConfig."""
    return tuple(rule for name in names for rule in _load_set(name))


def _load_set(name: str) -> list[Rule]:
    try:
        if name.startswith("/"):
            text = Path(name).read_text()
        elif name in shipped_rules():
            text = (_SHIPPED / f"{name}.yaml").read_text()
        else:
            known = ", ".join(shipped_rules())
            raise BadConfig(
                [f"logs.rules: {name!r} is neither an absolute path nor one of these sets: {known}"]
            )
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig([f"logs.rules: {name}: cannot be read: {error}"]) from None
    return parse_rules(text, name)


def parse_rules(text: str, where: str) -> list[Rule]:
    """The rules in YAML, each proven on its examples. Raises BadConfig."""
    try:
        written = _WrittenRules.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise BadConfig([f"{where}: {' '.join(str(error).split())}"]) from None
    except ValidationError as error:
        raise BadConfig(
            [
                f"{where}: {'.'.join(str(part) for part in detail['loc']) or 'it'}: {detail['msg']}"
                for detail in error.errors(include_url=False)
            ]
        ) from None
    except (ValueError, LookupError, RecursionError) as error:
        # What PyYAML lets escape as it is: 2024-99-99, very deep nesting.
        raise BadConfig([f"{where}: a value in it cannot be read: {error}"]) from None
    return [_prove(rule, where) for rule in written.rules]


def _prove(written: _WrittenRule, where: str) -> Rule:
    at = f"{where}: rule {written.name}"
    try:
        pattern = re.compile(written.pattern)
    except re.error as error:
        raise BadConfig([f"{at}: pattern: {error}"]) from None
    unknown = _names(written.event) - set(pattern.groupindex)
    if unknown:
        raise BadConfig([f"{at}: event: the pattern has no group {', '.join(sorted(unknown))}"])
    plain = _PLAIN.fullmatch(written.contains) is not None
    rule = Rule(written.name, written.contains, pattern, written.event, plain)
    faults = [
        f"{at}: example {example.line[:100]!r} gives {found}, not {example.event}"
        for example in written.examples
        if (found := read_line((rule,), example.line)[1]) != example.event
    ]
    if faults or not written.examples:
        raise BadConfig(faults or [f"{at}: wants examples: a line with the event it means"])
    return rule


def _names(template: Any) -> set[str]:
    if isinstance(template, dict):
        return {name for value in template.values() for name in _names(value)}
    if isinstance(template, list):
        return {name for value in template for name in _names(value)}
    return (
        {match[1] for match in _PLACEHOLDER.finditer(template)}
        if isinstance(template, str)
        else set()
    )
