"""Simulators that are installed only where they are wanted: importing them, and saying what is missing."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from bisac.errors import BisacError

Made = TypeVar("Made")


def imported(module: str, extra: str) -> Any:
    """Return a module of an extra; one sentence where it is missing, or does not fit what else is installed."""
    install = f"pip install '.[{extra}]'"
    try:
        return quietly(lambda: import_module(module))
    except ModuleNotFoundError as error:
        raise BisacError(f"{extra} tasks need {error.name}; in bisac's folder: {install}.") from error
    except Exception as error:  # a version that asks JAX or MuJoCo for what they no longer have
        told = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise BisacError(
            f"the {extra} that is installed does not fit the other packages ({told}); in bisac's folder: "
            f"{install} --upgrade."
        ) from error


def quietly(make: Callable[[], Made]) -> Made:
    """Return what `make` gives, without the warnings that simulators give their own makers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()
