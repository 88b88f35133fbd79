"""How the FHIR server knows us: nothing, a bearer token, or OAuth2 client credentials with a token that is renewed."""

import threading
import time
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from docgemma.errors import ConfigError
from docgemma.settings import Settings

EARLY_S = 30.0  # a token is renewed this long before it ends
DEFAULT_LIFE_S = 300.0  # of a token whose server does not say

GRANT = {"grant_type": "client_credentials"}


class Send(Protocol):
    async def __call__(self, method: str, url: str, **options: Any) -> tuple[int, Any]:
        """One request without our credentials, to its status and JSON body (None if it is not JSON)."""
        ...


class Refused(Exception):
    """The server did not give us a token. The text says why, without a secret."""


class Token:
    """A fixed bearer token; "" sends none."""

    def __init__(self, token: str = ""):
        self._token = token

    async def header(self, send: Send) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def forget(self) -> bool:
        """After a 401. True if another token can be had."""
        return False


class ClientCredentials:
    """OAuth2 client credentials. The token endpoint is a setting, or is read from the server's SMART configuration."""

    def __init__(self, base_url: str, client_id: str, client_secret: str, token_url: str | None = None):
        self._base_url, self._token_url = base_url, token_url
        self._client_id, self._client_secret = client_id, client_secret
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    async def header(self, send: Send) -> dict[str, str]:
        with self._lock:
            token = self._token if time.monotonic() < self._until else ""
        if not token:
            token, life_s = await self._fetch(send)
            with self._lock:
                self._token, self._until = token, time.monotonic() + life_s - min(EARLY_S, life_s / 2)
        return {"Authorization": f"Bearer {token}"}

    def forget(self) -> bool:
        with self._lock:
            self._token, self._until = "", 0.0
        return True

    async def _fetch(self, send: Send) -> tuple[str, float]:
        url = self._token_url or await self._discover(send)
        basic = httpx.BasicAuth(quote(self._client_id, safe=""), quote(self._client_secret, safe=""))
        status, body = await send("POST", url, data=GRANT, auth=basic)
        if status in (400, 401):  # some servers take the secret in the body only
            form = GRANT | {"client_id": self._client_id, "client_secret": self._client_secret}
            status, body = await send("POST", url, data=form)
        token = body.get("access_token") if isinstance(body, dict) else None
        if status != 200 or not isinstance(token, str) or not token:
            raise Refused(f"no token for this client, HTTP {status}")
        life = body.get("expires_in")
        return token, float(life) if isinstance(life, (int, float)) and life > 0 else DEFAULT_LIFE_S

    async def _discover(self, send: Send) -> str:
        status, body = await send("GET", f"{self._base_url}/.well-known/smart-configuration")
        url = body.get("token_endpoint") if isinstance(body, dict) and status == 200 else None
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise ConfigError("The FHIR server does not say where its tokens are.", hint="Set DOCGEMMA_EHR_TOKEN_URL.")
        if self._base_url.startswith("https://") and not url.startswith("https://"):
            raise Refused("its token address is not encrypted")
        self._token_url = url
        return url


def auth_from(settings: Settings, base_url: str) -> Token | ClientCredentials:
    """
    Raises:
        ConfigError: a client id without its secret, or the reverse.
    """
    if settings.ehr_token:
        return Token(settings.ehr_token)
    if bool(settings.ehr_client_id) != bool(settings.ehr_client_secret):
        raise ConfigError(
            "OAuth2 needs a client id and a client secret.",
            hint="Set DOCGEMMA_EHR_CLIENT_ID and DOCGEMMA_EHR_CLIENT_SECRET, or DOCGEMMA_EHR_TOKEN.",
        )
    if settings.ehr_client_id and settings.ehr_client_secret:
        return ClientCredentials(base_url, settings.ehr_client_id, settings.ehr_client_secret, settings.ehr_token_url)
    return Token()
