# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Counters of things that happen once."""

import pytest

from veo_exporter.catalog import Kind, Label, MetricSpec
from veo_exporter.exposition import Folds, Format, TextWriter
from veo_exporter.units import Unit

DROPPED = MetricSpec(
    "veo_dropped_total",
    Kind.COUNTER,
    Unit.NONE,
    "Dropped.",
    (Label("reason", "why", "2"), Label("kind", "what", "2")),
)
ENERGY = MetricSpec("veo_energy_joules_total", Kind.COUNTER, Unit.JOULES, "Energy.")
GAUGE = MetricSpec("veo_seats", Kind.GAUGE, Unit.NONE, "Seats.")


def written(folds: Folds) -> list[str]:
    lines = TextWriter(Format.TEXT).write(folds.families(0)).splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_what_is_known_beforehand_starts_at_zero() -> None:
    folds = Folds()
    folds.counter(DROPPED, [("bad", "http"), ("full", "file")])
    assert written(folds) == [
        'veo_dropped_total{kind="http",reason="bad"} 0.0',
        'veo_dropped_total{kind="file",reason="full"} 0.0',
    ]


def test_counts_are_kept_under_the_labels_of_the_spec() -> None:
    folds = Folds()
    dropped = folds.counter(DROPPED, [("bad", "http")])
    energy = folds.counter(ENERGY)
    dropped.labels("bad", "http").inc()
    dropped.labels(kind="http", reason="bad").inc(2)
    dropped.labels("new", "file").inc()
    energy.inc(0.5)
    assert written(folds) == [
        'veo_dropped_total{kind="http",reason="bad"} 3.0',
        'veo_dropped_total{kind="file",reason="new"} 1.0',
        "veo_energy_joules_total 0.5",
    ]


def test_families_carry_their_spec() -> None:
    folds = Folds()
    folds.counter(DROPPED)
    folds.counter(ENERGY)
    assert [family.spec for family in folds.families(0)] == [DROPPED, ENERGY]


def test_a_counter_without_label_sets_is_left_out_until_it_counts() -> None:
    folds = Folds()
    dropped = folds.counter(DROPPED)
    assert written(folds) == []
    dropped.labels("bad", "http").inc()
    assert written(folds) == ['veo_dropped_total{kind="http",reason="bad"} 1.0']


def test_folds_are_read_at_each_scrape() -> None:
    assert Folds().revision(0) is None


def test_two_folds_do_not_share_their_counts() -> None:
    one, other = Folds(), Folds()
    one.counter(ENERGY).inc()
    other.counter(ENERGY)
    assert written(one) == ["veo_energy_joules_total 1.0"]
    assert written(other) == ["veo_energy_joules_total 0.0"]


def test_what_is_no_counter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^veo_seats is no counter$"):
        Folds().counter(GAUGE)


def test_a_counter_is_made_once() -> None:
    folds = Folds()
    folds.counter(ENERGY)
    with pytest.raises(ValueError, match="Duplicated"):
        folds.counter(ENERGY)


def test_what_changes_with_every_scrape_is_written_anew_once_in_its_time() -> None:
    folds = Folds(refresh_seconds=1.0)
    assert folds.revision(10.0) == folds.revision(10.99)
    assert folds.revision(10.99) != folds.revision(11.0)
