# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Asks the kubelet again and again, on a thread of its own, and keeps the last answer."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.kubernetes.allocations import LIST_METHOD, Allocation, read_allocations
from veo_exporter.kubernetes.faults import Cause, KubeletFault

log = structlog.get_logger(__name__)

LONGEST_BACKOFF_SECONDS: Final = 60.0
"""A kubelet that is restarted is back within a minute, and should be seen soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the kubelet is asked."""

    socket: Path
    only_if_there: bool
    """Whether a socket that was never there is no fault: the node has no kubelet."""
    interval_seconds: float
    deadline_seconds: float
    keep_seconds: float
    resource_prefixes: tuple[str, ...]
    max_rows: int
    max_answer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of pods; `read_monotonic_seconds` is None until the kubelet answers."""

    sequence: int = 0
    """Changes with each question."""
    asked: bool = False
    """False while there is no kubelet to ask."""
    allocations: frozenset[Allocation] = frozenset()
    read_monotonic_seconds: float | None = None
    errors: Mapping[Cause, int] = field(default_factory=dict)


def list_allocations(plan: Plan) -> frozenset[Allocation]:
    """Ask once. Raises KubeletFault."""
    # HTTP/2 takes four megabytes: only who has a kubelet pays for them.
    from veo_exporter.kubernetes.call import ask

    answer = ask(
        plan.socket,
        LIST_METHOD,
        deadline_seconds=plan.deadline_seconds,
        max_answer_bytes=plan.max_answer_bytes,
    )
    return read_allocations(answer, plan.resource_prefixes)


def worth_asking(plan: Plan) -> bool:
    """Whether there is a kubelet to ask. One that we have no right to see is there."""
    if not plan.only_if_there:
        return True
    try:
        plan.socket.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def delay_seconds(plan: Plan, failures: int) -> float:
    """How long to wait after so many failures in a row; twice as long with each."""
    longest = max(plan.interval_seconds, LONGEST_BACKOFF_SECONDS)
    return float(min(plan.interval_seconds * 2 ** min(failures, 16), longest))


class PodWatch:
    """Started and stopped with the exporter. `latest` never waits."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock
        self._latest = Answer()
        self._errors: Counter[Cause] = Counter()
        self._failures = 0
        self._fault: tuple[Cause, str] | None = None
        self._stop = threading.Event()
        # A daemon: the end does not wait for an answer.
        self._thread = threading.Thread(target=self._run, name="kubernetes-pods", daemon=True)

    @property
    def latest(self) -> Answer:
        return self._latest

    @property
    def plan(self) -> Plan:
        return self._plan

    def reconfigure(self, plan: Plan) -> None:
        """Ask otherwise from the next question on."""
        self._plan = plan

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask no more. A question that is under way is left to its deadline."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self.look()):
            pass

    def look(self) -> float:
        """Ask once, keep what comes, and give the seconds until the next time."""
        plan = self._plan
        if not self._latest.asked and not worth_asking(plan):
            return plan.interval_seconds
        try:
            allocations = list_allocations(plan)
        except KubeletFault as fault:
            self._failed(fault)
        except Exception:
            # A fault of ours. Whoever asks for GPUs is not to suffer from it.
            log.exception("pods could not be mapped; this is a fault of the exporter")
            self._failed(KubeletFault(Cause.GARBLED, "the answer could not be read", "report it"))
        else:
            self._succeeded(allocations)
        return delay_seconds(plan, self._failures)

    def _succeeded(self, allocations: frozenset[Allocation]) -> None:
        before = self._latest
        self._failures = 0
        unchanged = before.allocations == allocations
        self._latest = Answer(
            sequence=before.sequence + 1,
            asked=True,
            # The same object as long as nothing changed: nobody need look at it again.
            allocations=before.allocations if unchanged else allocations,
            read_monotonic_seconds=self._clock.monotonic_seconds(),
            errors=before.errors,
        )
        if self._fault is not None or before.read_monotonic_seconds is None:
            self._fault = None
            log.info("the kubelet says which pods have GPUs", devices=len(allocations))

    def _failed(self, fault: KubeletFault) -> None:
        self._failures += 1
        self._errors[fault.cause] += 1
        before = self._latest
        self._latest = Answer(
            sequence=before.sequence + 1,
            asked=True,
            allocations=before.allocations,
            read_monotonic_seconds=before.read_monotonic_seconds,
            errors=dict(self._errors),
        )
        told = (fault.cause, str(fault))
        if self._fault != told:
            # Once for each fault, not once for each question.
            self._fault = told
            log.warning(
                "the kubelet does not say which pods have GPUs; the last mapping stays",
                fault=str(fault),
                remedy=fault.remedy,
            )
