"""Drug names by RxNorm (RxNav): what a name means, and which class it has.

RxNav says "unknown" with a 200 and an empty envelope. Its approximate match is no spelling corrector (its first answer
to "metfromin" is merbromin): suggestions come from the drug dictionary.

Source: lhncbc.nlm.nih.gov/RxNav/APIs. The interaction API of RxNav was discontinued on 2024-01-02.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.http import Deadline, Http, Service, Wire, at

W = TypeVar("W", bound=Wire)
SENSES = 3  # concepts of one name that are looked at


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


@dataclass(frozen=True)
class DrugName:
    """What RxNorm knows a name as: ingredients, lower case, sorted; several in a combination product."""

    ingredients: tuple[str, ...]
    rxcuis: tuple[str, ...]  # of the ingredients

    @property
    def generic(self) -> str | None:
        """ "warfarin", or "metformin / sitagliptin" as RxNorm writes combinations."""
        return " / ".join(self.ingredients) or None


class RxNorm:
    """RxNav's answers, each bounded by the caller's deadline."""

    def __init__(self, http: Http, service: Service):
        self._http, self._service = http, service

    def resolve(self, name: str, deadline: Deadline) -> DrugName | None:
        """The drug of a brand, generic or product name, exact or normalised; None if RxNorm does not know the name.

        Raises:
            ToolError: `ambiguous_drug_name` where the same name means different ingredients; or an outage.
        """
        ids = self._get("rxcui.json", {"name": name, "search": "2"}, Ids(idGroup={}), deadline).ids
        if not ids:
            return None
        senses = {
            tuple(sorted(found.items())) for rxcui in ids[:SENSES] if (found := self._ingredients(rxcui, deadline))
        }
        if len(senses) > 1:
            raise ambiguous(name, sorted(" / ".join(item for item, _ in sense) for sense in senses))
        sense = senses.pop() if senses else ()
        return DrugName(tuple(item for item, _ in sense), tuple(rxcui for _, rxcui in sense))

    def _ingredients(self, rxcui: str, deadline: Deadline) -> dict[str, str]:
        """Name to rxcui of the ingredients of a concept; an ingredient is its own."""
        related = self._get(f"rxcui/{rxcui}/related.json", {"tty": "IN"}, Related(), deadline)
        found = [item for group in related.groups if group.tty == "IN" for item in group.conceptProperties]
        if not found:
            own = self._get(f"rxcui/{rxcui}/properties.json", {}, Properties(), deadline).properties
            found = [own] if own.tty in ("IN", "PIN", "MIN") else []
        return {item.name.lower(): item.rxcui for item in found if item.name}

    def classes(self, drug: DrugName, deadline: Deadline) -> list[str]:
        """FDA's established classes and mechanisms of a single-ingredient drug, "Vitamin K Antagonist [EPC]"."""
        if len(drug.ingredients) != 1:
            return []
        params = {"rxcui": drug.rxcuis[0]}
        found = self._get("rxclass/class/byRxcui.json", params, Classes(), deadline).items
        kinds = {"EPC": "EPC", "MOA": "MoA"}
        ordered = sorted((item for item in found if item.kind in kinds), key=lambda item: item.kind)
        return list(dict.fromkeys(f"{item.name} [{kinds[item.kind]}]" for item in ordered))

    def _get(self, path: str, params: dict[str, str], empty: W, deadline: Deadline) -> W:
        """An answer in the shape of `empty`, which is also what RxNav's own 404 means."""

        def missing(body: bytes) -> W:
            if body.strip().lower() not in (b"", b"not found"):
                raise ValueError("not RxNav's 404")
            return empty

        return self._http.get(self._service, path, params, type(empty).model_validate, deadline, missing=missing).data


def ambiguous(name: str, suggestions: list[str]) -> ToolError:
    options = [{"id": item, "label": item} for item in suggestions]
    message = "A drug name has more than one possible meaning."
    return ToolError(ErrorType.AMBIGUOUS_DRUG_NAME, message, entity=name, suggestions=suggestions, options=options)
