# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Xids: their metrics, and the one table of what each means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from veo_exporter.catalog.gpu import IDENTITY
from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

OTHER: Final = "other"

XID: Final = Label(
    "xid",
    "number of the Xid; other for numbers beyond those that the table and 8 more hold",
    "dozen codes at zero from the start; then those that happened",
)

XID_ERRORS: Final = MetricSpec(
    "veo_gpu_xid_errors_total",
    Kind.COUNTER,
    Unit.NONE,
    "Xids of the GPU, from NVML's events and from the kernel log; what both tell counts once. "
    "Absent for a GPU whose Xids nobody tells.",
    (*IDENTITY, XID),
)
XID_LAST_SEEN: Final = MetricSpec(
    "veo_gpu_xid_last_seen_timestamp_seconds",
    Kind.GAUGE,
    Unit.TIMESTAMP,
    "When the GPU last had this Xid; absent if it had none since the exporter's start.",
    (*IDENTITY, XID),
)


class Tier(StrEnum):
    """How soon somebody has to act."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


class Action(StrEnum):
    """What helps first, in the words of the alerts' action label."""

    RETRY_JOB = "retry_job"
    FIX_INPUT = "fix_input"
    DRAIN_GPU = "drain_gpu"
    RESET_GPU = "reset_gpu"
    REBOOT_NODE = "reboot_node"
    CHECK_NODE = "check_node"
    CHECK_DRIVER = "check_driver"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Xid:
    """A row of the table, for one code."""

    code: int
    meaning: str
    tier: Tier
    action: Action
    cause: str
    seed: bool = False


UNKNOWN_MEANING: Final = "an Xid that this version does not know: see NVIDIA's list"


@cache
def xid_table() -> Mapping[int, Xid]:
    """Every Xid in the table, by its code. The file comes along, so it is read once."""
    import yaml

    text = resources.files("veo_exporter.catalog").joinpath("xid.yaml").read_text()
    # The C parser, where PyYAML was built with it, takes a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return parse_xid_table(yaml.load(text, Loader=loader))  # noqa: S506, a SafeLoader


def seeded_xids() -> tuple[int, ...]:
    """The codes one acts on: their counters start at zero."""
    return tuple(code for code, xid in xid_table().items() if xid.seed)


def parse_xid_table(content: Any) -> Mapping[int, Xid]:
    """The table from what YAML gives. Raises ValueError that names the row and what it wants."""
    if not isinstance(content, list):
        raise ValueError("the table of Xids wants a list of rows")
    table: dict[int, Xid] = {}
    for place, row in enumerate(content, 1):
        for xid in _parse_row(row, f"row {place}"):
            if xid.code in table:
                raise ValueError(f"row {place}: Xid {xid.code} stands twice")
            table[xid.code] = xid
    return MappingProxyType(dict(sorted(table.items())))


_TEXTS: Final = ("meaning", "tier", "action", "cause")


def _parse_row(row: Any, where: str) -> Iterator[Xid]:
    if not isinstance(row, dict) or not {"codes", *_TEXTS} <= set(row):
        raise ValueError(f"{where}: wants codes, {', '.join(_TEXTS)}")
    if unknown := set(row) - {"codes", "seed", *_TEXTS}:
        raise ValueError(f"{where}: no such key: {', '.join(sorted(map(str, unknown)))}")
    codes, seed = row["codes"], row.get("seed", False)
    if not isinstance(codes, list) or not codes or not all(type(code) is int for code in codes):
        raise ValueError(f"{where}: codes: wants a list of whole numbers")
    where = f"{where} (Xid {codes[0]})"
    for key in _TEXTS:
        if not isinstance(row[key], str) or not row[key].strip():
            raise ValueError(f"{where}: {key}: wants words")
    if not isinstance(seed, bool):
        raise ValueError(f"{where}: seed: wants true or false")
    try:
        tier, action = Tier(row["tier"]), Action(row["action"])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    for code in codes:
        yield Xid(code, row["meaning"], tier, action, row["cause"], seed)
