# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, and what of it derives from the rest of the repository."""
