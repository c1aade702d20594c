"""What the server refuses and what the browser may load: the outermost layer around Gradio's own routes.

Uploads never become files: pictures travel inside events, so Gradio's upload route answers 404. Routes that fetch
addresses for a visitor or dump a session to disk answer 404 as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import PlainTextResponse

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

DENIED = ("upload", "upload_progress", "file=http", "file/http", "proxy=", "deep_link", "dev/", "openapi.json")
"""Routes below ``/gradio_api/`` that no part of this app uses."""

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
    "frame-ancestors 'self' https://huggingface.co"
)
"""Content security policy: nothing from other hosts. ``gr.HTML`` needs unsafe-inline and unsafe-eval."""


class Guard:
    """ASGI middleware with the denied routes and the headers above."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        if "/gradio_api/" in path and path.split("/gradio_api/", 1)[1].lstrip("/").startswith(DENIED):
            await PlainTextResponse("Not found", status_code=404)(scope, receive, send)
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [(b"content-security-policy", POLICY.encode()), (b"referrer-policy", b"no-referrer")]
                message["headers"] = [*message.get("headers", []), *headers, (b"x-content-type-options", b"nosniff")]
            await send(message)

        await self.app(scope, receive, with_headers)
