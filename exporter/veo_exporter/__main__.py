# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""python -m veo_exporter"""

import sys

from veo_exporter.cli import main

sys.exit(main())
