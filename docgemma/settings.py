"""Every knob, from DOCGEMMA_* variables. An explicit argument beats the environment, which beats the default."""

from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_dir
from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from docgemma.errors import UsageError


def _plain(name: str) -> AliasChoices:
    """Of a variable that other programs read too, without DOCGEMMA_ before it."""
    return AliasChoices(name, name.upper())


class Settings(BaseSettings):
    """Where things are and how to run. Empty strings in the environment count as unset."""

    model_config = SettingsConfigDict(env_prefix="DOCGEMMA_", extra="forbid", env_ignore_empty=True)

    model: str | None = None  # edge, medgemma, a .gguf file, a path or hub id, server
    mmproj: Path | None = None  # vision projector of a .gguf model
    llm_url: str | None = None
    llm_name: str | None = None
    llm_key: str | None = Field(default=None, repr=False)

    sources: Literal["offline", "live", "auto"] = "auto"
    openfda_url: str = "https://api.fda.gov"
    ctgov_url: str = "https://clinicaltrials.gov/api/v2"
    europepmc_url: str = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    rxnav_url: str = "https://rxnav.nlm.nih.gov/REST"
    gemini_url: str = "https://generativelanguage.googleapis.com"
    google_api_key: str | None = Field(default=None, repr=False, validation_alias=_plain("google_api_key"))
    tool_timeout: float = Field(default=10.0, gt=0, le=600)  # seconds

    ehr: str | None = None  # SQLite path, or base URL of a FHIR R4 server
    ehr_token: str | None = Field(default=None, repr=False)
    ehr_client_id: str | None = None
    ehr_client_secret: str | None = Field(default=None, repr=False)
    ehr_token_url: str | None = None
    db: str | None = None  # SQLite path or postgresql://
    mcp_url: str | None = None  # a remote MCP server whose tools take the place of the built-in ones
    mcp_token: str | None = Field(default=None, repr=False)  # bearer token of `docgemma mcp --http`, both ends

    api_tokens: str | None = Field(default=None, repr=False)  # of `docgemma serve`: NAME:ROLE:SECRET ...
    api_rate: int = Field(default=120, ge=1)  # requests a minute, each token
    api_turns: int = Field(default=2, ge=1)  # questions being answered or waiting, each token
    api_slots: int = Field(default=4, ge=1, le=64)  # questions being answered at once, all tokens; others wait
    api_timeout: float = Field(default=300.0, gt=0)  # seconds a turn may take, waiting included
    api_question: int = Field(default=4000, ge=1, le=20_000)  # characters
    api_body_mb: float = Field(default=70.0, gt=0, le=1000)  # a body; an image of 50 MB fits in base64

    keep_days: int | None = Field(default=None, ge=0)  # older conversations go at the next start
    rcm_keep_days: int = Field(default=30, ge=0)  # conversations of the revenue-cycle agent; its ledger is kept
    qdrant_url: str | None = None  # of a Qdrant server with the payers' policies; else they are searched in process
    rcm_models: str | None = None  # of that agent, when its model does not answer: names in order

    home: Path = Path(user_data_dir("docgemma", appauthor=False))

    narrowing: bool = True  # code removes tools that cannot apply before the model chooses
    copy_args: bool = True  # identifying arguments are spans of what was said or found (design, decision 13)
    fast_decoding: bool = True  # False: plain Outlines on the transformers back end
    threads: int | None = Field(default=None, ge=1)  # CPU threads of a model; None takes every core
    gpus: int = Field(default=1, ge=1)  # GPUs that get a copy of a transformers model, so that turns run side by side

    # traces of the revenue-cycle agent, scrubbed: rcm/tracing.py
    langsmith_tracing: bool = Field(default=False, validation_alias=_plain("langsmith_tracing"))
    langsmith_api_key: str | None = Field(default=None, repr=False, validation_alias=_plain("langsmith_api_key"))
    langsmith_endpoint: str = Field(
        default="https://api.smith.langchain.com", validation_alias=_plain("langsmith_endpoint")
    )

    @property
    def ehr_location(self) -> str:
        return self.ehr or str(self.home / "ehr.sqlite")

    @property
    def db_location(self) -> str:
        return self.db or str(self.home / "memory.sqlite")


def read_settings(**given: Any) -> Settings:
    """Settings from the environment, an explicit argument first.

    Raises:
        UsageError: a value cannot be used; the line names the variable.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        name = "_".join(str(part) for part in problem["loc"]).upper()
        raise UsageError(
            f"DOCGEMMA_{name} cannot be used: {problem['msg']}.", hint="Change it, or unset it."
        ) from error
