# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The closed lists, and the tables that lead to them."""

from fractions import Fraction

import pytest

from tests.jobs import BUDGETS
from veo_client.vocabulary import OUTCOME_OF, USUAL_REASON, Outcome, Reason
from veo_exporter.config.jobs import Jobs
from veo_exporter.jobs.budgets import PRESETS, Budget, Budgets, parse_budget
from veo_exporter.jobs.payload import Request, profile_of
from veo_exporter.jobs.reasons import TABLE, cause_of, find_reason


def test_reasons_are_few_and_belong_to_one_outcome_each() -> None:
    assert len(Reason) <= 24
    assert set(OUTCOME_OF) == set(Reason)
    assert set(OUTCOME_OF.values()) == set(Outcome)
    assert {outcome: OUTCOME_OF[reason] for outcome, reason in USUAL_REASON.items()} == {
        outcome: outcome for outcome in Outcome
    }


def test_a_code_means_one_reason() -> None:
    codes = [code.lower() for row in TABLE for code in row.codes]
    assert len(codes) == len(set(codes))
    assert len({row.reason for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("quota", "quota"),
        ("429 Too Many Requests", "quota"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
            "out_of_device_memory",
        ),
        ("NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.", "xid"),
        ("device lost", "device_lost"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "device_lost"),
        ("Killed process 4242 (python)", "oom_killed"),
        ("upstream connect error: 503 Service Unavailable", "upstream_503"),
        ("stream removed: RST_STREAM with error code 2", "grpc_reset"),
        ("httpx2.ConnectError: [Errno 111] Connection refused", "transport"),
        ("model veo-3.0-generate-001 is no longer available", "model_unavailable"),
        ("DEADLINE_EXCEEDED", "deadline_engine"),
        ("the render timed out", "deadline_engine"),
        ("No space left on device", "storage"),
        ("Segmentation fault (core dumped)", "worker_died"),
        ("blocked by safety filters; Support codes: 58061214", "content_filtered"),
        ("Internal error encountered.", "upstream_error"),
        ("the trail was rained on", None),
        ("something went wrong", None),
        ("", None),
    ],
)
def test_words_of_a_message_lead_to_a_reason(words: str, reason: str | None) -> None:
    assert find_reason(words) == (reason and Reason(reason))
    assert find_reason("", message=words) == (reason and Reason(reason))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("503", "upstream_503"),
        ("unavailable", "upstream_503"),
        ("14", "upstream_503"),
        ("8", "quota"),
        ("404", "model_unavailable"),
        ("403", "permission_denied"),
        ("400", "invalid_request"),
        ("504", "deadline_engine"),
        ("13", "upstream_error"),
        ("137", "oom_killed"),
        ("418", None),
    ],
)
def test_codes_lead_to_a_reason(code: str, reason: str | None) -> None:
    assert find_reason("", code) == (reason and Reason(reason))


def test_the_module_at_fault_is_named() -> None:
    assert cause_of(Reason.OUT_OF_DEVICE_MEMORY).module == "allocator"
    assert cause_of(Reason.NONE).module == ""


def test_a_long_message_is_searched_at_its_beginning_only() -> None:
    assert find_reason("", message="x" * 100_000 + "quota") is None


@pytest.mark.parametrize(
    ("width", "height", "fps", "seconds", "expected"),
    [
        (1920, 1080, Fraction(24), Fraction(6), "1080p24-6s"),
        (1080, 1920, Fraction(24), Fraction(6), "1080p24-6s"),
        (None, 720, Fraction(30000, 1001), Fraction(31, 5), "720p29.97-6.2s"),
        (3840, 2160, Fraction(60), Fraction(10), "4k60-10s"),
        (1921, 1081, Fraction(24), Fraction(6), "other"),
        (1920, None, Fraction(24), Fraction(6), "other"),
        (1920, 1080, None, Fraction(6), "other"),
        (1920, 1080, Fraction(0), Fraction(6), "other"),
        (1920, 1080, Fraction(24), Fraction(0), "other"),
        (1920, 1080, Fraction(1000), Fraction(6), "other"),
        (1920, 1080, Fraction(24), Fraction(4000), "other"),
    ],
)
def test_profiles(
    width: int | None,
    height: int | None,
    fps: Fraction | None,
    seconds: Fraction | None,
    expected: str,
) -> None:
    asked = Request.model_construct(width=width, height=height, fps=fps, duration_s=seconds)
    assert profile_of(asked) == expected


def test_nothing_asked_is_other() -> None:
    assert profile_of(None) == "other"


def test_the_budget_that_is_said_most_exactly_holds() -> None:
    budgets = Budgets(
        [
            Budget("*", "*", "render", 1),
            Budget("e", "*", "render", 2),
            Budget("*", "m", "render", 3),
            Budget("e", "m", "render", 4),
            Budget("e", "m", "render", 5),
            Budget("e", "*", "lost", 30),
        ],
        600,
    )
    assert budgets.of("e", "m", "render") == 5
    assert budgets.of("e", "x", "render") == 2
    assert budgets.of("x", "m", "render") == 3
    assert budgets.of("x", "x", "render") == 1
    assert budgets.of("e", "m", "denoise") is None
    assert budgets.lost_after("e", "m") == 30
    assert budgets.lost_after("x", "m") == 600


def test_the_first_users_budgets() -> None:
    assert BUDGETS.of("veo-engine", "any", "render") == 6.8
    assert BUDGETS.of("veo-engine", "any", "prompt") == 0.025
    assert BUDGETS.of("veo-engine", "any", "request") == 90
    assert BUDGETS.of("other", "any", "request") is None


def test_presets_and_budgets_are_set_by_name() -> None:
    jobs = Jobs.model_validate({"budgets": '["veo-engine/*/render=7s", "*/m/lost=1m"]'})
    assert set(jobs.budget_presets) == set(PRESETS)
    assert jobs.budget_rows() == [("veo-engine/*/render", 7), ("*/m/lost", 60)]
    assert parse_budget("veo-engine/*/render", 7) == Budget("veo-engine", "*", "render", 7)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("budgets", ["render=7s"], "'render=7s' is no budget: write engine/model/part=duration"),
        ("budgets", ["e/*/rendering=7s"], "'rendering' is no part of a job: one of queue, prompt"),
        ("budgets", ["e/*/render=7"], "'7' is not a duration"),
        ("budgets", "e/*/render=7s", "is no list: in variables and flags write it as JSON"),
        ("budget_presets", ["mine"], "'mine' is no preset: there is veo-engine"),
        ("engines", ["a b"], "'a b' is no name"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match="validation error") as refused:
        Jobs.model_validate({field: value})
    assert message in str(refused.value)
