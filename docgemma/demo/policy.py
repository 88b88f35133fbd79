"""What a page of the demo may do: talk to its own server and to nobody else. The browser enforces it."""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docgemma.listening import from_this_machine

CONTENT = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:"  # Gradio's start-up script and its templates
)
HEADERS = [
    (b"content-security-policy", CONTENT.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
ELSEWHERE = "This demo answers pages of this machine only. Open it as http://127.0.0.1, or start it with --share.\n"


class OwnServerOnly:
    """ASGI middleware that adds the policy to every answer.

    Args:
        local_only: nobody signs in and no link is shared, so a page of another site, opened in a browser here, must
            reach nothing.
    """

    def __init__(self, app: ASGIApp, local_only: bool = False):
        self.app, self.local_only = app, local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.local_only and scope["type"] == "http" and not from_this_machine(scope["headers"]):
            await PlainTextResponse(ELSEWHERE, 403)(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        await self.app(scope, receive, with_policy if scope["type"] == "http" else send)
