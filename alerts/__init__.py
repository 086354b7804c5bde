# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Rules for Prometheus, written from their sources and thresholds."""
