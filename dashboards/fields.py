# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of a panel that say how its values look."""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.sdk import common, dashboard


@dataclass(frozen=True, slots=True)
class Wording:
    """A value in words and in a colour."""

    text: str
    colour: str


def mappings(words: Mapping[int, Wording] | None) -> list[dashboard.ValueMapping] | None:
    """Values as words, in the order they are declared."""
    if words is None:
        return None
    results = {
        str(value): dashboard.ValueMappingResult(text=word.text, color=word.colour, index=place)
        for place, (value, word) in enumerate(words.items())
    }
    return [dashboard.ValueMap(options=results)]


def override(
    matcher: str, what: str, **properties: object
) -> dashboard.DashboardFieldConfigSourceOverrides:
    """What differs for the series or columns that match."""
    return dashboard.DashboardFieldConfigSourceOverrides(
        matcher=dashboard.MatcherConfig(id_val=matcher, options=what),
        properties=[
            dashboard.DynamicConfigValue(id_val=name, value=value)
            for name, value in properties.items()
        ],
    )


def fixed(colour: str) -> dict[str, str]:
    """One colour."""
    return {"mode": "fixed", "fixedColor": colour}


def legend(*, shown: bool) -> common.VizLegendOptions:
    """The names of the series, below the graph."""
    return common.VizLegendOptions(
        display_mode=common.LegendDisplayMode.LIST,
        placement=common.LegendPlacement.BOTTOM,
        show_legend=shown,
        calcs=[],
    )


def tooltip() -> common.VizTooltipOptions:
    """All series at once, the highest first."""
    return common.VizTooltipOptions(
        mode=common.TooltipDisplayMode.MULTI, sort=common.SortOrder.DESCENDING
    )


def show_directly(made: dashboard.DashboardLink) -> None:
    """Take the link out of the menu that the SDK hides it in."""
    # The SDK hides links in a menu unless told otherwise.
    made.placement = None  # type: ignore[assignment]
