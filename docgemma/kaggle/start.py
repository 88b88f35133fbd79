"""What the kernel does first: load MedGemma on every GPU there is, or the edge model, and say which and why."""

import os

from docgemma.errors import DocGemmaError
from docgemma.llm.base import LLM
from docgemma.llm.medgemma import find_weights, nvidia_device
from docgemma.notebook import shared_model
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
            print(loaded(shared_model(name, read_settings())))
            return name
        except DocGemmaError as error:
            notice = error.line()
    if notice:
        print(f"Notice: {notice} {ON_CPU}")
        name = "edge"
    print(loaded(shared_model(name, read_settings())))
    return name


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
    return f"{llm.name} on {', '.join(places)}" + (f" ({how})" if how else "") + "."


def _gpus() -> int:
    from docgemma.llm.pool import gpu_count

    try:
        return gpu_count()
    except ImportError:  # loading says what is missing
        return 1
