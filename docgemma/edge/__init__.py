"""What takes a language model's place where the reader works: each question of the graph, settled by code."""
