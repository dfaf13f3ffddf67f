"""Gymnasium environments on the host: in this process, in processes of their own, or in EnvPool."""
