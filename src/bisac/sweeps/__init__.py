"""Many runs over one folder: what to train (plan), what was trained (record), and how it is done (execute, engines).

Runs share nothing but the disk. What they mean is for the report and the figures to say, and what a terminal shows of
them for the display: neither is known here.
"""
