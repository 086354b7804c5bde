# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The page at /: what runs here, how its GPUs are, and where everything else is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu import GpuView, Signal, Snapshot, State

_GIB: Final = 1024**3

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --bad: #b3261e; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --warn: #ffcf70; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 92rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
.simulated { border: 2px solid var(--warn); padding: .5rem 1rem; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .75rem; text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; }
td.bad { color: var(--bad); font-weight: 600; }
code { font-size: .9em; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What the page says."""

    version: str
    node: str
    simulated: bool
    gpus_watched: bool
    snapshot: Snapshot
    withdrawn: Sequence[str]
    now_monotonic_seconds: float


_LINKS: Final = (
    ("/metrics", "what Prometheus scrapes"),
    ("/-/ready", "what is withdrawn now, if anything"),
    ("/-/healthy", "whether this process itself is well"),
)


def render_landing(landing: Landing) -> str:
    """The page as HTML, complete in itself: it works without any other host and without scripts."""
    banner = (
        '<p class="simulated" role="note">Simulated: every figure here is made up.</p>'
        if landing.simulated
        else ""
    )
    title = f"veo-exporter on {landing.node}" + (" (simulated)" if landing.simulated else "")
    links = "".join(
        f'<li><a href="{path}"><code>{path}</code></a>: {what}</li>' for path, what in _LINKS
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>Version {escape(landing.version)}</p>
{banner}
{_gpus(landing)}
{_withdrawn(landing.withdrawn)}
<nav aria-label="Pages"><ul>{links}</ul></nav>
</main>
</body>
</html>
"""


def _gpus(landing: Landing) -> str:
    if not landing.gpus_watched:
        return "<p>GPUs are not watched (gpu.enabled is false).</p>"
    snapshot, now = landing.snapshot, landing.now_monotonic_seconds
    rows = "".join(_row(gpu, snapshot.current_values(gpu, now)) for gpu in snapshot.gpus)
    if not rows:
        return "<p>No GPU is known of yet.</p>"
    numbers = "".join(
        f'<th scope="col" class="number">{name}</th>'
        for name in ("Utilization", "Memory used", "Power", "Temperature")
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="GPUs"><table><caption>GPUs now</caption>'
        f'<thead><tr><th scope="col">GPU</th><th scope="col">State</th>{numbers}'
        '<th scope="col">Name</th><th scope="col">UUID</th><th scope="col">PCI</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(gpu: GpuView, values: Mapping[Signal, float]) -> str:
    used, total = values.get(catalog.MEMORY_USED), values.get(catalog.MEMORY_TOTAL)
    numbers = "".join(
        f'<td class="number">{text}</td>'
        for text in (
            _number(values.get(catalog.UTILIZATION), 100, "%"),
            _number(used, 1 / _GIB, "GiB", 1)
            + (f" of {_number(total, 1 / _GIB, 'GiB')}" if total else ""),
            _number(values.get(catalog.POWER), 1, "W"),
            _number(values.get(catalog.TEMPERATURE), 1, "°C"),
        )
    )
    mark = "" if gpu.state is State.OK else ' class="bad"'
    return (
        f'<tr><th scope="row">{"?" if gpu.index is None else gpu.index}</th>'
        f"<td{mark}>{gpu.state.value.replace('_', ' ')}</td>{numbers}"
        f"<td>{escape(gpu.texts.get('name', ''))}</td><td><code>{escape(gpu.uuid)}</code></td>"
        f"<td><code>{escape(gpu.pci_bus_id)}</code></td></tr>"
    )


def _number(value: float | None, scale: float, unit: str, digits: int = 0) -> str:
    return "–" if value is None else f"{value * scale:.{digits}f} {unit}"


def _withdrawn(sentences: Sequence[str]) -> str:
    if not sentences:
        return "<p>Nothing is withdrawn.</p>"
    return f"<h2>Withdrawn now</h2><ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"
