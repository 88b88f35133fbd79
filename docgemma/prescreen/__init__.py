"""Find the clinical trials that a patient may be eligible for: search under a budget, rank, screen."""
