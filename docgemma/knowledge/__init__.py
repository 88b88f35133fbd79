"""Medical facts: drug labels, interactions, literature, trials; from the offline snapshot or the live services."""

from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.sources import open_knowledge

__all__ = ["Knowledge", "open_knowledge"]
