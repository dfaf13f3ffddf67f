"""A run in time and on disk: from its first step to what it leaves behind."""
