"""What a source of medical facts answers. Each answer says where it is from and as of when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from docgemma.text.quoted import NOT_VERIFIED

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """Records, best first. An empty list means searched and nothing there; a failure is raised instead.

    `not_covered` names the drugs of which the source holds nothing at all: of those nothing was looked up.
    """

    records: list[T]
    source: str  # "openFDA snapshot", "openFDA", ...
    as_of: str | None  # ISO date
    fell_back: str | None = None  # why the live service was not used, where it was tried
    not_covered: tuple[str, ...] = ()
    size: int | None = None  # records of the offline collection that was searched
    invented: int = 0  # of these, demonstration records
    partial: bool = False  # the nearest records: none has all that was asked about


class LabelSection(NamedTuple):
    """A section of one label, in plain text, and the label that it is of."""

    text: str
    set_id: str = ""
    version: str = ""
    effective: str | None = None  # ISO date
    reference: str = ""

    def basis(self, section: str = "", quote: str = "") -> str:
        """'label SETID, version 3, effective 2024-01-31, section "Drug interactions": "..."', with what was read."""
        if not self.set_id:
            return NOT_VERIFIED
        version = f", version {self.version}" if self.version else ""
        effective = f", effective {self.effective}" if self.effective else ""
        where = f', section "{section.replace("_", " ").capitalize()}": "{quote}"' if quote else ""
        return f"label {self.set_id}{version}{effective}{where}"


@dataclass(frozen=True)
class DrugLabel:
    """The safety sections of a drug's label. Texts are plain; [] or "" means the label has no such section."""

    name: str  # generic, lower case
    brand_names: list[str] = field(default_factory=list)
    drug_classes: list[str] = field(default_factory=list)
    boxed_warning: str = ""
    contraindications: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    interactions: str = ""
    max_daily_dose: str = ""  # "3000 mg", adult, where the label gives one
    reference: str = ""  # where the fact can be checked
    effective: str | None = None  # ISO date of the label
    set_id: str = ""  # of the label that was read; "" where none was
    version: str = ""
    mixed: bool = False  # what the label lacks is of the shipped records

    @property
    def basis(self) -> str:
        """How the facts were obtained: never more than was done."""
        return NOT_VERIFIED if self.mixed else LabelSection("", self.set_id, self.version, self.effective).basis()


@dataclass(frozen=True)
class Interaction:
    """A pair of drugs that interact. `severity` as the source words it."""

    drugs: tuple[str, str]
    severity: str  # contraindicated, major, moderate, minor, or the label's own word
    mechanism: str
    management: str
    reference: str
    basis: str = NOT_VERIFIED  # or the label that says so


@dataclass(frozen=True)
class Article:
    id: str  # PMID, or "doi:10.…" where none is known
    title: str
    authors: str
    journal: str
    year: int | None
    abstract: str
    url: str = ""


@dataclass(frozen=True)
class Trial:
    """`demonstration`: an invented record that ships with the package."""

    id: str  # NCT id, or DEMO-TRIAL-001
    title: str
    status: str
    phase: str
    conditions: list[str]
    interventions: list[str]
    locations: list[str]
    summary: str = ""
    url: str = ""
    demonstration: bool = False


class Knowledge(Protocol):
    """Raises ToolError in the known ways. Drug names may be generic or brand; a name that is not known raises
    `drug_not_in_database`, or `ambiguous_drug_name` with `suggestions` where it is nearly one that is."""

    def label(self, drug_name: str) -> Answer[DrugLabel]: ...

    def interactions(self, drug_names: list[str]) -> Answer[Interaction]: ...

    def literature(self, query: str, limit: int = 5) -> Answer[Article]: ...

    def trials(self, condition: str, status: str | None = None, limit: int = 5) -> Answer[Trial]: ...

    def generic_name(self, drug_name: str) -> str | None:
        """The generic name of a brand or generic, or None. Never guesses."""

    @property
    def quotes(self) -> Mapping[str, str]:
        """Fact key -> the label that states a shipped fact, with the sentence; all other facts are `NOT_VERIFIED`."""

    def close(self) -> None: ...
