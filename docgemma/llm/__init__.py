"""Language models behind one small protocol. This package knows nothing of medicine."""
