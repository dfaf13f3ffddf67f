"""A search for good hyperparameters: where to look (space), what was begun (record), what was tried (study), and how it
is done (search).

Every trial is a plain run in a folder of its own, trained by the engines of sweeps. What is tried next is for Optuna to
say, which is known in study.py alone.
"""
