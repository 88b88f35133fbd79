"""The edge model's adapter: training data, training, evaluation. Only `prompts.py` is used at run time."""
