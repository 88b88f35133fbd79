"""Wiring only: which node follows which."""
