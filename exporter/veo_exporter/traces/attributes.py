# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The name of each attribute, event and span, once.

Where OpenTelemetry has a name, it is that one (semantic conventions 1.44, those for generative AI
as of their own repository): there is none for making video yet, so what is particular to it stands
under `videogen.`, and the operation's name and output type are values that the conventions allow.
Never in here: prompts.
"""

from typing import Final

# OpenTelemetry's own.
ERROR_TYPE: Final = "error.type"
FILE_PATH: Final = "file.path"
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_OUTPUT_TYPE: Final = "gen_ai.output.type"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
HOST_NAME: Final = "host.name"
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"

GENERATE_VIDEO: Final = "generate_video"
VIDEO: Final = "video"
OTHER_ERROR: Final = "_OTHER"
"""What the conventions want where the type of an error is not known."""

# Of the process that sends the spans.
SIMULATED: Final = "videogen.simulated"

# Of a job.
JOB_ID: Final = "videogen.job.id"
ENGINE: Final = "videogen.engine"
VARIANT: Final = "videogen.variant"
PROFILE: Final = "videogen.profile"
OUTCOME: Final = "videogen.outcome"
REASON: Final = "videogen.reason"
MODULE: Final = "videogen.module"
"""The part of the engine that is at fault."""
STAGE_AT_END: Final = "videogen.stage_at_end"
ERROR_CODE: Final = "videogen.error.code"
FRAME_AT_END: Final = "videogen.frame_at_end"
GPUS: Final = "videogen.gpu.uuids"
GPU_MEMORY_PEAK: Final = "videogen.gpu.memory_peak_bytes"
ATTEMPTS: Final = "videogen.attempts"
QUEUE_WAIT: Final = "videogen.queue.wait_s"
OUTPUT_COUNT: Final = "videogen.output.count"
OUTPUT_FILTERED: Final = "videogen.output.filtered_count"
OUTPUT_BYTES: Final = "videogen.output.bytes"
OUTPUT_VERDICT: Final = "videogen.output.verdict"
SPANS_LEFT_OUT: Final = "videogen.spans_left_out"

# Of an attempt.
ATTEMPT_NUMBER: Final = "videogen.attempt.number"
RETRY_DELAY: Final = "videogen.retry.delay_s"
RETRY_REASON: Final = "videogen.retry.reason"

# Of a stage.
STAGE: Final = "videogen.stage"
STAGE_CACHE: Final = "videogen.stage.cache"
STAGE_DURATION: Final = "videogen.stage.duration_s"
"""As the engine said, which may be more than the job had room for."""

# Of a probed file.
VIDEO_VERDICT: Final = "videogen.video.verdict"
VIDEO_DEFECTS: Final = "videogen.video.defects"
VIDEO_CODEC: Final = "videogen.video.codec"
VIDEO_FRAMES: Final = "videogen.video.frames"
VIDEO_FRAMES_MISSING: Final = "videogen.video.frames_missing"
VIDEO_FRAME_RATE: Final = "videogen.video.frame_rate_hz"
VIDEO_DURATION: Final = "videogen.video.duration_s"

# Spans and events. A stage's span has the stage's name.
JOB_SPAN: Final = "process video_jobs"
ATTEMPT_SPAN: Final = "attempt"
PROBE_SPAN: Final = "probe_video"
RETRY_EVENT: Final = "retry"
