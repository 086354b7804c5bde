# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Each setting takes hold on a reload, or is refused by name. None does neither."""

from pathlib import Path
from typing import Any

import pytest

from tests.test_app import running
from veo_exporter.app.reloading import TAKE_HOLD, Changeable, refuse_what_needs_a_restart
from veo_exporter.cli.show import settings_markdown
from veo_exporter.config import Settings, setting_places
from veo_exporter.errors import BadConfig

OTHERWISE: dict[str, dict[str, Any]] = {
    "web": {"listen_address": "127.0.0.1:1", "unix_socket": "/run/other.sock"},
    "gpu": {
        "enabled": False,
        "fast_interval": "2s",
        "full_interval": "6s",
        "static_interval": "61s",
        "window": "31s",
        "call_deadline": "3s",
        "start_deadline": "31s",
        "expected_count": 5,
        "sysfs_root": "/host/sys",
        "device_root": "/host/dev",
        "proc_root": "/host/proc",
        "driver_samples": False,
        "pause_default": "11m",
        "pause_max": "2h",
        "process_names": 6,
        "process_names_max": 51,
        "gpm": "off",
        "dcgm_names": "classic",
        "dcgm_uuid_label": "uuid",
        "dcgm_hostname_label": "hostname",
    },
    "advice": {
        "medium_from": 0.5,
        "low_above": 0.9,
        "hysteresis": 0.02,
        "sweeps": 4,
        "pressure_free_bytes": 1,
    },
    "kubernetes": {
        "enabled": "off",
        "kubelet_socket": "/run/kubelet.sock",
        "interval": "31s",
        "deadline": "3s",
        "keep": "6m",
        "resource_prefixes": ["example.com/"],
        "max_rows": 513,
        "max_answer_bytes": 4097,
    },
    "kernel": {"log": "off", "log_path": "/var/log/kern.log"},
    "state": {"enabled": False, "directory": "/srv/state"},
    "video": {
        "enabled": False,
        "folders": [{"name": "out", "path": "/srv/out"}],
        "roots": ["/srv/videos"],
        "ffprobe": "/opt/ffprobe",
        "formats": ["mp4"],
        "workers": 3,
        "backlog": 1001,
        "deadline": "61s",
        "memory_limit_mebibytes": 1025,
        "output_limit_mebibytes": 65,
        "frames_limit": 100_001,
        "niceness": 11,
        "deviation": "1ms",
        "jitter": "60ms",
        "gap_intervals": 1.6,
        "consistency": 0.98,
    },
    "jobs": {
        "engines": ["other"],
        "models": ["m"],
        "variants": ["v"],
        "profiles": ["1080p24-6s"],
        "max_names": 21,
        "max_label_sets": 101,
        "budget_presets": [],
        "budgets": ["*/*/render=1s"],
        "lost_after": "601s",
        "remember": "3601s",
        "max_in_flight": 10_001,
        "max_event_ids": 100_001,
        "max_batch": 1001,
    },
    "logs": {
        "files": ["/var/log/veo/veo-engine.log"],
        "rules": [],
        "interval": "1s",
        "max_files": 65,
        "max_line_bytes": 65_537,
        "max_read_bytes": (4 << 20) + 1,
    },
    "traces": {
        "endpoint": "http://127.0.0.1:4318",
        "keep_unsampled": False,
        "queue_limit": 2049,
        "probe_patience": "31s",
        "waiting_limit": 257,
    },
    "log": {"level": "debug", "format": "json"},
}
"""Each setting with a value that is not its default."""

PLACES = setting_places()
BEFORE = Settings()
each_setting = pytest.mark.parametrize(
    "place", [place for place in PLACES if place[1] in OTHERWISE.get(place[0], {})], ids=".".join
)


def after(place: tuple[str, ...], base: Settings = BEFORE) -> Settings:
    section, name = place
    changed = base.model_dump(mode="json")
    changed[section][name] = OTHERWISE[section][name]
    return Settings.model_validate(changed)


