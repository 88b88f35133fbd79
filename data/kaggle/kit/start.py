"""What the kernel does first: load MedGemma on every GPU there is, or the edge model, and say which and why."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from docgemma.errors import DocGemmaError, ModelError, kind_and_place
from docgemma.llm.base import LLM, GenConfig, Prompt
from docgemma.llm.medgemma import find_weights, nvidia_device
from docgemma.notebook import release, shared_model
from docgemma.prompts import system
from docgemma.schemas import IntentClassification
from docgemma.settings import Settings, read_settings

ON_CPU = "The small edge model answers instead, on the CPU; it cannot look at images."


def ready() -> str:
    """Load the model that the cells below share; returns its name for them, "medgemma" or "edge".

    Raises:
        ConfigError: not even the edge model can be loaded.
    """
    settings = read_settings()
    name = settings.model or "medgemma"
    notice = "" if settings.model else missing(settings)
    if name == "medgemma" and not notice:
        os.environ["DOCGEMMA_GPUS"] = str(max(1, _gpus()))
        try:
            print(loaded(trial(shared_model(name, read_settings()))))
            return name
        except DocGemmaError as error:
            notice = error.line()
            release()
    if notice:
        print(f"Notice: {notice} {ON_CPU}")
        name = "edge"
    llm = shared_model(name, read_settings())
    print(loaded(llm if name == "edge" else trial(llm)))
    return name


def trial(llm: LLM) -> LLM:
    """Generate once on each copy of a language model, so that whatever is wrong with the fast decoding shows now and
    not in a section; that copy then decodes plainly.

    Raises:
        ModelError: plain decoding fails too, or says nothing.
    """
    for copy in getattr(llm, "copies", [llm] if llm.profile == "full" else []):
        try:
            _generate(copy)
        except ModelError:
            if not getattr(copy, "fast", False):
                raise
            copy.fast = False
            _generate(copy)
    return llm


def _generate(llm: LLM) -> None:
    asked = Prompt(user="Clinician's question: What is hypertension?", system=system("intent_classify"))
    llm.structured(asked, IntentClassification, GenConfig(max_tokens=256), node="trial")
    if not llm.text(asked, GenConfig(max_tokens=16), node="trial").value:  # Gemma 3 in float16 answers only padding
        raise ModelError(f"The model {llm.name} says nothing.", hint="Restart the session and run all cells again.")


@contextmanager
def going_on() -> Iterator[None]:
    """Around the cells of a section: what fails there is said in one line, and the run goes on to the next."""
    try:
        yield
    except Exception as error:
        line = error.line() if isinstance(error, DocGemmaError) else kind_and_place(error)
        print(f"This step stopped: {line}")


def missing(settings: Settings) -> str:
    """What MedGemma lacks here, and how to add it; empty where it lacks nothing."""
    if not nvidia_device():
        return "there is no GPU (Settings > Accelerator > GPU T4 x2)."
    if not find_weights(settings.home):
        return "MedGemma is not attached (Add input > Models > google/medgemma, variation medgemma-1.5-4b-it)."
    return ""


def loaded(llm: LLM) -> str:
    """One line: what, how, where."""
    about = llm.describe()
    places = about.get("devices") or [about.get("device") or "CPU"]
    how = ", ".join(str(about[key]) for key in ("quantization", "compute") if about.get(key))
    decoding = f", decoded {about['decoding']}" if about.get("decoding") else ""
    return f"{llm.name} on {', '.join(places)}" + (f" ({how})" if how else "") + f"{decoding}."


def _gpus() -> int:
    from docgemma.llm.pool import gpu_count

    try:
        return gpu_count()
    except ImportError:  # loading says what is missing
        return 1
