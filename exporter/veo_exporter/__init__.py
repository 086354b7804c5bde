# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Observability for machines that generate video: GPUs, jobs and frame timing."""

__version__ = "0.1.0"
