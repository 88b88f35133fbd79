"""Drug names by RxNorm (RxNav): what a name means, and which class it has.

RxNav says "unknown" with a 200 and an empty envelope. Its approximate match is no spelling corrector (its first answer
to "metfromin" is merbromin): suggestions come from the drug dictionary.

Source: lhncbc.nlm.nih.gov/RxNav/APIs. The interaction API of RxNav was discontinued on 2024-01-02.
"""

from typing import Any, TypeVar

from docgemma.errors import ErrorType, ToolError
from docgemma.http import Deadline
from docgemma.knowledge.http import Service, Wire, at

W = TypeVar("W", bound=Wire)
SENSES = 3  # concepts of one name that are looked at
KINDS = {"EPC": "EPC", "MOA": "MoA"}  # FDA's established classes, then mechanisms


class Ids(Wire):
    """/rxcui.json; the envelope is there also when it is empty, so that an outage is not an unknown name."""

    idGroup: dict[str, Any]
    ids: tuple[str, ...] = at("idGroup.rxnormId", default=())


class Concept(Wire):
    rxcui: str = ""
    name: str = ""
    tty: str = ""


class ConceptGroup(Wire):
    tty: str = ""
    conceptProperties: tuple[Concept, ...] = ()


class Related(Wire):
    """/rxcui/{id}/related.json"""

    groups: tuple[ConceptGroup, ...] = at("relatedGroup.conceptGroup", default=())


class Properties(Wire):
    """/rxcui/{id}/properties.json"""

    properties: Concept = Concept()


class DrugClass(Wire):
    name: str = at("rxclassMinConceptItem.className", default="")
    kind: str = at("rxclassMinConceptItem.classType", default="")


class Classes(Wire):
    """/rxclass/class/byRxcui.json"""

    items: tuple[DrugClass, ...] = at("rxclassDrugInfoList.rxclassDrugInfo", default=())


def resolve(service: Service, name: str, deadline: Deadline) -> dict[str, str] | None:
    """The ingredients of a brand, generic or product name, lower case and sorted, each with its rxcui.

    None if RxNorm does not know the name.

    Raises:
        ToolError: `ambiguous_drug_name` where the same name means different ingredients; or an outage.
    """
    ids = _get(service, "rxcui.json", {"name": name, "search": "2"}, Ids(idGroup={}), deadline).ids
    senses = [sense for rxcui in ids[:SENSES] if (sense := _ingredients(service, rxcui, deadline))]
    if any(sense != senses[0] for sense in senses):
        raise ambiguous(name, sorted({" / ".join(sense) for sense in senses}))
    return senses[0] if senses else ({} if ids else None)


def _ingredients(service: Service, rxcui: str, deadline: Deadline) -> dict[str, str]:
    """Name to rxcui of the ingredients of a concept; an ingredient is its own."""
    related = _get(service, f"rxcui/{rxcui}/related.json", {"tty": "IN"}, Related(), deadline)
    found = [item for group in related.groups if group.tty == "IN" for item in group.conceptProperties]
    if not found:
        own = _get(service, f"rxcui/{rxcui}/properties.json", {}, Properties(), deadline).properties
        found = [own] if own.tty in ("IN", "PIN", "MIN") else []
    return dict(sorted((item.name.lower(), item.rxcui) for item in found if item.name))


def classes(service: Service, rxcui: str, deadline: Deadline) -> list[str]:
    """FDA's established classes and mechanisms of an ingredient, "Vitamin K Antagonist [EPC]"."""
    found = _get(service, "rxclass/class/byRxcui.json", {"rxcui": rxcui}, Classes(), deadline).items
    ordered = sorted((item for item in found if item.kind in KINDS), key=lambda item: item.kind)
    return list(dict.fromkeys(f"{item.name} [{KINDS[item.kind]}]" for item in ordered))


def _get(service: Service, path: str, params: dict[str, str], empty: W, deadline: Deadline) -> W:
    """An answer in the shape of `empty`, which is also what RxNav's own 404 means."""

    def missing(body: bytes) -> W:
        if body.strip().lower() not in (b"", b"not found"):
            raise ValueError("not RxNav's 404")
        return empty

    return service.get(path, params, type(empty).model_validate, deadline, missing=missing).data


def ambiguous(name: str, suggestions: list[str]) -> ToolError:
    options = [{"id": item, "label": item} for item in suggestions]
    message = "A drug name has more than one possible meaning."
    return ToolError(ErrorType.AMBIGUOUS_DRUG_NAME, message, entity=name, suggestions=suggestions, options=options)
