"""The live public APIs behind the Knowledge protocol: openFDA, RxNorm, Europe PMC, ClinicalTrials.gov."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import ctgov, europepmc, openfda
from docgemma.knowledge.base import Answer, Article, DrugLabel, Interaction, Trial, label_basis
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.http import Deadline, Http, Service
from docgemma.knowledge.label_interactions import Drug, Finding, find, weight
from docgemma.knowledge.openfda import Label, classes_of, generic_of, leading, scanned_sections
from docgemma.knowledge.rxnorm import DrugName, RxNorm, ambiguous
from docgemma.settings import Settings

HOUR = 3600.0
NAMING_SHARE = 0.4  # of the time of a call; a name service that hangs must leave time for the labels
MAX_NAME = 200
MAX_READ = 5  # labels of a drug that are read for others


@dataclass(frozen=True)
class Found:
    """A drug with its labels. `classes_error`: why its classes are not known."""

    drug: Drug
    labels: list[Label]
    as_of: str = ""
    given: str = ""
    classes_error: ToolError | None = None

    @property
    def name(self) -> str:
        return self.drug.name

    @cached_property
    def texts(self) -> list[tuple[Label, dict[str, str]]]:
        """The labels that are read for other drugs, and their sections; further ones repeat these."""
        return [(label, scanned_sections(label)) for label in leading(self.labels)[:MAX_READ]]


def called(name: str, names: Iterable[str], brands: Iterable[str], classes: Iterable[str]) -> Drug:
    """What labels may call a drug; a brand of few letters or with signs is too easily another word."""
    brands = (brand for brand in brands if brand.isalpha() and len(brand) > 3)
    return Drug(name, tuple(dict.fromkeys(names)), tuple(brands), tuple(classes))


class LiveKnowledge:
    """Answers of the live services.

    Every method ends within `settings.tool_timeout` seconds and raises ToolError in the known ways; an outage is never
    an empty answer. Labels, articles and trials are other people's words: data, never instructions.

    Args:
        settings: base URLs, the deadline, and the home under which answers are kept for a while.
        http: another client, for tests; without one, one with the cache of `settings.home`.
    """

    def __init__(self, settings: Settings, http: Http | None = None):
        self._timeout = settings.tool_timeout
        self._openfda = Service("openFDA", settings.openfda_url, "DOCGEMMA_OPENFDA_URL", 4, 8, 24 * HOUR)
        rxnav = Service("RxNorm", settings.rxnav_url, "DOCGEMMA_RXNAV_URL", 20, 20, 24 * HOUR)
        self._europepmc = Service("Europe PMC", settings.europepmc_url, "DOCGEMMA_EUROPEPMC_URL", 10, 10, 12 * HOUR)
        self._ctgov = Service("ClinicalTrials.gov", settings.ctgov_url, "DOCGEMMA_CTGOV_URL", 1, 4, 12 * HOUR)
        self._http = http or Http(settings.home / "http-cache")
        self._rxnorm = RxNorm(self._http, rxnav)

    def label(self, drug_name: str) -> Answer[DrugLabel]:
        """One label, merged from the drug's labels; [] where RxNorm knows the drug and openFDA has no label of it.

        Raises:
            ToolError: `drug_not_in_database`, `ambiguous_drug_name` with `suggestions`, `invalid_args`, or an outage.
        """
        found = self._find(drug_name, Deadline.after(self._timeout))
        records = [openfda.merge(found.labels, found.name, list(found.drug.classes))] if found.labels else []
        return Answer(records, self._openfda.name, found.as_of)

    def interactions(self, drug_names: list[str]) -> Answer[Interaction]:
        """What the labels say of every pair, both ways, in the labels' own words. A pair without a finding is not in.

        Raises:
            ToolError: as `label`; `drug_not_in_database` also for a drug without a label of which no other label
                speaks, since nothing was read then; an outage where a class could not be looked up and nothing at
                all was found; `invalid_args` for fewer than two different drugs.
        """
        deadline = Deadline.after(self._timeout)
        given = list(dict.fromkeys(name.strip() for name in drug_names))
        with ThreadPoolExecutor(max_workers=max(1, len(given))) as pool:
            found = list(pool.map(lambda name: self._find(name, deadline), given))
        drugs = list({drug.name: drug for drug in found}.values())
        if len(drugs) < 2:
            raise invalid("Fewer than two different drugs were named.", "drug_names")
        pairs = {(a.name, b.name): pair for a, b in combinations(drugs, 2) if (pair := interaction(a, b))}
        self._check_complete(drugs, pairs)
        return Answer(list(pairs.values()), self._openfda.name, min(drug.as_of for drug in drugs))

    def literature(self, query: str, limit: int = 5) -> Answer[Article]:
        """Articles, the most relevant first. Raises ToolError: `invalid_args` or an outage."""
        deadline = Deadline.after(self._timeout)
        found = europepmc.find_articles(self._http, self._europepmc, query, limit, deadline)
        return Answer(found.data, self._europepmc.name, found.as_of)

    def trials(self, condition: str, status: str | None = None, limit: int = 5) -> Answer[Trial]:
        """Trials in the registry's order. Raises ToolError: `invalid_args` (unknown status) or an outage."""
        deadline = Deadline.after(self._timeout)
        found = ctgov.find_trials(self._http, self._ctgov, condition, status, limit, deadline)
        return Answer(found.data, self._ctgov.name, found.as_of)

    def generic_name(self, drug_name: str) -> str | None:
        """RxNorm's ingredient, lower case ("a / b" for a combination), or None for a name that it does not know.

        Raises:
            ToolError: an outage; `ambiguous_drug_name`.
        """
        if not drug_name.strip() or len(drug_name) > MAX_NAME:
            return None
        drug = self._rxnorm.resolve(drug_name.strip(), Deadline.after(self._timeout))
        return drug.generic if drug else None

    def close(self) -> None:
        self._http.close()

    def _find(self, given: str, deadline: Deadline) -> Found:
        """Names, labels and classes of a drug. RxNorm may be down: then the name is searched as it was given."""
        given = checked_name(given)
        drug, down = self._resolve(given, deadline.share(NAMING_SHARE))
        names = [given, *(drug.ingredients if drug and len(drug.ingredients) == 1 else ())]
        fetched = openfda.find_labels(self._http, self._openfda, names, deadline)
        labels = fetched.data
        if not labels and down:
            raise down  # whether this is a drug at all is not known
        if not labels and drug is None:
            raise self._unknown(given)
        name = (drug and drug.generic) or (generic_of(labels) if labels else "") or given.lower()
        classes, classes_error = classes_of(labels), down
        if not classes and drug:
            classes, classes_error = self._classes(drug, deadline)
        called_so = called(name, [given.lower(), *name.split(" / ")], openfda.brands(labels, name), classes)
        return Found(called_so, labels, fetched.as_of, given, None if classes else classes_error)

    def _unknown(self, given: str) -> ToolError:
        """For a name that no service knows: `ambiguous_drug_name` where it is nearly one of the dictionary's."""
        near = load_drug_names().suggest(given)
        missing = ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "RxNorm does not know this drug name.", entity=given)
        return ambiguous(given, near) if near else missing

    def _resolve(self, given: str, deadline: Deadline) -> tuple[DrugName | None, ToolError | None]:
        """The drug, None if unknown; and the outage, if there is one."""
        try:
            return self._rxnorm.resolve(given, deadline), None
        except ToolError as error:
            if error.error_type is ErrorType.AMBIGUOUS_DRUG_NAME:
                raise
            return None, error

    def _classes(self, drug: DrugName, deadline: Deadline) -> tuple[list[str], ToolError | None]:
        try:
            return self._rxnorm.classes(drug, deadline.share(NAMING_SHARE)), None
        except ToolError as error:
            return [], error

    def _check_complete(self, drugs: list[Found], pairs: dict[tuple[str, str], Interaction]) -> None:
        """No finding must mean that labels were read: by name, and by class."""
        for drug in drugs:
            if not drug.labels and not any(drug.name in pair for pair in pairs):
                raise ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "openFDA has no label of a drug.", entity=drug.given)
        missing = next((drug.classes_error for drug in drugs if drug.classes_error), None)
        if missing and not pairs:
            raise missing


