# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where traces go."""

import pytest
from pydantic import ValidationError

from veo_exporter.config.traces import Traces


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:4318", "https://collector.example/otlp", "http://[::1]:4318/v1/traces"],
)
def test_an_endpoint_is_a_url(endpoint: str) -> None:
    assert Traces(endpoint=endpoint).endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "localhost:4318",
        "grpc://c:4317",
        "http://",
        "http://c:99999",
        "http://c:0",
        "http://[::1",
    ],
)
def test_what_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(ValidationError, match=r"write http://127\.0\.0\.1:4318"):
        Traces(endpoint=endpoint)


@pytest.mark.parametrize("endpoint", ["http://me:secret@c:4318", "http://c/?token=secret"])
def test_an_endpoint_holds_no_secret(endpoint: str) -> None:
    with pytest.raises(ValidationError, match="OTEL_EXPORTER_OTLP_HEADERS"):
        Traces(endpoint=endpoint)


def test_by_default_nothing_is_sent() -> None:
    assert Traces().endpoint is None
    assert Traces().keep_unsampled