def handed_over(settings: Settings) -> tuple[object, ...]:
    """What a reload gives to the rooms, as far as it can be compared."""
    parts = Changeable.of(settings)
    probe, budgets = parts.probe, parts.budgets
    return (
        *(parts.timing, parts.expected_gpus, parts.pauses, parts.ladder),
        *(parts.process_names, parts.gpm_signals, parts.pods),
        *(parts.backlog, parts.limits, parts.max_batch),
        *(probe.roots, probe.thresholds, probe.most_frames, probe.ffprobe.limits),
        # What these two are made of is nobody else's business, but it is compared here.
        vars(probe.ffprobe)["_program"],
        vars(budgets),
    )


def test_no_setting_is_forgotten() -> None:
    written = {(section, name) for section, names in OTHERWISE.items() for name in names}
    assert written == set(PLACES)
    assert set(PLACES) >= TAKE_HOLD


@each_setting
def test_the_other_value_is_another(place: tuple[str, ...]) -> None:
    section, name = place
    before, changed = getattr(BEFORE, section), getattr(after(place), section)
    assert getattr(before, name) != getattr(changed, name)
    assert changed.model_copy(update={name: getattr(before, name)}) == before


@each_setting
def test_it_reaches_a_room_or_is_refused_by_name(place: tuple[str, ...]) -> None:
    if place in TAKE_HOLD:
        refuse_what_needs_a_restart(BEFORE, after(place))
        assert handed_over(after(place)) != handed_over(BEFORE)
        return
    with pytest.raises(BadConfig) as refused:
        refuse_what_needs_a_restart(BEFORE, after(place))
    assert refused.value.faults == [
        f"{'.'.join(place)} cannot change while the exporter runs: restart it"
    ]


def test_the_docs_say_which_settings_need_a_restart() -> None:
    rows = [line for line in settings_markdown().splitlines() if line.startswith("| `")]
    said = {line.split("`")[1] for line in rows if line.endswith(" Needs a restart. |")}
    assert said == {".".join(place) for place in PLACES if place not in TAKE_HOLD}
    assert len(rows) == len(PLACES)


def test_what_is_unchanged_is_handed_over_unchanged() -> None:
    refuse_what_needs_a_restart(BEFORE, Settings())
    assert handed_over(Settings()) == handed_over(BEFORE)


async def test_a_running_exporter_does_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "veo.sock"
    given = Settings.model_validate(
        {"web": {"listen_address": "127.0.0.1:0", "unix_socket": str(path)}}
    )
    async with running(given) as seen:
        for place in PLACES:
            seen.next = after(place, given)
            name = ".".join(place)
            answer = await seen.ask("POST", "/-/reload", by_socket=True)
            if place in TAKE_HOLD:
                assert answer == (200, "reloaded\n"), name
                assert seen.app.settings == seen.next, name
            else:
                assert answer == (
                    400,
                    (
                        "refused, the old configuration stays:\n"
                        f"{name} cannot change while the exporter runs: restart it\n"
                    ),
                )
            seen.next = given
            assert (await seen.ask("POST", "/-/reload", by_socket=True))[0] == 200


async def test_the_size_of_a_batch_changes_with_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "veo.sock"
    web = {"listen_address": "127.0.0.1:0", "unix_socket": str(path)}
    event = {"specversion": "1.0", "source": "s", "type": "veo.job.started", "subject": "j"}
    batch = [event | {"id": "1"}, event | {"id": "2"}]
    kind = "application/cloudevents-batch+json"
    async with running(Settings.model_validate({"web": web})) as seen:
        assert (await seen.post("/api/v1/events", batch, kind))[0] == 202
        seen.next = Settings.model_validate({"web": web, "jobs": {"max_batch": 1}})
        assert (await seen.ask("POST", "/-/reload", by_socket=True))[0] == 200
        status, answer = await seen.post("/api/v1/events", batch, kind)
        assert status == 413
        assert "2 events at once, and 1 are taken" in answer
