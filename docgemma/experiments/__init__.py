"""Measurements of the whole agent: sets of questions with what has to come of them, and what the figures say."""
