"""Who may call, how often, and which conversations are theirs."""

import hashlib
import hmac
import math
import re
import secrets
import time
from dataclasses import dataclass

from docgemma.api.problems import Problem
from docgemma.errors import ConfigError
from docgemma.nodes.context import Actor

LOCAL = Actor("local")  # everybody, where no token is set and only this machine can connect
TOKEN = re.compile(r"([a-z0-9_-]{1,32}):(read|write):([A-Za-z0-9._~+/=-]{16,200})")
ID = re.compile(r"api\.[a-z0-9_-]{1,32}\.[A-Za-z0-9_-]{24}")  # of a conversation
EXAMPLE = "Write it as ward:write:SECRET, with a secret of at least 16 letters and digits."


@dataclass(frozen=True)
class Tokens:
    """The tokens of `DOCGEMMA_API_TOKENS`: SHA-256 digests of the secrets, and whose they are."""

    known: tuple[tuple[bytes, Actor], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.known)

    def caller(self, secret: str) -> Actor | None:
        """Whose token it is. All are compared, in constant time, so that the time tells nothing."""
        given = _digest(secret)
        found = [actor for digest, actor in self.known if hmac.compare_digest(digest, given)]
        return found[0] if found else None

    def may_sign_in(self, name: str, secret: str) -> bool:
        """Whether this opens the demo: a token's name and secret. The demo can approve, so the role must be write."""
        found = self.caller(secret)
        return found is not None and found.may_write and found.name == name


def read_tokens(text: str | None) -> Tokens:
    """Read `NAME:ROLE:SECRET` entries, separated by spaces or commas. Roles: read, write.

    Raises:
        ConfigError: an entry cannot be read, or a name or secret stands twice. No secret is repeated.
    """
    known: dict[bytes, Actor] = {}
    names = {LOCAL.name}
    for number, entry in enumerate((text or "").replace(",", " ").split(), 1):
        found = TOKEN.fullmatch(entry)
        if found is None:
            raise ConfigError(f"Token {number} of DOCGEMMA_API_TOKENS cannot be read.", hint=EXAMPLE)
        name, role, secret = found.groups()
        if name in names or _digest(secret) in known:
            raise ConfigError(
                f"Token {number} of DOCGEMMA_API_TOKENS has a name or a secret that is taken.",
                hint='Give each its own; "local" is kept for use without tokens.',
            )
        names.add(name)
        known[_digest(secret)] = Actor(name, role == "write")
    return Tokens(tuple(known.items()))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()


class Rate:
    """A token bucket for each caller, used on the event loop's thread only. A burst of `per_minute` is fine."""

    def __init__(self, per_minute: int):
        self.per_minute = per_minute
        self._left: dict[str, tuple[float, float]] = {}  # caller: (requests left, as of)

    def count(self, name: str, now: float | None = None) -> None:
        """Raises Problem: 429, with the seconds to wait."""
        now = time.monotonic() if now is None else now
        left, since = self._left.get(name, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
        self._left[name] = (left - 1 if left >= 1 else left, now)
        if left < 1:
            wait = math.ceil((1 - left) * 60 / self.per_minute)
            raise Problem(429, "Too many requests.", f"Wait {wait} s, then try again.", retry_after=wait)


def prefix(owner: Actor) -> str:
    """How the ids of this caller's conversations begin, so that nobody else's id opens anything."""
    return f"api.{owner.name}."


def new_thread(owner: Actor) -> str:
    return prefix(owner) + secrets.token_urlsafe(18)


def owns(owner: Actor, thread: str) -> bool:
    """Whether the id was given to this caller. Ids of the command line and the demo belong to no caller."""
    return ID.fullmatch(thread) is not None and thread.startswith(prefix(owner))
