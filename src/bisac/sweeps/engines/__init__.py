"""Where the runs of a sweep are trained: on this machine or on a Ray cluster."""
