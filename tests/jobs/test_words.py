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
from veo_exporter.jobs.reasons import TABLE, cause_of, find_reason, judge_end


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


MEMORY = {
    "out_of_device_memory": [
        "CUDA error: out of memory",
        "out of memory",
        "CUDA OOM",
        "OOM",
        "cuda error 2: out of memory",
        "CUDA error 2",
        "torch.cuda.OutOfMemoryError",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 512 bytes",
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CURAND_STATUS_ALLOCATION_FAILED",
        "CUFFT_ALLOC_FAILED",
        "HIPBLAS_STATUS_ALLOC_FAILED",
        "HIP out of memory",
        "VK_ERROR_OUT_OF_DEVICE_MEMORY",
        "NV_ENC_ERR_OUT_OF_MEMORY",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.",
        "failed to allocate 2.0 GiB on GPU 3",
        "not enough GPU memory",
    ],
    "oom_killed": [
        "exit code 137",
        "exited with code 137",
        "worker exited with status 137",
        "exitcode: 137",
        "Out of memory: Killed process 4242 (python) total-vm:1kB",
        "Out of memory: Kill process 4242 (python) score 900 or sacrifice child",
        "Memory cgroup out of memory: Killed process 4242 (python)",
        "oom_reaper: reaped process 4242 (python)",
        "OOMKilled",
        "MemoryError",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes",
        "VK_ERROR_OUT_OF_HOST_MEMORY",
        "the host ran out of memory: host out of memory",
        "std::bad_alloc",
    ],
    "xid": [
        "XID79",
        "Xid 79",
        "xid=79",
        "gpu_xid",
        "Xid (0000:03:00): 13, Graphics Exception",
        "NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 94, pid=7, Contained",
    ],
    "worker_died": ["segfault", "python[7]: segfault at 0 ip 0", "exit code 139", "exitcode: -9", "SIGSEGV"],
    "device_lost": ["CUDA-capable device(s) is/are busy or unavailable", "no CUDA-capable device is detected"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "reason"), [(words, reason) for reason, all_ in MEMORY.items() for words in all_]
)
def test_what_cuda_and_the_kernel_say_of_themselves(words: str, reason: str) -> None:
    # As the line of an abort tells it, and as an error's message or code.
    assert judge_end(Outcome.ABORTED, words).reason.value == reason
    assert judge_end(Outcome.FAILED, message=words).reason.value == reason
    assert judge_end(Outcome.ABORTED, code=words).reason.value == reason


@pytest.mark.parametrize(
    "words",
    ["oom_score_adj=0", "transaction xid12345", "frame 137", "exit code 1", "exit code 1370", "CUDA error 200",
     "bedroom 2", "the room is out of use"],
)  # fmt: skip
def test_what_only_looks_like_them_leads_nowhere(words: str) -> None:
    assert judge_end(Outcome.ABORTED, words).reason is Reason.UNSPECIFIED_ABORT


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("503", "upstream_503"),
        ("unavailable", "upstream_503"),
        ("grpc:14", "upstream_503"),
        ("grpc-status=8", "quota"),
        ("GRPC 13", "upstream_error"),
        ("google.rpc.Code 16", "permission_denied"),
        ("StatusCode.DEADLINE_EXCEEDED", "deadline_engine"),
        ("HTTP 400", "invalid_request"),
        ("grpc:99", None),
        ("404", "model_unavailable"),
        ("403", "permission_denied"),
        ("400", "invalid_request"),
        ("504", "deadline_engine"),
        ("137", "oom_killed"),
        ("418", None),
    ],
)
def test_codes_lead_to_a_reason(code: str, reason: str | None) -> None:
    assert find_reason("", code) == (reason and Reason(reason))


