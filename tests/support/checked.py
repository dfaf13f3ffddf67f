"""The run-time type checker of the tests: an int may stand where a float is asked for, as Python's typing has it."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
