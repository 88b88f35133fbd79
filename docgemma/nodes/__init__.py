"""One node a file, each a function from the state to the keys it changed."""
