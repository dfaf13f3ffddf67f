"""Environments: the edge between Gymnasium's objects and our arrays. Importing this registers our own tasks."""

from bisac.envs import tasks as tasks
