# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The project's budgets, measured beside nvitop-exporter on the same fake NVML."""