def interaction(a: Found, b: Found) -> Interaction | None:
    """The gravest finding of both directions; both are quoted."""
    ways = gravest_of_both(a, b)
    if not ways:
        return None
    _, label, gravest = ways[0]
    return Interaction(
        drugs=(a.name, b.name),
        severity=gravest.severity,
        mechanism=" ".join(quoted(way[0], b if way[0] is a else a, way[2]) for way in ways),
        management=gravest.management or next((way[2].management for way in ways if way[2].management), ""),
        reference=label.reference,
        basis=label_basis(label.known_as, label.version, label.effective),
    )


def gravest_of_both(a: Found, b: Found) -> list[tuple[Found, Label, Finding]]:
    """What the labels of either drug say of the other, at most one finding a direction, the gravest first."""
    ways = [way for way in (gravest_finding(a, b), gravest_finding(b, a)) if way]
    return sorted(ways, key=lambda way: weight(way[2]))


def gravest_finding(own: Found, other: Found) -> tuple[Found, Label, Finding] | None:
    """The gravest that the labels of one drug say of another; of equal ones the leading label's, then the newest's."""
    found = []
    for label, text in own.texts:
        # the label of a combination speaks of all its ingredients as itself
        itself = replace(own.drug, names=(*own.drug.names, *generic_of([label]).split(" / ")))
        if finding := find(text, itself, other.drug):
            found.append((own, label, finding))
    return min(found, key=lambda item: weight(item[2]), default=None)


def quoted(own: Found, other: Found, finding: Finding) -> str:
    of_class = f" of the class of {other.name} ({finding.by_class.split(' [')[0]})" if finding.by_class else ""
    return f"The {own.name} label says{of_class}: “{finding.quote}”"


def checked_name(given: str) -> str:
    given = " ".join(given.split())
    if not any(character.isalpha() for character in given) or len(given) > MAX_NAME:
        raise invalid("A drug name needs letters, and at most 200 characters.", "drug_name")
    return given


def invalid(message: str, field: str) -> ToolError:
    return ToolError(ErrorType.INVALID_ARGS, message, missing_fields=[field])