@pytest.mark.parametrize("number", range(100))
def test_a_small_number_is_no_code(number: int) -> None:
    # An exit status, or a number of google.rpc: nobody can tell.
    assert find_reason("", str(number)) is None
    assert find_reason(str(number)) is None


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ABORTED, Outcome.TIMEOUT])
@pytest.mark.parametrize(
    ("said", "stays"),
    [
        # An exit status, and what the message knows beside it.
        ({"code": "1", "message": "worker exited with status 1"}, "worker_died"),
        ({"code": "1"}, ""),
        ({"code": "3"}, ""),
        ({"code": "9"}, ""),
        ({"code": "11"}, ""),
        # Numbers of HTTP: what refused the request may be a service behind the engine.
        ({"code": "400"}, ""),
        ({"code": "422"}, ""),
        ({"code": "499"}, ""),
        ({"reason": "400"}, ""),
        ({"reason": "render cancelled by watchdog"}, ""),
        ({"reason": "request canceled: CUDA out of memory"}, "out_of_device_memory"),
        ({"message": "invalid value in tensor: NaN"}, ""),
        ({"message": "invalid argument"}, ""),
        ({"message": "unsupported value in the weights"}, ""),
        ({"message": "content filter could not be loaded"}, ""),
        ({"message": "the safety filter crashed: Segmentation fault"}, "worker_died"),
        ({"message": "client disconnected"}, ""),
        ({"message": "rpc error: code = Canceled desc = context canceled"}, ""),
    ],
    ids=str,
)
def test_no_number_and_no_word_takes_a_failure_out_of_the_objective(
    outcome: Outcome, said: dict[str, str], stays: str
) -> None:
    unsaid = {
        Outcome.FAILED: "unspecified_failure",
        Outcome.ABORTED: "unspecified_abort",
        Outcome.TIMEOUT: "deadline_engine",
    }[outcome]
    # That a deadline ended it is definite: a message changes nothing of it.
    expected = unsaid if outcome is Outcome.TIMEOUT else stays or unsaid
    assert judge_end(outcome, **said).reason.value == expected


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ABORTED, Outcome.TIMEOUT])
@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.NONE])
def test_a_reason_of_the_list_is_taken_as_stated(outcome: Outcome, reason: Reason) -> None:
    for said in (reason.value, f" {reason.value.upper()} "):
        assert judge_end(outcome, said, "503", "CUDA out of memory") == cause_of(reason)


@pytest.mark.parametrize(
    ("code", "failed", "aborted"),
    [
        ("INVALID_ARGUMENT", "invalid_request", "unspecified_abort"),
        ("grpc:3", "invalid_request", "unspecified_abort"),
        ("grpc:1", "cancelled", "unspecified_abort"),
        ("http 422", "invalid_request", "unspecified_abort"),
        ("FAILED_PRECONDITION", "upstream_error", "upstream_error"),
    ],
)
def test_a_code_that_says_whose_it_is_answers_a_request(
    code: str, failed: str, aborted: str
) -> None:
    assert judge_end(Outcome.FAILED, code=code).reason.value == failed
    assert judge_end(Outcome.ABORTED, code=code).reason.value == aborted
    assert judge_end(Outcome.TIMEOUT, code=code).reason is Reason.DEADLINE_ENGINE


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("frame 503 of 600 could not be written", None),
        ("write failed: disk quota exceeded", "storage"),
        ("the frame rate limit of the encoder is 60", None),
        ("the bitrate limit is 8 Mbit/s", None),
        ("retrying with timeout=30, deadline: 90", None),
        ("unreachable code reached", None),
        ("host 10.0.0.7 is unreachable", "transport"),
        ("the bathroom killed the mood", None),
        ("HTTP/1.1 503", "upstream_503"),
        ("status code: 503", "upstream_503"),
        ("the render timed out", "deadline_engine"),
        ("read timeout", "deadline_engine"),
        ("TimeoutError: the lock was held", "deadline_engine"),
        ("context deadline exceeded", "deadline_engine"),
        ("transaction xid wraparound", None),
    ],
)
def test_words_with_another_meaning_lead_nowhere(message: str, reason: str | None) -> None:
    assert find_reason("", message=message) == (reason and Reason(reason))


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
