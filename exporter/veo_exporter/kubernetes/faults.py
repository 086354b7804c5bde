# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Why the kubelet gave no mapping of pods."""

from enum import Enum


class Cause(Enum):
    """What went wrong; the value is the label's. The set is closed."""

    UNREACHABLE = "unreachable"
    DENIED = "denied"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    GARBLED = "garbled"
    TOO_LARGE = "too_large"


class KubeletFault(Exception):
    """A question that got no usable answer. The message says what happened, `remedy` what helps."""

    def __init__(self, cause: Cause, message: str, remedy: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.remedy = remedy


def garbled(what: str) -> KubeletFault:
    """The answer makes no sense."""
    return KubeletFault(
        Cause.GARBLED, what, "check that kubernetes.kubelet_socket is the kubelet's own socket"
    )
