"""The Kaggle kernel: its metadata, its one notebook, the folder that is pushed, and what it does first over there."""
