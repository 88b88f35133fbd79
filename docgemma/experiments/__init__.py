"""Measurements: golden sets through the whole agent, suites of conditions for what a model is asked at each step."""
