"""What a record store does. FHIR R4 resources are plain dicts here; a back end validates what it writes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Resource = dict[str, Any]  # a FHIR R4 resource
NAMED = 200  # patients of one name; where there are more, a birth date is needed to be sure of all


@dataclass(frozen=True)
class PatientMatch:
    """One patient that a search found. `guessed`: the name was not spelt this way."""

    id: str
    name: str
    birth_date: str  # ISO, may be partial or ""
    sex: str  # FHIR administrative gender
    guessed: bool = False
    identifiers: tuple[str, ...] = ()  # record numbers beside the id, as recorded

    @property
    def label(self) -> str:
        born = f"born {self.birth_date}" if self.birth_date else ""
        return ", ".join(filter(None, (self.name, self.sex, born)))


@dataclass(frozen=True)
class Provenance:
    """Who wrote, from where. `key` makes the write happen once: the same key always gives the same resource."""

    actor: str
    thread: str
    key: str


@dataclass(frozen=True)
class Chart:
    """A patient's summary: FHIR resources by kind, newest first. An empty list means looked up and none there."""

    patient: PatientMatch
    conditions: list[Resource] = field(default_factory=list)
    medications: list[Resource] = field(default_factory=list)  # MedicationRequest, MedicationStatement where loaded
    allergies: list[Resource] = field(default_factory=list)
    labs: list[Resource] = field(default_factory=list)  # Observation, category laboratory
    vitals: list[Resource] = field(default_factory=list)
    notes: list[Resource] = field(default_factory=list)  # DocumentReference
    immunizations: list[Resource] = field(default_factory=list)
    observations: list[Resource] = field(default_factory=list)  # any other category: smoking status, surveys
    record: Resource = field(default_factory=dict)  # the Patient resource: deceased, language, ...


class RecordStore(Protocol):
    """One interface, two back ends. Every method raises StoreError when the store cannot be reached or read:
    an outage is never an empty answer. `name` is what a clinician reads as the source."""

    name: str

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        """Patients whose name, or whose id, is this; best first; guesses only where nobody's name is spelt this way."""

    def patient(self, patient_id: str) -> PatientMatch | None:
        """The patient with exactly this id, or None."""

    def born(self, days: Sequence[str]) -> list[PatientMatch]:
        """Patients born on one of these ISO days; at most `NAMED`."""

    def by_identifier(self, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
        """For each value that somebody has as id or identifier (an MRN): who. Case, spaces and hyphens do not count."""

    def named(self, groups: Sequence[Sequence[str]], born: Sequence[str] = ()) -> list[list[PatientMatch]]:
        """For each group of words as typed, the patients whose name holds them all, one of them as family name.

        At most NAMED of a group; a store that can ask only for some groups takes the first. `born`: ISO dates or years,
        one of which fits (or the record has no date).
        """

    def chart(self, patient_id: str) -> Chart | None:
        """The whole summary, or None if there is no such patient."""

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource once per `provenance.key`; returns it as stored, with id and meta.

        Raises:
            ToolError: `invalid_args` if it is not a valid FHIR resource, `not_found` if its patient is unknown,
                `not_permitted` if the store refuses.
        """

    def close(self) -> None: ...
