"""What pages of the reference share: classes as tables, from the strings under their fields."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple


class Field(NamedTuple):
    """A field of a class, as its source has it."""

    name: str
    type: str
    text: str
    """The string under it; empty where there is none."""


def fields(kind: type[Any]) -> list[Field]:
    """Return the fields of a class of ours, those of the classes that it extends first."""
    found: dict[str, Field] = {}
    for owner in reversed(kind.__mro__):
        if owner.__module__.startswith("bisac."):
            found |= {field.name: field for field in _own_fields(owner)}
    return list(found.values())


def described(kind: type[Any], without: tuple[str, ...] = ()) -> str:
    """Return a class's fields as a table: name, type, what the class says of it."""
    shown = [field for field in fields(kind) if field.name not in without]
    return table(("field", "type", ""), [(f"`{f.name}`", f"`{f.type}`", f.text) for f in shown])


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _own_fields(owner: type[Any]) -> Iterator[Field]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    for field, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = ""
            match after:
                case ast.Expr(ast.Constant(str(doc))):
                    text = " ".join(doc.split())
            yield Field(field.target.id, ast.unparse(field.annotation), text)
