"""What a terminal shows of a run and of a sweep."""
