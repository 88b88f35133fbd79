"""Drug labels from openFDA: the query, the shape of the answer, and many labels of a drug made into one.

openFDA says "No matches found!" with a 404: that is an empty answer. It cannot find labels that FDA has not
harmonised (their `openfda` block is empty), so an empty answer is not proof that no label exists.

Source: open.fda.gov/apis/drug/label.
"""

import re
from collections.abc import Iterable

from pydantic import Field

from docgemma.http import Deadline
from docgemma.knowledge.base import DrugLabel, LabelSection
from docgemma.knowledge.drug_names import without_end
from docgemma.knowledge.http import Fetched, Service, Wire, at
from docgemma.knowledge.label_text import boxed, items, section, sentences
from docgemma.text.words import listed

LIMIT = 20  # labels of one query, about 2 MB
DAILYMED = "https://dailymed.nlm.nih.gov/dailymed/drugInfo.cfm?setid="
FIELDS = ("generic_name", "brand_name", "substance_name")
# the largest amount a day, in the words of section 2; several different ones mean that it depends
MAXIMUM = re.compile(
    r"(?:maximum|max\.?)(?: recommended)?(?: total)? daily (?:dose|dosage)(?: of [\w\s]{1,40}?)?(?: is|:| should not "
    r"exceed)?(?: of)?\s+(\d[\d,]*(?:\.\d+)?)\s?(mg|mcg|g)\b(?!/kg|\s?/)"
    r"|(?:not|should not) exceed\s+(\d[\d,]*(?:\.\d+)?)\s?(mg|mcg|g) (?:per day|daily|a day|in 24 hours|/day)",
    re.IGNORECASE,
)
NOT_ADULT = re.compile(
    r"pediatric|child|renal|hepatic|kidney|liver|impair|elderly|geriatric|years|weeks|with (?!meals|food)", re.I
)


class OpenFda(Wire):
    """The harmonised part of a label: names and classes. {} where FDA has not harmonised it."""

    generic_name: tuple[str, ...] = ()
    brand_name: tuple[str, ...] = ()
    substance_name: tuple[str, ...] = ()
    pharm_class_epc: tuple[str, ...] = ()
    pharm_class_cs: tuple[str, ...] = ()
    pharm_class_moa: tuple[str, ...] = ()
    route: tuple[str, ...] = ()
    spl_set_id: tuple[str, ...] = ()


class Label(Wire):
    """One label as openFDA sends it: a section is a list of strings, and absent where the label has none."""

    set_id: str = ""
    version: str = ""
    effective_time: str = ""
    openfda: OpenFda = Field(default_factory=OpenFda)
    boxed_warning: tuple[str, ...] = ()
    contraindications: tuple[str, ...] = ()
    warnings_and_cautions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    precautions: tuple[str, ...] = ()
    drug_interactions: tuple[str, ...] = ()
    do_not_use: tuple[str, ...] = ()
    ask_doctor_or_pharmacist: tuple[str, ...] = ()
    dosage_and_administration: tuple[str, ...] = ()

    @property
    def ingredients(self) -> list[str]:
        """Active ingredients, lower case; more than one in a combination product."""
        generic = " ".join(self.openfda.generic_name).lower()
        named = self.openfda.substance_name or re.split(r"\s*[,;/]\s*(?:and )?|\s+and\s+", generic)
        return [name.lower() for name in named if name]

    @property
    def effective(self) -> str | None:
        """ISO date of the version."""
        day = self.effective_time
        return f"{day[:4]}-{day[4:6]}-{day[6:]}" if len(day) == 8 and day.isdecimal() else None

    @property
    def product_names(self) -> list[str]:
        """Names that mean the product as a whole: an ingredient of a combination is not one."""
        whole = self.openfda.substance_name if len(self.ingredients) == 1 else ()
        brands = [name.translate({ord("®"): "", ord("™"): ""}) for name in self.openfda.brand_name]
        return [*whole, *self.openfda.generic_name, *brands]

    @property
    def known_as(self) -> str:
        """The set id, "" where none is given."""
        return self.set_id or next(iter(self.openfda.spl_set_id), "")

    @property
    def reference(self) -> str:
        return DAILYMED + self.known_as if self.known_as else ""


class Page(Wire):
    """An answer of /drug/label.json."""

    last_updated: str | None = at("meta.last_updated", default=None)
    results: list[Label]


class Refusal(Wire):
    """openFDA's body of an error."""

    code: str = at("error.code")


def find_labels(service: Service, names: Iterable[str], deadline: Deadline) -> Fetched[list[Label]]:
    """Labels of a drug by any of its names, the leading one first, and the date of openFDA's data; [] if it has none.

    Labels with a boxed warning are asked for by themselves: among hundreds of labels of one drug, the newest may all be
    over-the-counter or combination products, and a missed boxed warning would read as none.

    Raises:
        ToolError: an outage, in one of the known ways.
    """
    names = list(dict.fromkeys(names))
    query = search(names)
    warned = _query(service, f"{query} AND _exists_:boxed_warning", deadline)
    newest = _query(service, query, deadline)
    chosen = choose([*warned.data.results, *newest.data.results], names)
    return Fetched(chosen, newest.data.last_updated or newest.as_of)


def search(names: list[str]) -> str:
    """The query for any of the names in any of the name fields. A name is one quoted phrase, whatever it contains."""
    phrases = [re.sub(r"[^\w'+.-]+", " ", name).strip() for name in names]
    terms = [f'openfda.{field}:"{phrase}"' for phrase in phrases if phrase for field in FIELDS]
    return f"({' OR '.join(terms)})"


