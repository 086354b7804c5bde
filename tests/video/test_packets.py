# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""ffprobe's output, well formed and not."""

from contextlib import suppress
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.video.packets import ABSENT, LONGEST_LINE_BYTES, OutputReader, UnreadableOutput

FORMAT = b"format|format_name=mov,mp4,m4a,3gp,3g2,mj2|probe_score=100\n"
STREAM = (
    b"stream|index=0|codec_name=h264|width=320|height=180|r_frame_rate=24/1|avg_frame_rate=24/1|"
    b"time_base=1/12288|nb_frames=3|disposition:attached_pic=0\n"
)
PACKETS = (
    b"packet|stream_index=0|pts=0|dts=-512|duration=512|flags=K_\n"
    b"packet|stream_index=0|pts=1024|dts=0|duration=512|flags=__\n"
    b"packet|stream_index=0|pts=512|dts=512|duration=512|flags=__\n"
)


def packet(index: str = "0", pts: str = "1") -> bytes:
    return f"packet|stream_index={index}|pts={pts}|dts=1|duration=1|flags=K_\n".encode()


def read(*pieces: bytes, most: int = 100) -> object:
    reader = OutputReader(most)
    for piece in pieces:
        reader.feed(piece)
    return reader.finish()


def test_columns_and_stream() -> None:
    reader = OutputReader(100)
    reader.feed(PACKETS + STREAM + FORMAT)
    demuxed = reader.finish()
    assert demuxed.container == "mov,mp4,m4a,3gp,3g2,mj2"
    assert demuxed.probe_score == 100
    assert list(demuxed.packets.pts) == [0, 1024, 512]
    assert list(demuxed.packets.dts) == [-512, 0, 512]
    assert list(demuxed.packets.key) == [1, 0, 0]
    stream = demuxed.stream
    assert stream is not None
    assert (stream.codec, stream.width, stream.height) == ("h264", 320, 180)
    assert (stream.time_base, stream.average_rate) == (Fraction(1, 12288), Fraction(24))
    assert stream.declared_frames == 3


@given(st.lists(st.integers(0, 400), max_size=10))
def test_pieces_may_be_cut_anywhere(cuts: list[int]) -> None:
    text = PACKETS + STREAM + FORMAT
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert read(*pieces) == read(text)


def test_hidden_packets_are_counted_apart() -> None:
    reader = OutputReader(100)
    reader.feed(
        b"packet|stream_index=0|pts=-512|dts=-512|duration=512|flags=KD\n"
        + PACKETS
        + STREAM
        + FORMAT
    )
    packets = reader.finish().packets
    assert (packets.hidden, list(packets.pts)) == (1, [0, 1024, 512])


def test_what_is_absent_is_none() -> None:
    reader = OutputReader(100)
    reader.feed(b"packet|stream_index=0|pts=N/A|dts=0|duration=N/A|flags=__\n")
    reader.feed(
        b"stream|index=0|codec_name=unknown|width=0|height=0|r_frame_rate=0/0|avg_frame_rate=0/0|"
        b"time_base=1/90000|nb_frames=N/A\n" + FORMAT
    )
    demuxed = reader.finish()
    assert list(demuxed.packets.pts) == [ABSENT]
    assert demuxed.stream is not None
    assert demuxed.stream.codec is None
    assert demuxed.stream.width is None
    assert demuxed.stream.average_rate is None
    assert demuxed.stream.declared_frames is None


def test_side_data_and_blank_lines_of_mpeg_ts_are_passed_over() -> None:
    reader = OutputReader(100)
    reader.feed(b"packet|stream_index=0|pts=1|dts=1|duration=1|flags=K_|side_data|\n\n")
    reader.feed(STREAM + b"\n" + STREAM + FORMAT)
    assert list(reader.finish().packets.pts) == [1]


def test_a_cover_picture_is_no_video() -> None:
    cover = STREAM.replace(b"attached_pic=0", b"attached_pic=1")
    other = STREAM.replace(b"index=0", b"index=1")
    reader = OutputReader(100)
    reader.feed(
        PACKETS
        + b"packet|stream_index=1|pts=7|dts=7|duration=1|flags=K__\n"
        + cover
        + other
        + FORMAT
    )
    assert list(reader.finish().packets.pts) == [7]
    reader = OutputReader(100)
    reader.feed(PACKETS + cover + FORMAT)
    assert reader.finish().stream is None


@pytest.mark.parametrize(("rotation", "size"), [(b"-90", (180, 320)), (b"180", (320, 180))])
def test_a_turned_picture_is_measured_as_it_is_shown(
    rotation: bytes, size: tuple[int, int]
) -> None:
    reader = OutputReader(100)
    turned = STREAM.rstrip() + b"|side_data|side_data:rotation=" + rotation + b"\n"
    reader.feed(PACKETS + turned + FORMAT)
    stream = reader.finish().stream
    assert stream is not None
    assert (stream.width, stream.height) == size


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (b"", "it names no container format"),
        (b"\xff\xfe\x00", "it names no container format"),
        (PACKETS + STREAM, "it names no container format"),
        (b"packet|pts=1|flags=K\n", "b'packet|pts=1|flags=K' is no packet"),
        (packet(pts="1.5"), "is no packet"),
        (packet(pts="9" * 30), "is no packet"),
        (packet(pts="-"), "is no packet"),
        (packet(index="N/A"), "is no packet"),
        (b"stream|codec_name=h264\n", "a stream has no index"),
        (STREAM.replace(b"1/12288", b"0/0") + FORMAT, "the video stream has no time base"),
        (b"x" * (LONGEST_LINE_BYTES + 1), "a line of it is longer than 65536 bytes"),
        (b"".join(packet(index=str(n)) for n in range(65)), "more than 64 video streams"),
        (
            b"".join(STREAM.replace(b"index=0", b"index=%d" % n) for n in range(65)),
            "more than 64 video streams",
        ),
        (
            STREAM.replace(b"width=320", b"width=wide") + FORMAT,
            "'wide' stands where a whole number",
        ),
        (PACKETS * 34, "it has more than 100 frames"),
    ],
)
def test_what_makes_no_sense_is_named(output: bytes, sentence: str) -> None:
    with pytest.raises(UnreadableOutput) as refused:
        read(output)
    assert sentence in str(refused.value)


LINES = st.sampled_from([PACKETS, STREAM, FORMAT, b"\n", b"packet|", b"stream|", b"format|", b"|="])


@given(st.lists(st.one_of(st.binary(max_size=30), LINES), max_size=12))
def test_nothing_but_its_own_error_is_raised(pieces: list[bytes]) -> None:
    with suppress(UnreadableOutput):
        read(*pieces)
