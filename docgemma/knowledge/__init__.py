"""Medical facts: drug labels, interactions, literature, trials; from the offline snapshot or the live services."""
