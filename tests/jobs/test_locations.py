# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Names of outputs: files of this machine, and what lies elsewhere."""

import pytest

from veo_exporter.jobs import is_elsewhere, local_name


@pytest.mark.parametrize(
    ("named", "local"),
    [
        ("/srv/a.mp4", "/srv/a.mp4"),
        ("file:///srv/a%20b.mp4", "/srv/a b.mp4"),
        ("file://localhost/srv/a.mp4", "/srv/a.mp4"),
        ("FILE:/srv/a.mp4", "/srv/a.mp4"),
        ("a.mp4", "a.mp4"),
        ("/srv/gs://a.mp4", "/srv/gs://a.mp4"),
        ("/srv/100%25.mp4", "/srv/100%25.mp4"),
        ("c:/films/a.mp4", "c:/films/a.mp4"),
    ],
)
def test_files_of_this_machine(named: str, local: str) -> None:
    assert local_name(named) == local
    assert not is_elsewhere(local)


@pytest.mark.parametrize(
    "named",
    ["gs://bucket/a.mp4", "s3://bucket/a.mp4", "https://x/a.mp4", "gs:/bucket/a.mp4", "file://host/srv/a.mp4"],
)  # fmt: skip
def test_what_lies_elsewhere(named: str) -> None:
    assert local_name(named) == named
    assert is_elsewhere(named)
