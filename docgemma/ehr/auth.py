"""How the FHIR server knows us: nothing, a bearer token, or OAuth2 client credentials with a token that is renewed."""

import time
from collections.abc import Generator
from typing import Annotated
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field, HttpUrl, ValidationError

from docgemma.ehr.client import RemoteError
from docgemma.errors import ConfigError, ErrorType
from docgemma.settings import Settings

EARLY_S = 30.0  # a token is renewed this long before it ends
GRANT = {"grant_type": "client_credentials"}


class Granted(BaseModel):
    access_token: Annotated[str, Field(min_length=1)]
    expires_in: Annotated[float, Field(gt=0)] = 300.0  # seconds


class Configuration(BaseModel):
    token_endpoint: HttpUrl


class Token(httpx.Auth):
    """A fixed bearer token."""

    def __init__(self, token: str):
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class ClientCredentials(httpx.Auth):
    """OAuth2 client credentials. The token endpoint is a setting, or is read from the server's SMART configuration."""

    def __init__(self, base_url: str, client_id: str, client_secret: str, token_url: str | None = None):
        self._base_url, self._token_url = base_url, token_url
        self._client_id, self._client_secret = client_id, client_secret
        self._token, self._until = "", 0.0

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        for _ in range(2):
            if time.monotonic() >= self._until:
                with httpx.Client(timeout=request.extensions["timeout"]["read"]) as client:  # what is left for it
                    self._renew(client)
            request.headers["Authorization"] = f"Bearer {self._token}"
            response = yield request
            if response.status_code != 401:
                return
            self._until = 0.0  # the token ended early: once more with a new one

    def _renew(self, client: httpx.Client) -> None:
        url = self._token_url or self._discover(client)
        basic = httpx.BasicAuth(quote(self._client_id, safe=""), quote(self._client_secret, safe=""))
        response = client.post(url, data=GRANT, auth=basic)
        if response.status_code in (400, 401):  # some servers take the secret in the body only
            form = GRANT | {"client_id": self._client_id, "client_secret": self._client_secret}
            response = client.post(url, data=form)
        try:
            granted = Granted.model_validate_json(response.content if response.is_success else b"")
        except ValidationError:
            said = f"no token for this client, HTTP {response.status_code}"
            raise RemoteError(ErrorType.NOT_PERMITTED, "FHIR server", said) from None
        self._token, life_s = granted.access_token, granted.expires_in
        self._until = time.monotonic() + life_s - min(EARLY_S, life_s / 2)

    def _discover(self, client: httpx.Client) -> str:
        response = client.get(f"{self._base_url}/.well-known/smart-configuration")
        try:
            url = str(Configuration.model_validate_json(response.content).token_endpoint)
        except ValidationError:
            hint = "Set DOCGEMMA_EHR_TOKEN_URL."
            raise ConfigError("The FHIR server does not say where its tokens are.", hint=hint) from None
        if self._base_url.startswith("https://") and not url.startswith("https://"):
            raise RemoteError(ErrorType.NOT_PERMITTED, "FHIR server", "its token address is not encrypted")
        self._token_url = url
        return url


def auth_from(settings: Settings, base_url: str) -> httpx.Auth | None:
    """Raises ConfigError for a client id without its secret, or the reverse."""
    if settings.ehr_token:
        return Token(settings.ehr_token)
    if settings.ehr_client_id and settings.ehr_client_secret:
        return ClientCredentials(base_url, settings.ehr_client_id, settings.ehr_client_secret, settings.ehr_token_url)
    if settings.ehr_client_id or settings.ehr_client_secret:
        hint = "Set DOCGEMMA_EHR_CLIENT_ID and DOCGEMMA_EHR_CLIENT_SECRET, or DOCGEMMA_EHR_TOKEN."
        raise ConfigError("OAuth2 needs a client id and a client secret.", hint=hint)
    return None
