"""What measurements share: intervals and tests, and work that is spread over processes."""
