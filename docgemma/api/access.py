"""Who may call, how often, and which conversations are theirs."""

import hashlib
import math
import re
import secrets
import time
from urllib.parse import quote

from docgemma.api.problems import Problem
from docgemma.errors import ConfigError
from docgemma.nodes.context import Actor

RCM = "rcm-api"  # the door to the revenue-cycle agent, whose conversations begin with "rcm-" everywhere
LOCAL = Actor("local")  # everybody, where no token is set and only this machine can connect
TOKEN = re.compile(r"([a-z0-9_-]{1,32}):(read|write):([A-Za-z0-9._~+/=-]{16,200})")
RANDOM = re.compile(r"[A-Za-z0-9_-]{24}")
EXAMPLE = "Write it as ward:write:SECRET, with a secret of at least 16 letters and digits and a name that is not local."


class Tokens(dict[bytes, Actor]):
    """The tokens of `DOCGEMMA_API_TOKENS`: the SHA-256 digest of each secret, and whose it is."""

    def caller(self, secret: str) -> Actor | None:
        return self.get(_digest(secret))

    def may_sign_in(self, name: str, secret: str) -> bool:
        """Whether this opens the demo: a token's name and secret. The demo can approve, so the role must be write."""
        found = self.caller(secret)
        return found is not None and found.may_write and found.name == name


def read_tokens(text: str | None) -> Tokens:
    """Read `NAME:ROLE:SECRET` entries, separated by spaces or commas. Roles: read, write.

    Raises:
        ConfigError: an entry cannot be read, or a name or secret stands twice. No secret is repeated.
    """
    known = Tokens()
    names = {LOCAL.name}
    for number, entry in enumerate((text or "").replace(",", " ").split(), 1):
        found = TOKEN.fullmatch(entry)
        name, role, secret = found.groups() if found else ("", "", "")
        if not found or name in names or _digest(secret) in known:
            line = f"Token {number} of DOCGEMMA_API_TOKENS cannot be read, or its name or secret is taken."
            raise ConfigError(line, hint=EXAMPLE)
        names.add(name)
        known[_digest(secret)] = Actor(name, role == "write")
    return known


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()


def check_may_write(who: Actor, hint: str) -> None:
    """Raises Problem: 403, the caller's token may read only."""
    if not who.may_write:
        raise Problem(403, "This token may read only.", hint)


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


def prefix(owner: str, door: str = "api") -> str:
    """How the ids of somebody's conversations begin, so that nobody else's id opens anything. `owner`: the name of a
    token or login, "" where nobody signs in; `door`: "api", "rcm-api", or "web" for the demo."""
    return f"{door}.{quote(owner, safe='')}."


def new_thread(owner: str, door: str = "api") -> str:
    """An id that nobody can guess: 144 random bits."""
    return prefix(owner, door) + secrets.token_urlsafe(18)


def owns(owner: str, thread: object, door: str = "api") -> bool:
    """Whether the id was given to this person. Ids of the command line belong to nobody here."""
    begins = prefix(owner, door)
    return isinstance(thread, str) and thread.startswith(begins) and bool(RANDOM.fullmatch(thread[len(begins) :]))
