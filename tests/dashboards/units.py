# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Units that Grafana knows, of those in use here: the ids that @grafana/data's getValueFormats gives."""

GRAFANA_UNITS = {
    "none": "a number as it is",
    "short": "a number with k, M and so on",
    "percentunit": "0 to 1 as per cent",
    "s": "seconds",
    "dateTimeAsIso": "milliseconds since 1970 as a date",
    "bytes": "bytes, IEC",
    "Bps": "bytes per second, SI",
    "hertz": "hertz",
    "watt": "watts",
    "joule": "joules",
    "celsius": "degrees Celsius",
    "cps": "counts per second",
}
