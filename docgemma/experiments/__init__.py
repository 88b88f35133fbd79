"""Measurements: golden sets through the whole agent, and suites of conditions for what a model is asked at each step."""
