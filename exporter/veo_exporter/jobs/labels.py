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
    max_names: int = 20
    """Of each label, the expected ones included."""
    max_sets: int = 100
    """Of engine, model, variant and profile together."""


class LabelBook:
    """Gives each job its labels. Names are taken as they come until there are too many.

    `opened` is told of each set when it is first used; `dropped` of each name beyond the bound, by
    label.
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
            "engine": {UNKNOWN, *known.engines},
            "model": {UNKNOWN, *known.models},
            "variant": {NO_VARIANT, *known.variants},
            "profile": {OTHER, *known.profiles},
        }
        self._found: dict[JobLabels, JobLabels] = {}
        self._sets: set[JobLabels] = {ELSEWHERE}

    def expected(self) -> Iterator[JobLabels]:
        """The sets of which rows stand there from the start."""
        for labels in expected_sets(self._known):
            yield self.labels_of(*labels)

    def labels_of(self, engine: str, model: str, variant: str, profile: str) -> JobLabels:
        """The labels of a job with these names."""
        said = JobLabels(engine, model, variant, profile)
        found = self._found.get(said)
        if found is None:
            found = self._place(said)
            # Past this nothing new is admitted, and looking it up again costs little.
            if len(self._found) < 4 * self._known.max_sets:
                self._found[said] = found
        return found

    def _place(self, said: JobLabels) -> JobLabels:
        labels = JobLabels(
            self._admit("engine", said.engine or UNKNOWN),
            self._admit("model", said.model or UNKNOWN),
            self._admit("variant", said.variant or NO_VARIANT),
            self._admit("profile", said.profile or OTHER),
        )
        if labels in self._sets:
            return labels
        if len(self._sets) > self._known.max_sets:
            self._dropped("set")
            return ELSEWHERE
        self._sets.add(labels)
        self._opened(labels)
        return labels

    def _admit(self, label: str, name: str) -> str:
        names = self._names[label]
        if name in names:
            return name
        # The word for what was not said is no name.
        if len(names) > self._known.max_names:
            if name != OTHER:
                self._dropped(label)
            return OTHER
        names.add(name)
        return name


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
