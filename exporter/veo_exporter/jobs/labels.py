# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The labels that job rows carry, within a bound whatever senders call themselves."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

from veo_exporter.jobs.profile import OTHER

UNKNOWN: Final = "unknown"
NO_VARIANT: Final = "none"


class JobLabels(NamedTuple):
    """In the order in which the catalogue declares them."""

    engine: str
    model: str
    variant: str
    profile: str


ELSEWHERE: Final = JobLabels(OTHER, OTHER, OTHER, OTHER)
"""Where jobs are counted that there is no row for any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names that are expected, and how many more may come."""

    engines: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    log_engines: tuple[str, ...] = ()
    """Engines that the rules of logs speak for: the first that is heard of them may be an abort."""
    max_names: int = 20
    """Of each label, the expected ones included."""
    max_sets: int = 100
    """Of engine, model, variant and profile together."""


class LabelBook:
    """Gives each job its labels. Names are taken as they come until there are too many.

    `opened` is told of each set when it is first used; `dropped` by `count_dropped` alone, of each
    name beyond the bound, by label.
    """

    def __init__(
        self,
        known: Known,
        opened: Callable[[JobLabels], None],
        dropped: Callable[[str], None],
    ) -> None:
        self._known = known
        self._opened = opened
        self._dropped = dropped
        self._names: dict[str, set[str]] = {
            "engine": {UNKNOWN, *known.engines, *known.log_engines},
            "model": {UNKNOWN, *known.models},
            "variant": {NO_VARIANT, *known.variants},
            "profile": {OTHER, *known.profiles},
        }
        self._found: dict[JobLabels, _Placed] = {}
        self._sets: dict[JobLabels, None] = {}
        # What an end without a beginning is counted under takes nobody's place.
        self._most_sets = known.max_sets + len(
            set(unannounced_sets(known)) - set(expected_sets(known))
        )

    @property
    def sets(self) -> tuple[JobLabels, ...]:
        """Those that are in use, oldest first."""
        return tuple(self._sets)

    def expected(self) -> Iterator[JobLabels]:
        """The sets of which rows stand there from the start."""
        for labels in expected_sets(self._known):
            yield self.labels_of(*labels)

    def open_unannounced(self) -> None:
        """Take up the sets of jobs of which the first word may be the last."""
        for labels in unannounced_sets(self._known):
            self.labels_of(*labels)

    def labels_of(self, engine: str, model: str, variant: str, profile: str) -> JobLabels:
        """The labels of a job with these names."""
        return self._find(JobLabels(engine, model, variant, profile)).labels

    def count_dropped(self, engine: str, model: str, variant: str, profile: str) -> None:
        """Tell what a job's labels leave out of its names; to be asked once for each."""
        for label in self._find(JobLabels(engine, model, variant, profile)).dropped:
            self._dropped(label)

    def _find(self, said: JobLabels) -> "_Placed":
        found = self._found.get(said)
        if found is None:
            found = self._place(said)
            # Past this nothing new is admitted, and looking it up again costs little.
            if len(self._found) < 4 * self._known.max_sets:
                self._found[said] = found
        return found

    def _place(self, said: JobLabels) -> "_Placed":
        names = {
            "engine": said.engine or UNKNOWN,
            "model": said.model or UNKNOWN,
            "variant": said.variant or NO_VARIANT,
            "profile": said.profile or OTHER,
        }
        labels = JobLabels(**{label: self._admit(label, name) for label, name in names.items()})
        # The word for what was not said is no name.
        dropped = [
            label
            for label, name in names.items()
            if name != OTHER and getattr(labels, label) == OTHER
        ]
        if labels not in self._sets and labels != ELSEWHERE and len(self._sets) >= self._most_sets:
            dropped.append("set")
            labels = ELSEWHERE
        if labels not in self._sets:
            if labels == ELSEWHERE:
                self._most_sets += 1
            self._sets[labels] = None
            self._opened(labels)
        return _Placed(labels, tuple(dropped))

    def _admit(self, label: str, name: str) -> str:
        names = self._names[label]
        if name in names:
            return name
        if len(names) > self._known.max_names:
            return OTHER
        names.add(name)
        return name


class _Placed(NamedTuple):
    labels: JobLabels
    dropped: tuple[str, ...]
    """What was said and is not in them, by label."""


def expected_sets(known: Known) -> Iterable[JobLabels]:
    """Every combination of expected names; what is not named may be left unsaid."""
    return (
        JobLabels(*names)
        for names in product(
            known.engines or (UNKNOWN,),
            known.models or (UNKNOWN,),
            (NO_VARIANT, *known.variants),
            (OTHER, *known.profiles),
        )
    )


def unannounced_sets(known: Known) -> Iterable[JobLabels]:
    """Where an end counts of which nobody had heard: a line of a log need not name more."""
    engines = dict.fromkeys((UNKNOWN, *known.engines, *known.log_engines))
    return (JobLabels(engine, UNKNOWN, NO_VARIANT, OTHER) for engine in engines)
