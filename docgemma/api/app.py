"""The application: its routes, and what each may be used for. How a turn runs is in turns.py and stream.py."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Security
from fastapi.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from docgemma import __version__
from docgemma.agent import Agent
from docgemma.api import docs, stream
from docgemma.api.access import LOCAL, Tokens
from docgemma.api.body import read_json, read_query
from docgemma.api.guard import Guard
from docgemma.api.health import HealthCheck
from docgemma.api.models import Health, Query, Resume, Threads
from docgemma.api.problems import Problem, problem_of, unknown_thread
from docgemma.api.rate import Rate
from docgemma.api.threads import new_thread, owns, prefix
from docgemma.api.turns import Turn, Turns, Work
from docgemma.errors import ThreadStateError
from docgemma.nodes.context import Actor

SUMMARY = "A clinical agent for small medical language models. Decision support for research, not a medical device."


def build_app(agent: Agent, tokens: Tokens, *, demo: bool = False) -> FastAPI:
    """The API over one agent, for any ASGI server. The agent stays the caller's to close.

    Args:
        tokens: who may call; without any, everybody who can connect may read and write.
        demo: mount the Gradio demo at /demo; with tokens it asks for a name and secret with the role write.

    Raises:
        ConfigError: `demo`, and Gradio is not installed.
    """
    desk = Desk(agent, tokens)
    app = FastAPI(
        title="DocGemma", version=__version__, description=SUMMARY, lifespan=desk.lifespan,
        docs_url=None, redoc_url=None,  # their pages load scripts from elsewhere
    )  # fmt: skip
    app.add_exception_handler(HTTPException, _no_route)
    caller = Security(desk.caller) if tokens else Depends(desk.anybody)
    _routes(app, desk, caller, bool(tokens))
    start = "/openapi.json"
    if demo:
        from docgemma.api.demo import mount_demo

        mount_demo(app, agent, tokens)
        start = "/demo/"
    app.add_api_route("/", lambda: RedirectResponse(start), include_in_schema=False)
    app.add_middleware(Guard, local_only=not tokens)
    return app


def _routes(app: FastAPI, desk: "Desk", caller: Any, secured: bool) -> None:
    @app.get("/health", response_model=Health, **docs.health())
    async def health() -> Any:
        """What runs here, and whether records and conversations can be reached. Open to everybody."""
        return JSONResponse(report := await desk.health.report(), 503 if report["status"] == "down" else 200)

    @app.post("/agent/query", **docs.query(desk.max_question, secured))
    async def query(request: Request, who: Actor = caller) -> Response:
        """Ask. The answer is the object that `docgemma ask --json` prints, or a stream of events with
        `Accept: text/event-stream`. A record entry is never made here: it waits for /agent/resume."""
        return await desk.query(request, who)

    @app.post("/agent/resume", **docs.resume(secured))
    async def resume(request: Request, who: Actor = caller) -> Response:
        """Approve, edit or reject the record entry that waits; or take up a turn that was cut off."""
        return await desk.resume(request, who)

    @app.get("/agent/threads", response_model=Threads, **docs.threads(secured))
    def threads(who: Actor = caller) -> Any:
        """The caller's own conversations."""
        return JSONResponse({"threads": desk.agent.threads(prefix(who))})


