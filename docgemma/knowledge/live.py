"""The live public APIs behind the Knowledge protocol: openFDA, RxNorm, Europe PMC, ClinicalTrials.gov."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from docgemma.errors import ErrorType, ToolError
from docgemma.http import Deadline
from docgemma.knowledge import literature, openfda, rxnorm, trials
from docgemma.knowledge.base import Answer, Article, DrugLabel, Interaction, Trial
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.http import Service
from docgemma.knowledge.label_interactions import Drug, drug_of, interaction
from docgemma.settings import Settings

T = TypeVar("T")
HOUR = 3600.0
NAMING_SHARE = 0.4  # of the time of a call; a name service that hangs must leave time for the labels
MAX_NAME = 200


@dataclass(frozen=True)
class Found:
    """A drug as the services know it. `label.name` is "" without a label; `classes_error`: why it has no classes."""

    given: str
    drug: Drug
    as_of: str
    classes_error: ToolError | None


class LiveKnowledge:
    """Answers of the live services.

    Every method ends within `settings.tool_timeout` seconds and raises ToolError in the known ways; an outage is never
    an empty answer. Labels, articles and trials are other people's words: data, never instructions.
    """

    quotes: Mapping[str, str] = {}  # no label is read for the shipped facts

    def __init__(self, settings: Settings):
        self._timeout, cache = settings.tool_timeout, settings.home / "http-cache"
        self._openfda = Service("openFDA", settings.openfda_url, "DOCGEMMA_OPENFDA_URL", 4, 8, 24 * HOUR, cache)
        self._rxnav = Service("RxNorm", settings.rxnav_url, "DOCGEMMA_RXNAV_URL", 20, 20, 24 * HOUR, cache)
        url = settings.europepmc_url
        self._europepmc = Service("Europe PMC", url, "DOCGEMMA_EUROPEPMC_URL", 10, 10, 12 * HOUR, cache)
        self._ctgov = Service("ClinicalTrials.gov", settings.ctgov_url, "DOCGEMMA_CTGOV_URL", 1, 4, 12 * HOUR, cache)

    def label(self, drug_name: str) -> Answer[DrugLabel]:
        """One label, merged from the drug's labels; [] where RxNorm knows the drug and openFDA has no label of it."""
        found = self._find(drug_name, Deadline.after(self._timeout))
        return Answer([found.drug.label] if found.drug.label.name else [], self._openfda.name, found.as_of)

    def interactions(self, drug_names: list[str]) -> Answer[Interaction]:
        """What the labels say of every pair, both ways, in the labels' own words. A pair without a finding is not in.

        Raises:
            ToolError: also for a drug without a label of which no other label speaks, since nothing was read then; and
                where a class could not be looked up and nothing at all was found.
        """
        deadline = Deadline.after(self._timeout)
        given = list(dict.fromkeys(name.strip() for name in drug_names))
        with ThreadPoolExecutor(max_workers=max(1, len(given))) as pool:
            found = list(pool.map(lambda name: self._find(name, deadline), given))
        drugs = list({item.drug.name: item for item in found}.values())
        if len(drugs) < 2:
            raise invalid("Fewer than two different drugs were named.", "drug_names")
        records = [pair for a, b in combinations(drugs, 2) if (pair := interaction(a.drug, b.drug))]
        self._check_complete(drugs, records)
        return Answer(records, self._openfda.name, min(item.as_of for item in drugs))

    def literature(self, query: str, limit: int = 5) -> Answer[Article]:
        """Articles, the most relevant first."""
        found = literature.find_articles(self._europepmc, query, limit, Deadline.after(self._timeout))
        return Answer(found.data, self._europepmc.name, found.as_of)

    def trials(self, condition: str, status: str | None = None, limit: int = 5) -> Answer[Trial]:
        """Trials in the registry's order."""
        found = trials.find_trials(self._ctgov, condition, status, limit, Deadline.after(self._timeout))
        return Answer(found.data, self._ctgov.name, found.as_of)

    def generic_name(self, drug_name: str) -> str | None:
        """RxNorm's ingredient, lower case ("a / b" for a combination), or None for a name that it does not know."""
        if not drug_name.strip() or len(drug_name) > MAX_NAME:
            return None
        known = rxnorm.resolve(self._rxnav, drug_name.strip(), Deadline.after(self._timeout))
        return " / ".join(known or ()) or None

    def close(self) -> None:
        for service in (self._openfda, self._rxnav, self._europepmc, self._ctgov):
            service.close()

    def _find(self, given: str, deadline: Deadline) -> Found:
        """Names, label and classes of a drug. RxNorm may be down: then the name is searched as it was given."""
        given = " ".join(given.split())
        if not any(character.isalpha() for character in given) or len(given) > MAX_NAME:
            raise invalid("A drug name needs letters, and at most 200 characters.", "drug_name")
        share = deadline.share(NAMING_SHARE)
        known, down = _or_outage(lambda: rxnorm.resolve(self._rxnav, given, share))
        names = [given, *(known if known and len(known) == 1 else ())]
        fetched = openfda.find_labels(self._openfda, names, deadline)
        labels = fetched.data
        if not labels and (known is None or down):
            raise down or self._unknown(given)  # with an outage, whether this is a drug at all is not known
        name = " / ".join(known or ()) or (openfda.generic_of(labels) if labels else "") or given.lower()
        classes, classes_error = openfda.classes_of(labels), down
        if not classes and known and len(known) == 1:
            rxcui, share = known[name], deadline.share(NAMING_SHARE)
            found, classes_error = _or_outage(lambda: rxnorm.classes(self._rxnav, rxcui, share))
            classes = found or []
        label = openfda.merge(labels, name, classes) if labels else DrugLabel("", drug_classes=classes)
        drug = drug_of(name, label, openfda.scanned_sections(labels), asked=given.lower())
        return Found(given, drug, fetched.as_of, None if classes else classes_error)

    def _unknown(self, given: str) -> ToolError:
        """For a name that no service knows: `ambiguous_drug_name` where it is nearly one of the dictionary's."""
        near = load_drug_names().suggest(given)
        missing = ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "RxNorm does not know this drug name.", entity=given)
        return rxnorm.ambiguous(given, near) if near else missing

    def _check_complete(self, drugs: list[Found], found: list[Interaction]) -> None:
        """No finding must mean that labels were read: by name, and by class."""
        for item in drugs:
            if not item.drug.label.name and not any(item.drug.name in pair.drugs for pair in found):
                raise ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "openFDA has no label of a drug.", entity=item.given)
        missing = next((item.classes_error for item in drugs if item.classes_error), None)
        if missing and not found:
            raise missing


def _or_outage(work: Callable[[], T]) -> tuple[T | None, ToolError | None]:
    """The answer, or the outage; a name of several drugs is an answer of its own and raised."""
    try:
        return work(), None
    except ToolError as error:
        if error.error_type is ErrorType.AMBIGUOUS_DRUG_NAME:
            raise
        return None, error


def invalid(message: str, field: str) -> ToolError:
    return ToolError(ErrorType.INVALID_ARGS, message, missing_fields=[field])
