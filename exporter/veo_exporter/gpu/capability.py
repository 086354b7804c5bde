# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a board or the rights do not give, named for whoever reads the page."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from veo_exporter.catalog import MetricSpec, Series
from veo_exporter.catalog.gpu_samples import GAPS
from veo_exporter.gpu.field_table import FIELDS
from veo_exporter.gpu.gpm_signals import SERIES as GPM_SERIES
from veo_exporter.gpu.probes import PROBES
from veo_exporter.gpu.readings import Cadence, Signal, WhyNot, signal_name

LabelSets = list[tuple[str, ...]]

SIGNALS: Final[tuple[Signal, ...]] = tuple(
    signal
    for cadence in Cadence
    for signals in (
        *(probe.signals for probe in PROBES[cadence]),
        *(one.signals for one in FIELDS[cadence]),
    )
    for signal in signals
)
"""All that is asked for by name."""


def _series_by_metric(signals: Iterable[Signal]) -> dict[MetricSpec, LabelSets]:
    found: dict[MetricSpec, LabelSets] = {}
    for signal in signals:
        if isinstance(signal, Series):
            found.setdefault(signal.spec, []).append(signal.labels)
    return found


_SERIES: Final = _series_by_metric((*SIGNALS, *GAPS.values(), *GPM_SERIES))


def capabilities_missing(missing: Iterable[Mapping[Signal, WhyNot]]) -> dict[str, WhyNot]:
    """Why each absent metric is absent, by name.

    Where a metric is absent in part, its name has a selector of the absent part, as few of them as
    it takes: each is a series.
    """
    signals = {signal: why for group in missing for signal, why in group.items()}
    named = {
        signal_name(signal): why
        for signal, why in signals.items()
        if not isinstance(signal, Series)
    }
    for why in WhyNot:
        of_this_kind = (signal for signal, own in signals.items() if own is why)
        for spec, absent in _series_by_metric(of_this_kind).items():
            for selector in _selectors(spec, absent, _SERIES.get(spec, absent)):
                named[spec.name + selector] = why
    return named


def _selectors(spec: MetricSpec, absent: LabelSets, known: LabelSets) -> Iterator[str]:
    names = spec.label_names[-len(known[0]) :]
    own = [_values(absent, place) for place in range(len(names))]
    covered = [
        labels
        for labels in known
        if all(value in values for value, values in zip(labels, own, strict=True))
    ]
    if len(covered) != len(absent):
        # No rectangle: one for each value of the first label in which the series differ.
        first = next(place for place, values in enumerate(own) if len(values) > 1)
        for value in own[first]:
            yield from _selectors(
                spec, [labels for labels in absent if labels[first] == value], known
            )
        return
    matchers = [
        f'{name}="{values[0]}"' if len(values) == 1 else f'{name}=~"{"|".join(values)}"'
        for place, (name, values) in enumerate(zip(names, own, strict=True))
        if len(values) < len(_values(known, place))
    ]
    yield f"{{{','.join(matchers)}}}" if matchers else ""


def _values(series: LabelSets, place: int) -> list[str]:
    return list(dict.fromkeys(labels[place] for labels in series))
