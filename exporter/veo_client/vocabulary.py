# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The words of a job's events, in the one place where they stand.

The daemon imports this module too, so that what a job may say and what the daemon counts cannot
drift apart. Python 3.9 and the standard library only.
"""

from enum import Enum


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
