"""Language models behind one small protocol. This package knows nothing of medicine."""

from docgemma.llm.load import load_llm

__all__ = ["load_llm"]
