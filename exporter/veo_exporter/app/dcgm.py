# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The names of dcgm-exporter wired, if they are asked for."""

import socket
from collections.abc import Callable, Mapping
from typing import Final

from veo_exporter.config import DcgmNames, Gpu
from veo_exporter.exposition import Source
from veo_exporter.gpu import Sampler

DCGM_SETTINGS: Final = ("dcgm_names", "dcgm_uuid_label", "dcgm_hostname_label")
"""What the names depend on, all under gpu; it is fixed while the exporter runs."""


def dcgm_sources(
    settings: Gpu,
    sampler: Sampler,
    last_xid: Callable[[str], int | None],
    environment: Mapping[str, str],
) -> tuple[Source, ...]:
    """That side of the page; before the sampler starts."""
    if settings.dcgm_names is DcgmNames.OFF:
        return ()
    # Imported here: without them it costs nothing.
    from veo_exporter.catalog.dcgm import Spelling
    from veo_exporter.gpu.dcgm import DcgmSource
    from veo_exporter.gpu.dcgm_links import LinkRates

    rates = LinkRates()
    sampler.when_published(rates.take)
    source = DcgmSource(
        lambda: sampler.latest,
        spelling=Spelling(
            renamed=settings.dcgm_names is DcgmNames.NEW,
            uuid=settings.dcgm_uuid_label.value,
            hostname=settings.dcgm_hostname_label.value,
        ),
        # As dcgm-exporter does; in a pod the host's name is the pod's.
        hostname=environment.get("NODE_NAME") or socket.gethostname(),
        last_xid=last_xid,
        link_bytes_per_second=rates.bytes_per_second,
    )
    return (source,)
