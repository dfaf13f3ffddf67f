"""Where the runs of a sweep are trained: on this machine or on a Ray cluster.

An engine is given planned runs one by one and says how their processes ended; it knows neither the sweep nor what a run
has learned.
"""
