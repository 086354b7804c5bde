# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""POST /api/v1/events: CloudEvents from whoever runs jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from veo_exporter.jobs import BadBody, EventFault, Intake, Parsed, Receipt, Refused
from veo_exporter.web.unpacking import too_large, unpack

PATH: Final = "/api/v1/events"
STRUCTURED: Final = ("application/cloudevents+json", "application/cloudevents-batch+json")
BINARY: Final = "application/json"
RETRY_AFTER_SECONDS: Final = 5
EVENTS_AT_ONCE: Final = 100
"""After so many the loop may answer somebody else: a scrape, most likely."""
MAX_LISTED: Final = 100

_HOW_TO_POST: Final = (
    "POST one event as application/cloudevents+json, several as application/cloudevents-batch+json, "
    "or one in ce- headers with its data as application/json"
)


def events_handler(
    intake: Intake, *, max_body_bytes: int, max_batch: Callable[[], int]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The route's handler, for a server that leaves unpacking to it. `max_batch` may change.

    202: all were taken; a field that was bad may be left out of them, which is named. 400: some were
    not, each is named, and the others were taken. 413, 415: none was looked at. 429: there is no room
    for further jobs; what was taken is known when it comes again.
    """

    async def events(request: web.Request) -> web.Response:
        receipt = Receipt()
        try:
            parsed = await _read(request, intake, max_body_bytes, max_batch())
        except BadBody as error:
            receipt.refused.append(Refused(0, "", error.fault, str(error)))
            return _answer(receipt, _STATUS.get(error.fault, 400))
        receipt.refused += parsed.refused
        for start in range(0, len(parsed.events), EVENTS_AT_ONCE):
            intake.take(parsed.events[start : start + EVENTS_AT_ONCE], receipt)
            await asyncio.sleep(0)
        if receipt.table_full:
            return _answer(receipt, 429, {"Retry-After": str(RETRY_AFTER_SECONDS)})
        return _answer(receipt, 400 if receipt.refused else 202)

    return events


_STATUS: Final = {
    EventFault.BODY_TOO_LARGE: 413,
    EventFault.TOO_MANY: 413,
    EventFault.UNSUPPORTED_MEDIA_TYPE: 415,
}


async def _read(
    request: web.Request, intake: Intake, max_body_bytes: int, max_batch: int
) -> Parsed:
    binary = request.content_type == BINARY and "ce-specversion" in request.headers
    try:
        body = await _receive(request, binary, max_body_bytes)
    except BadBody as error:
        intake.refuse_body(error.fault)
        raise
    if binary:
        return intake.read_binary(request.headers, body)
    return intake.read_structured(body, max_batch)


async def _receive(request: web.Request, binary: bool, max_body_bytes: int) -> bytes:
    if request.content_type not in STRUCTURED and not binary:
        raise BadBody(EventFault.UNSUPPORTED_MEDIA_TYPE, _HOW_TO_POST)
    body = await _read_body(request, max_body_bytes)
    return unpack(body, request.headers.get("Content-Encoding", ""), max_body_bytes)


async def _read_body(request: web.Request, max_body_bytes: int) -> bytes:
    """The body as it came; of one that is larger than allowed no more is read than that."""
    if (request.content_length or 0) > max_body_bytes:
        raise too_large(max_body_bytes)
    body = bytearray()
    try:
        async for chunk in request.content.iter_chunked(1 << 16):
            body += chunk
            if len(body) > max_body_bytes:
                raise too_large(max_body_bytes)
    except (web.RequestPayloadError, ConnectionError):
        # Mostly nobody is left to be told, but it is counted.
        raise BadBody(EventFault.NOT_JSON, "the body breaks off") from None
    return bytes(body)


def _answer(receipt: Receipt, status: int, headers: dict[str, str] | None = None) -> web.Response:
    said: dict[str, Any] = {
        "taken": {result.value: count for result, count in sorted(receipt.results.items())},
        "refused_count": len(receipt.refused),
        "refused": [
            {
                "index": refused.index,
                "id": refused.event_id,
                "reason": refused.fault.value,
                "message": refused.message,
            }
            for refused in receipt.refused[:MAX_LISTED]
        ],
    }
    if receipt.lacking:
        left_out = [
            {
                "index": event.index,
                "id": event.event_id,
                "field": omission.field,
                "message": omission.message,
            }
            for event in receipt.lacking
            for omission in event.omissions
        ]
        said |= {"left_out_count": len(left_out), "left_out": left_out[:MAX_LISTED]}
    return web.json_response(said, status=status, headers=headers)
