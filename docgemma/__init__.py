"""DocGemma: an open, offline-capable clinical agent for small medical language models."""

__version__ = "0.1.0"
