# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The licence that a virtual GPU needs: whether there is one."""

from enum import IntEnum

from veo_exporter.gpu.nvml import Handle, Line


class VgpuLicense(IntEnum):
    """How a GPU stands with licences: what `Raw.VGPU_LICENSE` counts in."""

    NOT_NEEDED = 0
    """A board of the machine's own: there is none to be had."""
    MISSING = 1
    ACTIVE = 2


def ask_vgpu_license(line: Line, gpu: Handle) -> tuple[float]:
    """Of several features, one with a licence is enough, as in DCGM."""
    told = line.call("nvmlDeviceGetGridLicensableFeatures", gpu)
    if not told.isGridLicenseSupported:
        return (VgpuLicense.NOT_NEEDED,)
    features = told.gridLicensableFeatures[: told.licensableFeaturesCount]
    licensed = any(feature.featureState for feature in features)
    return (VgpuLicense.ACTIVE if licensed else VgpuLicense.MISSING,)
