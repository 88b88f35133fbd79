"""Is this dict a FHIR R4 resource? Asked of fhir.resources, whose R4B models cover R4 for everything written here
(R4B changed no element of the resources in a chart)."""

from typing import Any

from docgemma.errors import ErrorType, ToolError

MAX_PROBLEMS = 3
ABSTRACT = frozenset({"Resource", "DomainResource"})


def validate_resource(resource: Any) -> None:
    """Check structure, types, required elements and the closed code lists of the top level.

    Raises:
        ToolError: `invalid_args`, naming the faulty elements and never their content.
    """
    if problems := problems_of(resource):
        fields = [field for field, _ in problems]
        shown = "; ".join(f"{field}: {reason}" for field, reason in problems[:MAX_PROBLEMS])
        kind = resource.get("resourceType", "resource") if isinstance(resource, dict) else "resource"
        raise ToolError(ErrorType.INVALID_ARGS, f"Not a valid FHIR {kind}: {shown}", missing_fields=fields)


def problems_of(resource: Any) -> list[tuple[str, str]]:
    """(element, what is wrong with it); [] if the resource is valid."""
    # a quarter of a second, so only where something is written
    from fhir.resources.R4B import get_fhir_model_class
    from fhir.resources.R4B.resource import Resource
    from pydantic import ValidationError

    if not isinstance(resource, dict) or not isinstance(resource.get("resourceType"), str):
        return [("resourceType", "missing")]
    try:
        model = get_fhir_model_class(resource["resourceType"])
    except (LookupError, ImportError, ValueError):
        model = None
    # HumanName has a model and is no resource; DomainResource is only what resources have in common
    if model is None or not issubclass(model, Resource) or resource["resourceType"] in ABSTRACT:
        return [("resourceType", "unknown in FHIR R4")]
    try:
        model.model_validate(resource)
    except ValidationError as error:
        # `input` is left out on purpose: it is patient data
        return [(".".join(map(str, item["loc"])) or "resource", _reason(item)) for item in error.errors()]
    return _unknown_codes(model, resource)


def _reason(item: Any) -> str:
    if item["type"].endswith("missing"):
        return "missing"
    if not item["loc"]:
        return "a choice such as value[x] is missing, or made twice"
    return "not an element of FHIR R4" if item["type"] == "extra_forbidden" else "malformed"


def _unknown_codes(model: Any, resource: dict[str, Any]) -> list[tuple[str, str]]:
    # fhir.resources lists the closed code sets and does not enforce them
    found = []
    for name, info in model.model_fields.items():
        codes = (info.json_schema_extra or {}).get("enum_values") if isinstance(info.json_schema_extra, dict) else None
        value = resource.get(info.alias or name)
        if codes and isinstance(value, str) and value not in codes:
            found.append((name, f"must be one of {', '.join(codes)}"))
    return found
