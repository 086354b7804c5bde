# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""GET /api/v1/advice: which frame rate each GPU's memory leaves room for."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

PATH: Final = "/api/v1/advice"
USUAL_ADVICE_ANSWERS: Final = tuple((PATH, code) for code in ("200", "400", "403"))


def advice_handler(document: Callable[[], Mapping[str, Any]]) -> Handler:
    """Takes nothing; a parameter that was ignored would be believed."""

    async def handle(request: web.Request) -> web.Response:
        for name in request.query:
            fault = f"{name[:40]}: no such parameter; {PATH} takes none"
            return web.json_response({"error": fault}, status=400)
        return web.json_response(document(), headers={"Cache-Control": "no-store"})

    return handle
