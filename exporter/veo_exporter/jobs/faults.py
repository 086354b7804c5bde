# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an event, in words for whoever sent it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic_core import ErrorDetails

from veo_client.vocabulary import Outcome, Stage

MAX_LISTED_FAULTS: Final = 3
"""Of one event; the rest mostly follows from the first."""


class EventFault(StrEnum):
    """Why an event, or a whole body, was refused; the reason in the counter of dropped things."""

    NOT_JSON = "not_json"
    NOT_AN_EVENT = "not_an_event"
    UNKNOWN_TYPE = "unknown_type"
    NOT_TAKEN = "not_taken"
    NO_JOB = "no_job"
    BAD_DATA = "bad_data"
    UNKNOWN_STAGE = "unknown_stage"
    UNKNOWN_OUTCOME = "unknown_outcome"
    TOO_MANY = "too_many"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    TABLE_FULL = "table_full"


@dataclass(frozen=True, slots=True)
class Refused:
    """What is wrong with which event, as it is told to whoever sent it."""

    index: int
    event_id: str
    fault: EventFault
    message: str


class BadBody(Exception):
    """Nothing in a body can be read."""

    def __init__(self, fault: EventFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class BadEvent(Exception):
    """One event cannot be believed."""

    def __init__(self, fault: EventFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def fault_of(details: Sequence[ErrorDetails]) -> EventFault:
    """What is wrong with the data of an event."""
    faulty = {(*detail["loc"], "")[0] for detail in details}
    if "stage" in faulty:
        return EventFault.UNKNOWN_STAGE
    return EventFault.UNKNOWN_OUTCOME if "outcome" in faulty else EventFault.BAD_DATA


def sentences(details: Sequence[ErrorDetails], prefix: str) -> str:
    """What is wrong, a sentence for each fault."""
    said = [sentence_of(detail, prefix) for detail in details[:MAX_LISTED_FAULTS]]
    if len(details) > MAX_LISTED_FAULTS:
        said.append(f"and {len(details) - MAX_LISTED_FAULTS} more")
    return "; ".join(said)


_WORDS: Final[dict[str, type[Stage] | type[Outcome]]] = {"stage": Stage, "outcome": Outcome}


def sentence_of(detail: ErrorDetails, prefix: str) -> str:
    """What is wrong with one field, and which."""
    path = ".".join(str(part) for part in detail["loc"])
    where = (prefix + path).rstrip(".") or "the event"
    kind = detail["type"]
    if kind == "missing":
        return f"{where} is missing"
    if kind == "model_type":
        return f"{where} must be a JSON object, not {_shown(detail['input'])}"
    if kind == "enum":
        words = ", ".join(word.value for word in _WORDS[path])
        return f"{where}: {_shown(detail['input'])} is none of {words}"
    if kind == "value_error":
        reason = detail["ctx"]["error"]
        return f"{where}: {_shown(detail['input'])} {reason}" if path else f"{where}: {reason}"
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    return f"{where}: {message}, not {_shown(detail['input'])}"


def _shown(value: object) -> str:
    # As JSON spells it: whoever sent it knows no None.
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # Never more than enough to find it: the rest may be long, or nobody's business.
    if isinstance(value, dict | list):
        return f"a JSON {'object' if isinstance(value, dict) else 'array'}"
    try:
        text = repr(value)
    except ValueError:
        return "a number without end"
    return text if len(text) <= 60 else text[:57] + "..."
