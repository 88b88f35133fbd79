"""Looking at an attached image with the loaded model. Without vision it reports the header, never findings."""

from typing import Any

from docgemma.errors import ErrorType, ModelError, NoVisionError, ToolError, UsageError
from docgemma.images import describe_header, load_slices, read_header
from docgemma.llm.base import LLM, Prompt
from docgemma.prompts import generation, system
from docgemma.schemas import ImageAnalysisArgs, ImageFindings
from docgemma.state import ImageRef
from docgemma.text.words import clinical
from docgemma.tools.base import Tool, ToolContext, ToolOutput, bound, sentence
from docgemma.tools.untrusted import clean


def describe_image(llm: LLM, image: ImageRef, query: str, node: str = "analyze_medical_image") -> dict[str, Any]:
    """Look at an image once.

    Returns:
        `modality`, `findings: list[str]`, `impression`, `confidence` (0 to 1), `confidence_word` (high, medium, low),
        `requires_specialist_review: bool`, `header` (see `images.load_image`), `calls` (the physical generations, as
        `Call.as_dict()`), and `formatted`, the text for prompts and clinicians.

    Raises:
        UsageError: the file cannot be read as an image.
        NoVisionError: the model cannot look at images.
        ModelError: it could, and did not answer.
    """
    if not llm.vision:
        raise NoVisionError(f"The model {llm.name} cannot look at images.", hint="Load one that can: --model medgemma.")
    pictures, header = load_slices(image["path"])
    user = f"{describe_header(header)} {_shown(header)}\n\nClinician's question: {query}"
    prompt = Prompt(user=user, system=system("input_assembly"), images=pictures)
    answer = llm.structured(prompt, ImageFindings, generation("input_assembly"), node=node)
    found = clean(answer.value.model_dump())
    found["modality"] = _known_modality(header) or found["modality"]  # the header knows better than the model
    found["confidence_word"] = confidence_word(found["confidence"])
    found |= {"header": header, "calls": [call.as_dict() for call in answer.calls]}
    return found | {"formatted": format_findings(found)}


def confidence_word(confidence: float) -> str:
    return "high" if confidence >= 0.8 else "medium" if confidence >= 0.5 else "low"


def format_findings(data: dict[str, Any]) -> str:
    kind = clinical("imaging")["kinds"][data["modality"]]
    return bound(
        [
            f"Impression of the {kind}: {sentence(data['impression'])}",
            *(f"Image finding: {sentence(item)}" for item in data["findings"]),
            f"Confidence of the image reading: {data['confidence_word']} ({data['confidence']:.2f}).",
            _shown(data["header"]),
            "Specialist review is advised." if data["requires_specialist_review"] else "",
        ]
    )


def _shown(header: dict[str, Any]) -> str:
    """Which part of a file with several frames was looked at."""
    return f"Looked at {header['slices']} of its {header['frames']} slices." if header["frames"] > 1 else ""


def analyze_medical_image(args: ImageAnalysisArgs, context: ToolContext) -> ToolOutput:
    """What the attached image shows. Data: as `describe_image` returns, with `query` (`IMAGE_ANALYSIS.data`).

    Raises:
        ToolError: `missing_required_args` (no image attached), `invalid_args` (not a readable image; `reason`, one line
            for the clinician), `no_vision` (with `header` and `header_text`, what the header alone tells),
            `invalid_response` (the model's answer could not be used).
    """
    image = context.image
    if image is None:
        raise ToolError(ErrorType.MISSING_REQUIRED_ARGS, "no image attached", missing_fields=["image"])
    try:
        if context.llm is None or not context.llm.vision:
            header = read_header(image["path"])
            raise ToolError(ErrorType.NO_VISION, "no vision", header=header, header_text=describe_header(header))
        found = describe_image(context.llm, image, args.query)
    except UsageError as error:
        raise ToolError(ErrorType.INVALID_ARGS, str(error), reason=error.line()) from error
    except ModelError as error:
        raise ToolError(ErrorType.INVALID_RESPONSE, str(error)) from error
    calls = found.pop("calls")
    return ToolOutput({"query": args.query} | found, f"{context.llm.name} image reading", calls=calls)


def _known_modality(header: dict[str, Any]) -> str | None:
    known = clinical("imaging")["kind_of"].get(header.get("modality", ""))
    return "chest_xray" if known == "xray" and header.get("body_part") == "CHEST" else known


IMAGE_ANALYSIS = Tool(
    name="analyze_medical_image",
    label="Image Analysis",
    signature="(query: str)",
    description=(
        "Analyze an attached medical image (X-ray, CT, MRI, histopathology slide, etc.) for findings relevant to the "
        "specified query. Use when a clinician shares a medical image and asks for analysis or interpretation."
    ),
    args=ImageAnalysisArgs,
    example="Does this chest X-ray show a pneumothorax?",
    run=analyze_medical_image,
    format=format_findings,
    needs="image",
    data={
        "query": str, "modality": str, "findings": [str], "impression": str, "confidence": float,
        "confidence_word": str, "requires_specialist_review": bool, "header": dict[str, Any], "formatted": str,
    },
)  # fmt: skip
