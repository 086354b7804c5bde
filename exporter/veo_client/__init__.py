# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a video generation job says of itself, without any dependency."""

__version__ = "0.1.0"
