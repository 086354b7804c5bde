# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The words of a job's events, in the one place where they stand.

The daemon imports this module too, so that what a job may say and what the daemon counts cannot
drift apart. Python 3.9 and the standard library only.
"""

from enum import Enum
from typing import Dict


class EventType(str, Enum):
    """The `type` of a CloudEvent that a job, a prober, a queue or an engine sends."""

    JOB_SUBMITTED = "veo.job.submitted"
    JOB_STARTED = "veo.job.started"
    JOB_STAGE = "veo.job.stage"
    JOB_HEARTBEAT = "veo.job.heartbeat"
    JOB_RETRY = "veo.job.retry"
    JOB_FINISHED = "veo.job.finished"
    JOB_EVALUATED = "veo.job.evaluated"
    VIDEO_PROBED = "veo.video.probed"
    QUEUE_READING = "veo.queue.reading"
    ENGINE_READING = "veo.engine.reading"


class Stage(str, Enum):
    """A part of a job's work whose duration is told apart."""

    QUEUE = "queue"
    PROMPT = "prompt"
    TEXT_ENCODE = "text_encode"
    IMAGE_ENCODE = "image_encode"
    WEIGHTS_LOAD = "weights_load"
    DENOISE = "denoise"
    RENDER = "render"
    VAE_ENCODE = "vae_encode"
    VAE_DECODE = "vae_decode"
    POSTPROCESS = "postprocess"
    ENCODE_MUX = "encode_mux"
    UPLOAD = "upload"
    OTHER = "other"


class Outcome(str, Enum):
    """How a job ended; each job ends in exactly one of these."""

    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    ABORTED = "aborted"
    EMPTY = "empty"
    FILTERED = "filtered"
    CANCELLED = "cancelled"
    LOST = "lost"


class Reason(str, Enum):
    """Why a job ended as it did; each belongs to exactly one outcome. At most 24: it is a label."""

    NONE = "none"

    UPSTREAM_503 = "upstream_503"
    UPSTREAM_ERROR = "upstream_error"
    QUOTA = "quota"
    GRPC_RESET = "grpc_reset"
    TRANSPORT = "transport"
    INVALID_REQUEST = "invalid_request"
    PERMISSION_DENIED = "permission_denied"
    MODEL_UNAVAILABLE = "model_unavailable"
    STORAGE = "storage"
    UNSPECIFIED_FAILURE = "unspecified_failure"

    DEVICE_LOST = "device_lost"
    OUT_OF_DEVICE_MEMORY = "out_of_device_memory"
    OOM_KILLED = "oom_killed"
    XID = "xid"
    WORKER_DIED = "worker_died"
    UNSPECIFIED_ABORT = "unspecified_abort"

    DEADLINE_ENGINE = "deadline_engine"
    DEADLINE_OURS = "deadline_ours"

    EMPTY_OUTPUT = "empty_output"
    CONTENT_FILTERED = "content_filtered"
    CANCELLED = "cancelled"
    NO_WORD = "no_word"


OUTCOME_OF: Dict[Reason, Outcome] = {
    Reason.NONE: Outcome.SUCCESS,
    # Something answered with an error.
    Reason.UPSTREAM_503: Outcome.FAILED,
    Reason.UPSTREAM_ERROR: Outcome.FAILED,
    Reason.QUOTA: Outcome.FAILED,
    Reason.GRPC_RESET: Outcome.FAILED,
    Reason.TRANSPORT: Outcome.FAILED,
    Reason.INVALID_REQUEST: Outcome.FAILED,
    Reason.PERMISSION_DENIED: Outcome.FAILED,
    Reason.MODEL_UNAVAILABLE: Outcome.FAILED,
    Reason.STORAGE: Outcome.FAILED,
    Reason.UNSPECIFIED_FAILURE: Outcome.FAILED,
    # The work was broken off midway, by the machine or the engine.
    Reason.DEVICE_LOST: Outcome.ABORTED,
    Reason.OUT_OF_DEVICE_MEMORY: Outcome.ABORTED,
    Reason.OOM_KILLED: Outcome.ABORTED,
    Reason.XID: Outcome.ABORTED,
    Reason.WORKER_DIED: Outcome.ABORTED,
    Reason.UNSPECIFIED_ABORT: Outcome.ABORTED,
    # Ended by a deadline: the engine's own, or the one set for it here.
    Reason.DEADLINE_ENGINE: Outcome.TIMEOUT,
    Reason.DEADLINE_OURS: Outcome.TIMEOUT,
    Reason.EMPTY_OUTPUT: Outcome.EMPTY,
    Reason.CONTENT_FILTERED: Outcome.FILTERED,
    Reason.CANCELLED: Outcome.CANCELLED,
    Reason.NO_WORD: Outcome.LOST,
}
"""The outcome that a reason belongs to."""

USUAL_REASON: Dict[Outcome, Reason] = {
    Outcome.SUCCESS: Reason.NONE,
    Outcome.FAILED: Reason.UNSPECIFIED_FAILURE,
    Outcome.TIMEOUT: Reason.DEADLINE_ENGINE,
    Outcome.ABORTED: Reason.UNSPECIFIED_ABORT,
    Outcome.EMPTY: Reason.EMPTY_OUTPUT,
    Outcome.FILTERED: Reason.CONTENT_FILTERED,
    Outcome.CANCELLED: Reason.CANCELLED,
    Outcome.LOST: Reason.NO_WORD,
}
"""What an outcome is put down to when nothing more is known."""
