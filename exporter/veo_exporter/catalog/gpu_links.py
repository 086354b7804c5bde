# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of what connects a GPU: PCIe, and all its NVLinks together."""

from typing import Final

from veo_exporter.catalog.gpu import ERROR, IDENTITY, counter, gauge
from veo_exporter.units import Unit

PCIE_ERRORS_KNOWN: Final = (
    "correctable",
    "nak_received",
    "receiver",
    "bad_tlp",
    "nak_sent",
    "bad_dllp",
    "non_fatal",
    "fatal",
    "unsupported_request",
    "lcrc",
    "lane",
)
"""In the order of NVML's fields, from 173 on."""
NVLINK_ERRORS_KNOWN: Final = ("replay", "recovery", "crc_flit", "crc_data", "ecc_data")
NVLINK_PACKET_ERRORS_KNOWN: Final = (
    "malformed_packet",
    "buffer_overrun",
    "receive",
    "receive_remote",
    "receive_general",
    "local_link_integrity",
    "transmit_discard",
    "link_recovery_failed",
    "effective",
    "symbol",
)


PCIE_GENERATION: Final = gauge(
    "veo_gpu_pcie_generation",
    Unit.NONE,
    "PCIe generation of the link at this moment; boards lower it while idle.",
)
PCIE_GENERATION_MAX: Final = gauge(
    "veo_gpu_pcie_generation_max",
    Unit.NONE,
    "Highest PCIe generation that this board can use in this slot.",
)
PCIE_WIDTH: Final = gauge("veo_gpu_pcie_width", Unit.NONE, "Lanes of the PCIe link in use.")
PCIE_WIDTH_MAX: Final = gauge(
    "veo_gpu_pcie_width_max", Unit.NONE, "Most PCIe lanes that this board can use in this slot."
)
PCIE_TRANSMIT: Final = counter(
    "veo_gpu_pcie_transmit_bytes_total", Unit.BYTES, "Bytes that the GPU sent over PCIe."
)
PCIE_RECEIVE: Final = counter(
    "veo_gpu_pcie_receive_bytes_total", Unit.BYTES, "Bytes that the GPU received over PCIe."
)
PCIE_REPLAYS: Final = counter(
    "veo_gpu_pcie_replays_total", Unit.NONE, "Packets that PCIe had to send once more."
)
PCIE_REPLAY_ROLLOVERS: Final = counter(
    "veo_gpu_pcie_replay_rollovers_total",
    Unit.NONE,
    "Times that a packet was sent so often that PCIe trained its link anew.",
)
PCIE_RECOVERIES: Final = counter(
    "veo_gpu_pcie_recoveries_total",
    Unit.NONE,
    "Times that the PCIe link went from its working state into recovery.",
)
PCIE_ERRORS: Final = counter(
    "veo_gpu_pcie_errors_total",
    Unit.NONE,
    f"PCIe errors by kind: {', '.join(PCIE_ERRORS_KNOWN)}. "
    "Kinds overlap: correctable counts some of the others once more.",
    (*IDENTITY, ERROR),
)

NVLINK_LINKS: Final = gauge("veo_gpu_nvlink_links", Unit.NONE, "NVLinks that the GPU has.")
NVLINK_LINKS_UP: Final = gauge("veo_gpu_nvlink_links_up", Unit.NONE, "NVLinks that are up.")
NVLINK_TRANSMIT: Final = counter(
    "veo_gpu_nvlink_transmit_bytes_total",
    Unit.BYTES,
    "Bytes that the GPU sent over all its NVLinks.",
)
NVLINK_RECEIVE: Final = counter(
    "veo_gpu_nvlink_receive_bytes_total",
    Unit.BYTES,
    "Bytes that the GPU received over all its NVLinks.",
)
NVLINK_RAW_TRANSMIT: Final = counter(
    "veo_gpu_nvlink_raw_transmit_bytes_total",
    Unit.BYTES,
    "The same with what the protocol adds (before NVLink 5).",
)
NVLINK_RAW_RECEIVE: Final = counter(
    "veo_gpu_nvlink_raw_receive_bytes_total",
    Unit.BYTES,
    "The same with what the protocol adds (before NVLink 5).",
)
NVLINK_ERRORS: Final = counter(
    "veo_gpu_nvlink_errors_total",
    Unit.NONE,
    f"Errors of all NVLinks of the GPU, by kind (before NVLink 5): {', '.join(NVLINK_ERRORS_KNOWN)}.",
    (*IDENTITY, ERROR),
)
NVLINK_PACKET_ERRORS: Final = counter(
    "veo_gpu_nvlink_packet_errors_total",
    Unit.NONE,
    f"Errors of all NVLinks of the GPU, by kind (NVLink 5): {', '.join(NVLINK_PACKET_ERRORS_KNOWN)}.",
    (*IDENTITY, ERROR),
)
