"""Who may call: bearer tokens, each with a name and a role, compared in constant time."""

import hashlib
import hmac
import re
from dataclasses import dataclass

from docgemma.errors import ConfigError
from docgemma.nodes.context import Actor

LOCAL = Actor("local")  # everybody, where no token is set and only this machine can connect
TOKEN = re.compile(r"([a-z0-9_-]{1,32}):(read|write):([A-Za-z0-9._~+/=-]{16,200})")
EXAMPLE = "Write it as ward:write:SECRET, with a secret of at least 16 letters and digits."


@dataclass(frozen=True)
class Tokens:
    """The tokens of `DOCGEMMA_API_TOKENS`, secrets as SHA-256 digests. An empty one lets everybody in as LOCAL."""

    known: tuple[tuple[bytes, Actor], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.known)

    def caller(self, secret: str) -> Actor | None:
        """Whose token it is. All are compared, so that the time tells nothing."""
        given, found = _digest(secret), None
        for digest, actor in self.known:
            if hmac.compare_digest(digest, given):
                found = actor
        return found

    def may_sign_in(self, name: str, secret: str) -> bool:
        """Whether this opens the demo: a token's name and secret. The demo can approve, so the role must be write."""
        found = self.caller(secret)
        return found is not None and found.may_write and found.name == name


def read_tokens(text: str | None) -> Tokens:
    """`NAME:ROLE:SECRET` entries, separated by spaces or commas. A name keeps its conversations; roles: read, write.

    Raises:
        ConfigError: an entry cannot be read, or a name or secret stands twice. No secret is repeated.
    """
    known: dict[str, tuple[bytes, Actor]] = {}
    for number, entry in enumerate(filter(None, re.split(r"[\s,]+", text or "")), 1):
        found = TOKEN.fullmatch(entry)
        if found is None:
            raise ConfigError(f"Token {number} of DOCGEMMA_API_TOKENS cannot be read.", hint=EXAMPLE)
        name, role, secret = found.groups()
        digest = _digest(secret)
        if name in known or name == LOCAL.name or any(digest == other for other, _ in known.values()):
            raise ConfigError(
                f"Token {number} of DOCGEMMA_API_TOKENS has a name or a secret that is taken.",
                hint='Give each its own; "local" is kept for use without tokens.',
            )
        known[name] = (digest, Actor(name, role == "write"))
    return Tokens(tuple(known.values()))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
