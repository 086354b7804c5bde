# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""ffprobe's output to columns of integers. Pure; what it cannot make sense of is an error of its own.

The output is `-of compact`: a line for each packet, then one for each stream and one for the
format, whose keys are named. It is read as it comes, so that a long file costs its integers only.
"""

import re
from array import array
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

ENTRIES: Final = (
    "packet=stream_index,pts,dts,duration,flags"
    ":stream=index,codec_name,time_base,avg_frame_rate,r_frame_rate,nb_frames,width,height"
    ":stream_disposition=attached_pic:stream_side_data_list=rotation"
    ":format=format_name,probe_score"
)
"""What ffprobe is asked for; all of it reads the same from version 4.0 on, unlike frames."""

ABSENT: Final = -(2**63)
"""Stands for a timestamp that is not there; it is what libavformat itself uses."""

LONGEST_LINE_BYTES: Final = 64 * 1024
MOST_STREAMS: Final = 64
_PACKET: Final = re.compile(
    rb"packet\|stream_index=([0-9]{1,9})\|pts=(-?[0-9]{1,18}|N/A)\|dts=(-?[0-9]{1,18}|N/A)"
    rb"\|duration=(-?[0-9]{1,18}|N/A)\|flags=([^|\r]*)(?:\|.*)?\r?",
    re.DOTALL,
)
"""A packet's line as every known ffprobe writes it; there is one for each frame, so it is read fast."""
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_FRACTION: Final = re.compile(r"([0-9]{1,10})[/:]([0-9]{1,10})")


class UnreadableOutput(Exception):
    """The message says what is wrong with it."""


@dataclass(slots=True)
class Packets:
    """One stream's packets in file order, a column for each thing."""

    pts: "array[int]" = field(default_factory=lambda: array("q"))
    dts: "array[int]" = field(default_factory=lambda: array("q"))
    duration: "array[int]" = field(default_factory=lambda: array("q"))
    key: bytearray = field(default_factory=bytearray)
    hidden: int = 0
    """Packets that an edit list leaves out; they are in none of the columns."""

    def __len__(self) -> int:
        return len(self.pts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A video stream as its header describes it; None is what the header does not say."""

    codec: str | None
    width: int | None
    height: int | None
    time_base: Fraction
    average_rate: Fraction | None
    guessed_rate: Fraction | None
    declared_frames: int | None


@dataclass(frozen=True, slots=True)
class Demuxed:
    """A file's container and its first video stream that is no cover picture."""

    container: str
    probe_score: int
    stream: Stream | None
    packets: Packets


class OutputReader:
    """Takes the output in pieces of any size."""

    def __init__(self, most_packets: int) -> None:
        self._most_packets = most_packets
        self._count = 0
        self._rest = b""
        self._packets: dict[int, Packets] = {}
        self._streams: dict[int, dict[str, str]] = {}
        self._format: dict[str, str] = {}

    def feed(self, piece: bytes) -> None:
        """Raises UnreadableOutput."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > LONGEST_LINE_BYTES:
            raise UnreadableOutput(f"a line of it is longer than {LONGEST_LINE_BYTES} bytes")

    def finish(self) -> Demuxed:
        """Raises UnreadableOutput."""
        self._take(self._rest)
        self._rest = b""
        container = self._format.get("format_name", "")
        if not container:
            raise UnreadableOutput("it names no container format")
        score = _integer(self._format.get("probe_score", "N/A"))
        for index in sorted(self._streams):
            if self._streams[index].get("attached_pic") == "1":
                continue
            stream = _stream(self._streams[index])
            return Demuxed(container, score or 0, stream, self._packets.get(index, Packets()))
        return Demuxed(container, score or 0, None, Packets())

    def _take(self, line: bytes) -> None:
        if match := _PACKET.fullmatch(line):
            index, *times, flags = match.groups()
            self._add_packet(
                int(index), [ABSENT if time == b"N/A" else int(time) for time in times], flags
            )
            return
        section, *pairs = line.decode("utf-8", "replace").rstrip("\r").split("|")
        if section == "packet":
            raise UnreadableOutput(f"{line[:80]!r} is no packet")
        # Keys of what is nested come as disposition:attached_pic.
        named = {
            name.rpartition(":")[2]: value
            for name, _, value in (pair.partition("=") for pair in pairs)
        }
        if section == "stream":
            self._add_stream(named)
        elif section == "format":
            self._format = named

    def _add_packet(self, index: int, times: list[int], flags: bytes) -> None:
        if (packets := self._packets.get(index)) is None:
            if len(self._packets) >= MOST_STREAMS:
                raise UnreadableOutput(f"it has more than {MOST_STREAMS} video streams")
            packets = self._packets[index] = Packets()
        self._count += 1
        if self._count > self._most_packets:
            raise UnreadableOutput(f"it has more than {self._most_packets} frames")
        if b"D" in flags:
            packets.hidden += 1
            return
        packets.pts.append(times[0])
        packets.dts.append(times[1])
        packets.duration.append(times[2])
        packets.key.append(b"K" in flags)

    def _add_stream(self, named: dict[str, str]) -> None:
        if (index := _integer(named.get("index", "N/A"))) is None:
            raise UnreadableOutput("a stream has no index")
        if index not in self._streams and len(self._streams) >= MOST_STREAMS:
            raise UnreadableOutput(f"it has more than {MOST_STREAMS} video streams")
        # In MPEG-TS a stream is described twice, once inside its programme.
        self._streams[index] = named


def _integer(written: str) -> int | None:
    if written == "N/A":
        return None
    if not _INTEGER.fullmatch(written):
        raise UnreadableOutput(f"{written[:40]!r} stands where a whole number should")
    return int(written)


def _fraction(written: str) -> Fraction | None:
    match = _FRACTION.fullmatch(written)
    # 0/0 is how ffprobe says that it does not know.
    if match is None or not int(match[1]) or not int(match[2]):
        return None
    return Fraction(int(match[1]), int(match[2]))


def _stream(named: dict[str, str]) -> Stream:
    time_base = _fraction(named.get("time_base", ""))
    if time_base is None:
        raise UnreadableOutput("the video stream has no time base")
    width = _integer(named.get("width", "N/A")) or None
    height = _integer(named.get("height", "N/A")) or None
    rotation = named.get("rotation", "0")
    if rotation.lstrip("-").partition(".")[0] in ("90", "270"):
        # Width and height are those of the coded picture; a player turns it.
        width, height = height, width
    codec = named.get("codec_name", "unknown")
    return Stream(
        codec=None if codec in ("unknown", "N/A") else codec,
        width=width,
        height=height,
        time_base=time_base,
        average_rate=_fraction(named.get("avg_frame_rate", "")),
        guessed_rate=_fraction(named.get("r_frame_rate", "")),
        declared_frames=_integer(named.get("nb_frames", "N/A")) or None,
    )
