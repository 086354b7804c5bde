# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a board or the rights do not give, named for whoever reads the page."""

from collections import Counter
from collections.abc import Iterable, Mapping

from veo_exporter.catalog import Series
from veo_exporter.gpu.probes import SIGNALS
from veo_exporter.gpu.readings import Signal, WhyNot, signal_name

_SERIES_OF = Counter(signal.spec for signal in SIGNALS if isinstance(signal, Series))


def capabilities_missing(missing: Iterable[Mapping[Signal, WhyNot]]) -> dict[str, WhyNot]:
    """Why each absent metric is absent, by name.

    Where all series of a metric are absent for one reason, the metric is named once; else each of
    them is, with its labels.
    """
    signals = {signal: why for group in missing for signal, why in group.items()}
    absent = Counter(
        (signal.spec, why) for signal, why in signals.items() if isinstance(signal, Series)
    )
    named: dict[str, WhyNot] = {}
    for signal, why in signals.items():
        whole = isinstance(signal, Series) and absent[signal.spec, why] == _SERIES_OF[signal.spec]
        named[signal.spec.name if isinstance(signal, Series) and whole else signal_name(signal)] = (
            why
        )
    return named