def _query(service: Service, query: str, deadline: Deadline) -> Fetched[Page]:
    params = {"search": query, "sort": "effective_time:desc", "limit": str(LIMIT)}
    return service.get("drug/label.json", params, Page.model_validate, deadline, missing=nothing_found)


def nothing_found(body: bytes) -> Page:
    """An empty page, if the 404 is openFDA's own; ValueError for any other (a gateway, a wrong address)."""
    if Refusal.model_validate_json(body).code != "NOT_FOUND":
        raise ValueError("another 404")
    return Page(results=[])


def choose(labels: Iterable[Label], names: list[str]) -> list[Label]:
    """Labels that are of this drug, single-ingredient ones if there are any, newest first.

    A phrase search finds more than was meant: "estradiol" finds ethinyl estradiol, "aspirin" the brand Aspirin Free.
    """
    wanted = tuple(name.lower() for name in names)
    unique = {label.reference or id(label): label for label in labels}.values()
    of_drug = [label for label in unique if any(_begins(part, wanted) for part in label.ingredients)]
    exact = [label for label in unique if any(name.lower() in wanted for name in label.openfda.brand_name)]
    of_brand = exact or [
        label for label in unique if any(_begins(name.lower(), wanted) for name in label.openfda.brand_name)
    ]
    found = of_drug or of_brand
    single = [label for label in of_drug if len(label.ingredients) == 1]
    if not single and of_brand:  # the brand of a combination was asked for
        found = of_brand
    return sorted(single or found, key=lambda label: label.effective_time, reverse=True)


def _begins(text: str, wanted: tuple[str, ...]) -> bool:
    return any(text == name or text.startswith(f"{name} ") for name in wanted)


def leading(labels: list[Label]) -> list[Label]:
    """The newest label with a boxed warning goes first, else the newest with contraindications or warnings."""
    lead = next((label for label in labels if label.boxed_warning), None) or next(
        (label for label in labels if label.contraindications or label.warnings or label.warnings_and_cautions), None
    )
    return [lead, *(label for label in labels if label is not lead)] if lead else labels


def merge(labels: list[Label], name: str, classes: list[str]) -> DrugLabel:
    """One label out of many of the same drug: each section from the leading label, else from the newest that has it.

    `reference` and `effective` are the leading label's. Where there are only combination products, `name` says so: a
    warning of the combination is not one of the ingredient that was asked for.
    """
    labels = leading(labels)
    combination = len(labels[0].ingredients) > len(name.split(" / "))
    return DrugLabel(
        name=generic_of(labels) if combination else name,
        brand_names=brands(labels, name),
        drug_classes=[item.split(" [")[0] for item in classes],
        boxed_warning=boxed(_first(labels, "boxed_warning")),
        contraindications=items(section(_first(labels, "contraindications", "do_not_use"))),
        warnings=items(section(_first(labels, "warnings_and_cautions", "warnings", "precautions"))),
        interactions=section(_first(labels, "drug_interactions", "ask_doctor_or_pharmacist")),
        max_daily_dose=max_daily_dose(section(_first(labels, "dosage_and_administration"))),
        reference=labels[0].reference,
        effective=labels[0].effective,
        set_id=labels[0].known_as,
        version=labels[0].version,
    )


def _first(labels: list[Label], *fields: str) -> tuple[str, ...]:
    return next((part for field in fields for label in labels if (part := getattr(label, field))), ())


def brands(labels: list[Label], name: str) -> list[str]:
    """Brand names that say more than the generic name does."""
    found = [brand.title() if brand.isupper() else brand for label in labels for brand in label.openfda.brand_name]
    return list({brand.lower(): brand for brand in found if name not in brand.lower()}.values())


def classes_of(labels: list[Label]) -> list[str]:
    """Established, chemical and mechanism classes over all labels, as FDA writes them."""
    kinds = ("pharm_class_epc", "pharm_class_cs", "pharm_class_moa")
    return list(dict.fromkeys(item for kind in kinds for label in labels for item in getattr(label.openfda, kind)))


def generic_of(labels: list[Label]) -> str:
    """The ingredient without its salt, from the label itself; ingredients of a combination joined by " / "."""
    return " / ".join(sorted(without_end(name, listed("drug_words", "salts")) for name in labels[0].ingredients))


def max_daily_dose(text: str) -> str:
    """The adult maximum a day, "2550 mg", where the label states exactly one without conditions; else ""."""
    found = set()
    for sentence in sentences(text):
        if not NOT_ADULT.search(sentence):
            found |= {" ".join(filter(None, groups)).replace(",", "") for groups in MAXIMUM.findall(sentence)}
    return found.pop() if len(found) == 1 else ""


def scanned_sections(labels: list[Label]) -> dict[str, LabelSection]:
    """The sections that may name other drugs; drugs without section 7 say it among their warnings."""
    fields = ["contraindications", "boxed_warning", "drug_interactions"]
    if not _first(labels, "drug_interactions"):
        fields += ["do_not_use", "ask_doctor_or_pharmacist", "warnings_and_cautions", "warnings", "precautions"]
    return sections_of(labels, fields)


def sections_of(labels: list[Label], fields: list[str]) -> dict[str, LabelSection]:
    """Each section of the leading label, else of the newest that has it."""
    labels = leading(labels)
    found = {field: next((label for label in labels if getattr(label, field)), None) for field in fields}
    return {
        field: LabelSection(
            section(getattr(label, field)), label.known_as, label.version, label.effective, label.reference
        )
        for field, label in found.items()
        if label
    }
