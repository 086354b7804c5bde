# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of the GPU's video and image engines, beyond how busy encoder and decoder are."""

from typing import Final

from veo_exporter.catalog.gpu import IDENTITY, gauge
from veo_exporter.catalog.spec import Label
from veo_exporter.units import Unit

CODECS: Final = ("h264", "hevc", "av1")
"""By NVML's number of each."""
CODEC: Final = Label("codec", "h264, hevc or av1", "3")

JPEG_UTILIZATION: Final = gauge(
    "veo_gpu_jpeg_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's window in which the JPEG decoder (NVJPG) was busy.",
)
OFA_UTILIZATION: Final = gauge(
    "veo_gpu_ofa_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's window in which the optical flow accelerator (OFA) was busy.",
)

ENCODER_SESSIONS: Final = gauge(
    "veo_gpu_encoder_sessions", Unit.NONE, "Encoder sessions that are open."
)
ENCODER_FRAME_RATE: Final = gauge(
    "veo_gpu_encoder_frame_rate_hertz",
    Unit.HERTZ,
    "Frames encoded in a second, the mean of all open sessions; absent while there is none.",
)
ENCODER_LATENCY: Final = gauge(
    "veo_gpu_encoder_latency_seconds",
    Unit.SECONDS,
    "Time to encode a frame, the mean of all open sessions; absent while there is none.",
)
CODEC_SESSIONS: Final = gauge(
    "veo_gpu_encoder_codec_sessions",
    Unit.NONE,
    "Encoder sessions that are open, by codec; a codec has a row from its first session on.",
    (*IDENTITY, CODEC),
)
CODEC_FRAME_RATE: Final = gauge(
    "veo_gpu_encoder_codec_frame_rate_hertz",
    Unit.HERTZ,
    "Frames encoded in a second, the mean of the codec's open sessions; absent while it has none.",
    (*IDENTITY, CODEC),
)
CODEC_LATENCY: Final = gauge(
    "veo_gpu_encoder_codec_latency_seconds",
    Unit.SECONDS,
    "Time to encode a frame, the mean of the codec's open sessions; absent while it has none.",
    (*IDENTITY, CODEC),
)
