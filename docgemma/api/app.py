"""The application: its routes, and what each may be used for. How a turn is followed is in stream.py."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from fastapi.security import HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from langchain_core.runnables import RunnableConfig
from starlette.exceptions import HTTPException

from docgemma import __version__
from docgemma.agent import Agent
from docgemma.api import docs, rcm, stream
from docgemma.api.access import LOCAL, RCM, Rate, Tokens, check_may_write, new_thread, owns, prefix
from docgemma.api.cds import Hooks
from docgemma.api.guard import Guard
from docgemma.api.models import Forget, Forgotten, Query, Resume, Threads, image_file
from docgemma.api.problems import Problem
from docgemma.api.rcm import Ledger
from docgemma.api.routing import Route, refused
from docgemma.errors import ThreadStateError, UnknownThreadError
from docgemma.forget import STAYS
from docgemma.nodes.context import Actor
from docgemma.turns import Turns, Work

SUMMARY = "A clinical agent for small medical language models. Decision support for research, not a medical device."
SIGN_IN = "The name of a token, and its secret. Its role must be write. Entries are signed with the name."
WIND_DOWN_S = 20.0  # a stopped turn ends with the model call that it is in
HEALTH_S = 5.0  # how long a look at the stores may take, and is told: anybody may ask
NOBODY = "docgemma-health"  # no patient and no conversation has this id


def build_app(agent: Agent, tokens: Tokens, *, demo: bool = False) -> FastAPI:
    """The API over one agent, for any ASGI server, with the demo at /demo. The agent stays the caller's to close.

    Args:
        tokens: who may call, and with the role write sign in to the demo; without any, everybody who can connect.
    """
    api = Api(agent, tokens)
    app = FastAPI(
        title="DocGemma", version=__version__, description=SUMMARY, lifespan=api.lifespan,
        docs_url=None, redoc_url=None,  # their pages load scripts from elsewhere
    )  # fmt: skip
    app.state.admit = api.admit
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, refused)
    app.get("/health", **docs.health())(api.health)
    token = Security(HTTPBearer(auto_error=False))  # for OpenAPI: `admit` reads it
    routes = APIRouter(route_class=Route, dependencies=[token], responses=docs.PROBLEMS)
    routes.post("/agent/query", **docs.turn("report", "query"))(api.query)
    routes.post("/agent/resume", **docs.turn("decided", "resume"))(api.resume)
    routes.get("/agent/threads", **docs.told("agent", "threads"))(api.threads)
    routes.post("/agent/forget", **docs.told("agent", "forgotten", "forget"))(api.forget)
    Hooks(agent).add_to(routes)
    Ledger(agent).add_to(routes)
    app.include_router(routes)
    if demo:
        from docgemma.demo.start import mount

        mount(app, agent, "/demo", tokens.may_sign_in if tokens else None, SIGN_IN)
    app.add_api_route("/", lambda: RedirectResponse("/demo/" if demo else "/openapi.json"), include_in_schema=False)
    app.add_middleware(Guard, local_only=not tokens, max_bytes=int(agent.settings.api_body_mb * 1e6))
    return app


class Api:
    """The routes, and what they share."""

    def __init__(self, agent: Agent, tokens: Tokens):
        self.agent, self.tokens, self.settings = agent, tokens, agent.settings
        self.rate, self.turns = Rate(self.settings.api_rate), Turns(self.settings.api_slots)
        self.health_known: asyncio.Future[dict[str, Any]] | None = None
        self.health_until = 0.0

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.to_thread(self.turns.close)

    def admit(self, request: Request) -> None:
        """Let in whoever sends a known token; everybody, where there are none."""
        scheme, secret = get_authorization_scheme_param(request.headers.get("authorization"))
        given = secret if scheme.lower() == "bearer" else ""
        who = self.tokens.caller(given) if self.tokens else LOCAL
        if who is None:
            what = "The token is not known." if given else "A bearer token is needed."
            raise Problem(401, what, "Send it as: Authorization: Bearer SECRET.", WWW_Authenticate="Bearer")
        request.state.who = who
        request.scope["docgemma"]["caller"] = who.name
        self.rate.count(who.name)

    async def health(self) -> Response:
        """What runs here, and whether records and conversations can be reached. Open to everybody."""
        if not self.health_known or time.monotonic() > self.health_until:
            self.health_until = time.monotonic() + HEALTH_S
            self.health_known = asyncio.ensure_future(health(self.agent))
        report = await asyncio.shield(self.health_known)
        return JSONResponse(report, 503 if report["status"] == "down" else 200)

    async def query(self, request: Request, given: Query) -> Response:
        """Ask. The answer is the object that `docgemma ask --json` prints, or a stream of events with
        `Accept: text/event-stream`. A record entry is never made here: it waits for /agent/resume."""
        who = request.state.who
        door = RCM if given.agent or _is_rcm(given.thread) else "api"
        if given.thread is not None and not owns(who.name, given.thread, door):
            raise UnknownThreadError("")
        if (given.documents and door != RCM) or (given.image and door == RCM):
            raise Problem(422, "An image goes to the clinical agent, documents to `rcm`.", "Correct the field `agent`.")
        if len(given.question) > self.settings.api_question:
            detail = f"The question is longer than {self.settings.api_question:,} characters."
            raise Problem(422, detail, "Ask about one part at a time.")
        if not any(char.isprintable() and not char.isspace() for char in given.question):
            raise Problem(422, "The question is empty.", "Ask something.")
        thread = given.thread or new_thread(who.name, door)
        asked = (self.agent, given.question, thread, who, given.documents, given.patient, given.thread is None)
        work = partial(rcm.ask, *asked) if door == RCM else partial(self._ask, given, who, thread)
        return await self._turn(request, who, thread, work)

    async def resume(self, request: Request, given: Resume) -> Response:
        """Approve, edit or reject the record entry that waits; or take up a turn that was cut off. In a conversation of
        the agent `rcm`: answer what it asked."""
        who = request.state.who
        if owns(who.name, given.thread, RCM):
            if given.decision:
                raise Problem(
                    422, "Nothing waits for a decision in this conversation.", "Send an `answer`, or neither."
                )
            work = partial(rcm.ask, self.agent, given.answer, given.thread, who)
            return await self._turn(request, who, given.thread, work)
        if not owns(who.name, given.thread):
            raise UnknownThreadError("")
        if given.answer is not None:
            raise Problem(422, "An answer goes to the agent `rcm`.", "Answer a question with /agent/query.")
        if given.decision in ("approve", "edit"):
            check_may_write(who, "Reject the entry, or let a token that may write decide.")
        return await self._turn(request, who, given.thread, partial(self._resume, given, who))

    def threads(self, request: Request) -> Threads:
        """The caller's own conversations."""
        return Threads(threads=self.agent.threads(prefix(request.state.who.name)))

    async def forget(self, request: Request, given: Forget) -> Forgotten:
        """Forget a conversation of the caller's, or all that were not continued since the beginning of a day (UTC):
        what was said, the entry that waits, the image. What was approved stays in the patient record."""
        who = request.state.who
        if given.before:
            start = datetime.combine(given.before, datetime.min.time(), UTC)
            count = await asyncio.to_thread(self.agent.forget, before=start, prefix=prefix(who.name))
            return Forgotten(forgotten=count, note=STAYS)
        if given.thread is None or not owns(who.name, given.thread, RCM if _is_rcm(given.thread) else "api"):
            raise UnknownThreadError("")
        if self.turns.running(given.thread):
            raise ThreadStateError("This conversation is being worked on.")
        return Forgotten(forgotten=await asyncio.to_thread(self.agent.forget, given.thread), note=STAYS)

    def _ask(self, given: Query, who: Actor, thread: str, **follow: Any) -> dict[str, Any]:
        with image_file(given.image) as image:
            return self.agent.ask(
                given.question, thread=thread, create=given.thread is None, image=image, patient=given.patient,
                actor=who, **follow,
            )  # fmt: skip

    def _resume(self, given: Resume, who: Actor, **follow: Any) -> dict[str, Any]:
        if (given.decision == "edit") != bool(given.changes) and self.agent.conversation(given.thread):
            raise Problem(422, 'Changes go with the decision "edit", and only with it.', "Correct the decision.")
        if given.decision is None:
            return self.agent.proceed(given.thread, actor=who, **follow)
        waiting = self.agent.pending(given.thread)
        if waiting and given.seen and waiting != given.seen:
            raise ThreadStateError("Another entry waits by now.")
        fields = list(self.agent.toolbox[waiting["name"]].args.model_fields) if waiting else []
        if waiting and set(given.changes or {}) - set(fields):
            raise Problem(422, "The entry has no such field.", f"Its fields: {', '.join(fields)}.")
        return self.agent.decide(given.thread, given.decision, given.changes, given.reason or "", actor=who, **follow)

    async def _turn(self, request: Request, who: Actor, thread: str, work: Work) -> Response:
        """Begin a turn, and answer with its report or as a stream."""
        earlier = self.turns.running(thread)
        if earlier and earlier.stopping.is_set():
            await asyncio.to_thread(earlier.over.wait, WIND_DOWN_S)
        if not self.turns.running(thread) and self.turns.count(who.name) >= self.settings.api_turns:
            detail = f"At most {self.settings.api_turns} questions can be answered for you at the same time."
            raise Problem(429, detail, "Wait for an answer, then ask.", retry_after=5)
        turn, limit_s = self.turns.begin(thread, work, owner=who.name), self.settings.api_timeout
        if stream.MEDIA_TYPE in request.headers.get("accept", ""):
            pieces = stream.events(turn, request, limit_s)
            return StreamingResponse(pieces, media_type=stream.MEDIA_TYPE, headers=stream.HEADERS)
        async with aclosing(stream.follow(turn, request, limit_s)) as events:
            async for _ in events:
                pass
        return JSONResponse(turn.result)


def _is_rcm(thread: str | None) -> bool:
    return bool(thread and thread.startswith(f"{RCM}."))


async def health(agent: Agent) -> dict[str, Any]:
    """What runs here and what it can reach, without an address, a path or a secret in it."""
    thread = RunnableConfig(configurable={"thread_id": NOBODY})
    looks = (asyncio.to_thread(agent.store.patient, NOBODY), asyncio.to_thread(agent.memory.get_tuple, thread))
    seen = await asyncio.gather(*(asyncio.wait_for(look, HEALTH_S) for look in looks), return_exceptions=True)
    # whatever the error is: what cannot be read is not reachable, and the body says no more than that
    store, memory = ("unreachable" if isinstance(found, BaseException) else "reachable" for found in seen)
    return {
        "status": "down" if memory == "unreachable" else "ok" if store == "reachable" else "degraded",
        "version": __version__,
        "model": Path(agent.llm.name).name,  # a model file's name, not where it lies
        "vision": agent.llm.vision,
        "graph": agent.graph_name,
        "sources": agent.settings.sources,
        "record_store": store,
        "memory": memory,
    }
