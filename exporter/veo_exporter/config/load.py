# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings from a YAML file, the environment and flags, each overriding the one before.

Nothing is ignored: a key, variable or flag that is no setting is a fault that names the nearest.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from veo_exporter.config.quantities import format_duration
from veo_exporter.config.section import OutOfOrder, Section
from veo_exporter.config.settings import Settings
from veo_exporter.errors import BadConfig

ENVIRONMENT_PREFIX: Final = "VEO_"

# Kubernetes sets such variables in every pod beside a Service whose name begins with "veo".
_SERVICE_LINK: Final = re.compile(
    r"VEO_(?!.*__)(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS: Final = re.compile(r"VEO_(?!.*__)(.*_)?PORT=(tcp|udp|sctp)://.*")

Place = tuple[str, ...]
"""Where a setting stands: (section, field)."""


def sections() -> dict[str, type[Section]]:
    """The sections by name."""
    annotations = {name: field.annotation for name, field in Settings.model_fields.items()}
    return {
        name: model
        for name, model in annotations.items()
        if isinstance(model, type) and issubclass(model, Section)
    }


def setting_places() -> list[Place]:
    """Where each setting stands, in the order of their declaration."""
    return [(section, name) for section, model in sections().items() for name in model.model_fields]


def environment_name(place: Place) -> str:
    """The environment variable of a setting, such as VEO_GPU__FAST_INTERVAL."""
    return ENVIRONMENT_PREFIX + "__".join(place).upper()


def flag_name(place: Place) -> str:
    """The flag of a setting, such as --gpu.fast-interval."""
    return "--" + ".".join(place).replace("_", "-")


def nearest(written: str, known: Iterable[str], what: str = "setting") -> str:
    """A half sentence that names what was probably meant, or nothing."""
    close = difflib.get_close_matches(written, list(known), n=1, cutoff=0.5)
    return f"; the nearest {what} is {close[0]}" if close else ""


_MERGE_TAG: Final = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """YAML whose keys are said once: a second one would silently win."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        # Lists as keys are refused below; "<<" merges, and may stand beside what it overrides.
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _MERGE_TAG:
            continue
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"{key} stands twice", key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


# What PyYAML lets escape as it is: 2024-99-99, !!bool x, very deep nesting.
_ESCAPING_FAULTS: Final = (
    ValueError,
    LookupError,
    ArithmeticError,
    TypeError,
    AttributeError,
    RecursionError,
)


def read_file(path: Path) -> dict[str, Any]:
    """The nested mapping in a YAML file. Raises BadConfig."""
    try:
        content = yaml.load(path.read_bytes(), Loader=_Loader)  # noqa: S506, a SafeLoader
    except OSError as error:
        raise BadConfig([f"{path}: cannot be read: {error.strerror}"]) from None
    except yaml.YAMLError as error:
        raise BadConfig([f"{path}: {_yaml_fault(error)}"]) from None
    except _ESCAPING_FAULTS as error:
        raise BadConfig([f"{path}: a value in it cannot be read: {error}"]) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadConfig(
            [f"{path}: wants sections such as 'gpu:' at its top, not a {type(content).__name__}"]
        )
    return content


def _yaml_fault(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark
        return f"line {mark.line + 1}: {error.problem}" if mark else error.problem
    return " ".join(str(error).split())


def _is_service_link(name: str, value: str) -> bool:
    # VEO_WEB_PORT=9421 is what a person writes who means something by it; kubelet writes a URL.
    return bool(_SERVICE_LINK.fullmatch(name) or _SERVICE_ADDRESS.fullmatch(f"{name}={value}"))


def _read_environment(environment: Mapping[str, str]) -> tuple[dict[Place, str], list[str]]:
    known = {environment_name(place): place for place in setting_places()}
    values: dict[Place, str] = {}
    faults = []
    for name, value in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT_PREFIX) or _is_service_link(name, value):
            continue
        if name in known:
            values[known[name]] = value
        else:
            faults.append(f"environment variable {name}: no such setting{nearest(name, known)}")
    return values, faults


def _merge(content: dict[str, Any], values: Mapping[Place, str]) -> None:
    for (section, name), value in values.items():
        inner = content.setdefault(section, {})
        if isinstance(inner, dict):
            inner[name] = value


def load_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[Place, str]
) -> Settings:
    """The settings in force. Raises BadConfig with every fault found, a sentence each."""
    content = read_file(file) if file else {}
    # An empty section ("gpu:" alone) is a section without settings.
    content = {section: {} if inner is None else inner for section, inner in content.items()}
    from_environment, faults = _read_environment(environment)
    origins: dict[Place, str] = {place: environment_name(place) for place in from_environment}
    origins |= {place: flag_name(place) for place in flags}
    _merge(content, from_environment)
    _merge(content, flags)
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        faults += _sentences(error.errors(include_url=False), str(file or ""), origins)
        raise BadConfig(faults) from None
    if faults:
        raise BadConfig(faults)
    return settings


def _sentences(
    errors: list[ErrorDetails], file: str, origins: Mapping[Place, str]
) -> Iterator[str]:
    for error in errors:
        location = tuple(str(part) for part in error["loc"])
        dotted = ".".join(location)
        fault = error.get("ctx", {}).get("error")
        # Whoever gave one of two settings that do not go together may be a flag or a variable.
        names = fault.names if isinstance(fault, OutOfOrder) else ()
        places = [(*location, name) for name in names] or [location]
        origin = ", ".join(origins[place] for place in places if place in origins)
        where = f"{origin}: " if origin else f"{file}: {dotted}: " if file else f"{dotted}: "
        if error["type"] == "extra_forbidden":
            what = "section" if len(location) == 1 else "setting"
            yield f"{where}no such {what}{_nearest_place(location)}"
        elif error["type"] == "value_error":
            yield f"{where}{fault}"
        elif error["type"] in _WANTED:
            yield f"{where}must be {_WANTED[error['type']]}, not {error['input']!r}"
        elif error["type"] in ("greater_than_equal", "less_than_equal"):
            yield where + _bound(error, location)
        else:
            message = error["msg"][:1].lower() + error["msg"][1:]
            yield f"{where}{message}, not {error['input']!r}"


_WANTED: Final = {
    "model_type": "a mapping of settings",
    "path_type": "a path",
    "string_type": "a string (in quotes)",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
}


def _nearest_place(location: Place) -> str:
    if len(location) == 1:
        return nearest(location[0], sections(), "section")
    return nearest(".".join(location), [".".join(place) for place in setting_places()])


def _bound(error: ErrorDetails, location: Place) -> str:
    limits = error["ctx"]
    limit = limits["ge"] if "ge" in limits else limits["le"]
    side = "at least" if "ge" in limits else "at most"
    section, name = location
    # The only numbers with a fraction are durations.
    if sections()[section].model_fields[name].annotation is float:
        return (
            f"must be {side} {format_duration(float(limit))}, not {format_duration(error['input'])}"
        )
    return f"must be {side} {limit}, not {error['input']}"
