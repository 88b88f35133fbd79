"""The revenue-cycle agent: clinical evidence, quoted word for word, checked against a payer's policy."""
