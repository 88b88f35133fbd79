"""Fit the edge router's weights to the labelled questions: `python data/rcm/router.py` writes router.npy.

A ridge regression from a question's meaning (the last and an early layer of the reader) to the intents. Run it after a
change of questions.yaml or of the reader; a test compares.
"""

import numpy as np

from docgemma.paths import data_file
from docgemma.rcm.scope import INTENTS, meaning
from docgemma.rcm.sentences import lists
from docgemma.reading.reader import load_reader

SMOOTH = 0.3  # of the ridge regression


def fitted() -> np.ndarray:
    """(meaning and a constant, intents), float32."""
    known = [(question, intent) for intent in INTENTS for question in lists("questions")["shown"][intent]]
    told = meaning([question for question, _ in known], load_reader(data_file("edge", "reader.npz")))
    truth = np.array([[intent == name for name in INTENTS] for _, intent in known], dtype=np.float32)
    return np.linalg.solve(told.T @ told + SMOOTH * np.eye(told.shape[1]), told.T @ truth).astype(np.float32)


if __name__ == "__main__":
    np.save(data_file("rcm", "questions.yaml").with_name("router.npy"), fitted())