class Desk:
    """What the routes share."""

    def __init__(self, agent: Agent, tokens: Tokens):
        settings = agent.settings
        self.agent, self.tokens = agent, tokens
        self.max_question, self.max_bytes = settings.api_question, int(settings.api_body_mb * 1e6)
        self.rate = Rate(settings.api_rate)
        self.health = HealthCheck(agent)
        self.turns = Turns(settings.api_slots, settings.api_turns, settings.api_timeout)
        self.uploads = tempfile.TemporaryDirectory(prefix="docgemma-api-")

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.turns.close()
            self.uploads.cleanup()

    async def caller(
        self,
        request: Request,
        given: HTTPAuthorizationCredentials | None = Security(HTTPBearer(auto_error=False)),  # noqa: B008
    ) -> Actor:
        who = self.tokens.caller(given.credentials) if given else None
        if who is None:
            what = "The token is not known." if given else "A bearer token is needed."
            raise Problem(401, what, "Send it as: Authorization: Bearer SECRET.", WWW_Authenticate="Bearer")
        return self._let_in(request, who)

    async def anybody(self, request: Request) -> Actor:
        return self._let_in(request, LOCAL)

    def _let_in(self, request: Request, who: Actor) -> Actor:
        request.scope["docgemma"]["caller"] = who.name
        self.rate.count(who.name)
        return who

    async def query(self, request: Request, who: Actor) -> Response:
        given, image = await read_query(request, self.max_bytes, Path(self.uploads.name))
        try:
            self._check_question(given, who)
            thread = given.thread or new_thread(who)
            work = partial(
                self.agent.ask, given.question, thread=thread, create=given.thread is None, image=image,
                patient=given.patient, actor=who,
            )  # fmt: skip
            turn = await self.turns.begin(who.name, thread, _quietly(work, image))
        except BaseException:
            _discard(image)
            raise
        return await self._answer(request, turn)

    async def resume(self, request: Request, who: Actor) -> Response:
        given = await read_json(request, Resume, self.max_bytes)
        if not owns(who, given.thread):
            raise unknown_thread()
        if given.decision in ("approve", "edit") and not who.may_write:
            raise Problem(403, "This token may read only.", "Reject the entry, or let a token that may write decide.")
        if (given.decision == "edit") != bool(given.changes):
            raise Problem(422, 'Changes go with the decision "edit", and only with it.', "Send both, or neither.")
        turn = await self.turns.begin(who.name, given.thread, _quietly(partial(self._resume, given, who)))
        return await self._answer(request, turn)

    def _resume(self, given: Resume, who: Actor, **how: Any) -> dict[str, Any]:
        if given.decision is None:
            return self.agent.proceed(given.thread, actor=who, **how)
        waiting = self.agent.pending(given.thread)
        if waiting and given.seen and waiting != given.seen.model_dump():
            raise ThreadStateError("Another entry waits by now.")
        fields = list(self.agent.toolbox[waiting["name"]].args.model_fields) if waiting else []
        if waiting and set(given.changes or {}) - set(fields):
            raise Problem(422, "The entry has no such field.", f"Its fields: {', '.join(fields)}.")
        return self.agent.decide(given.thread, given.decision, given.changes, actor=who, **how)

    def _check_question(self, given: Query, who: Actor) -> None:
        if given.thread is not None and not owns(who, given.thread):
            raise unknown_thread()
        if len(given.question) > self.max_question:
            detail = f"The question is longer than {self.max_question:,} characters."
            raise Problem(422, detail, "Ask about one part at a time.")
        if not any(char.isprintable() and not char.isspace() for char in given.question):
            raise Problem(422, "The question is empty.", "Ask something.")

    async def _answer(self, request: Request, turn: Turn) -> Response:
        request_id = request.scope["docgemma"]["request_id"]
        if stream.wanted(request):
            pieces = stream.events(self.turns, turn, request, request_id)
            return StreamingResponse(pieces, media_type=stream.MEDIA_TYPE, headers=stream.HEADERS)
        async with aclosing(self.turns.follow(turn, stream.left(request))) as events:
            async for _ in events:
                pass
        return JSONResponse(turn.outcome())


def _quietly(work: Any, image: Path | None = None) -> Work:
    """As work for a turn. The upload is gone afterwards: the agent keeps its own copy."""

    def run(on_event: Any, stop: Any) -> dict[str, Any]:
        try:
            return work(on_event=on_event, stop=stop)
        finally:
            _discard(image)

    return run


def _discard(image: Path | None) -> None:
    if image:
        image.unlink(missing_ok=True)


async def _no_route(request: Request, error: Exception) -> Response:
    """Of the router itself: no such path, or not by this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        problem = Problem(405, "This path does not answer that method.", "Compare it with /openapi.json.")
    elif error.status_code == 404:
        problem = Problem(404, "There is nothing at this path.", "Compare it with /openapi.json.")
    else:
        problem = problem_of(error)
    problem.headers |= error.headers or {}
    return problem.response(request.scope["docgemma"]["request_id"])
