"""Conversation ids that a browser may keep: nobody can guess one, and none opens for another login.

An id is 192 random bits and a signature over them and the login's name, made with a key that stays in the data home.
An id that this server did not sign for this person, also one from the command line, opens nothing.
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from docgemma.errors import StoreError

KEY_FILE = "demo.key"
PREFIX = "web"


class Ids:
    """Args: home: the data home; the key is made there at first use and readable by its owner only.

    Raises:
        StoreError: the key cannot be kept.
    """

    def __init__(self, home: Path):
        self.key = _key(home / KEY_FILE)

    def new(self, user: str | None) -> str:
        token = secrets.token_urlsafe(24)
        return f"{PREFIX}.{token}.{self._sign(token, user)}"

    def owns(self, thread: object, user: str | None) -> bool:
        """Whether this server gave this id to this person."""
        if not isinstance(thread, str) or thread.count(".") != 2:
            return False
        prefix, token, signature = thread.split(".")
        return prefix == PREFIX and hmac.compare_digest(signature.encode(), self._sign(token, user).encode())

    def browser_secret(self) -> str:
        """What Gradio scrambles the browser's storage with; the same after a restart."""
        return hmac.new(self.key, b"browser storage", hashlib.sha256).hexdigest()[:16]

    def _sign(self, token: str, user: str | None) -> str:
        return hmac.new(self.key, f"{user or ''}\n{token}".encode(), hashlib.sha256).hexdigest()[:32]


def short(thread: str) -> str:
    """A name for a conversation that can be passed on: it opens nothing."""
    return hashlib.sha256(thread.encode()).hexdigest()[:12]


def _key(path: Path) -> bytes:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
            try:
                os.link(new, path)  # whoever comes second takes the first one's key
            except FileExistsError:
                pass
            finally:
                new.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"The demo's key cannot be kept: {error.strerror}.", hint="Set DOCGEMMA_HOME.") from error
    if len(key) != 32:
        raise StoreError(f"The demo's key {path} is damaged.", hint="Delete it; open conversations begin afresh.")
    return key
