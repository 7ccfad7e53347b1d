"""The SQL of the expressions that reports use, for the embedded engine.

Ibis compiles any expression for any engine: it rewrites the whole tree several times, which takes longer than most
queries of a small run, and loads the dialects of all its engines. Here every operation is a piece of text, nested like
the expression; the optimizer of the engine does the rest. What is not here is left to Ibis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.operations as ops

TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "string": "VARCHAR",
}
"""Types of Ibis that columns of requests and calls have."""

INFIX = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Modulus": "%",
    "Equals": "=",
    "NotEquals": "<>",
    "Less": "<",
    "LessEqual": "<=",
    "Greater": ">",
    "GreaterEqual": ">=",
    "And": "AND",
    "Or": "OR",
    "BitwiseAnd": "&",
    "BitwiseLeftShift": "<<",
    "BitwiseRightShift": ">>",
}
SEVERAL = {"Coalesce": "COALESCE", "Greatest": "GREATEST", "Least": "LEAST"}
"""Functions of any number of values."""

OF_ONE = {
    "Abs": "ABS({})",
    "Ceil": "CAST(CEIL({}) AS BIGINT)",
    "Floor": "CAST(FLOOR({}) AS BIGINT)",
    "IsNull": "({} IS NULL)",
    "Log10": "LOG10({})",
    "Log2": "LOG(2, {})",
    "Negate": "(-{})",
    "Not": "(NOT {})",
    "NotNull": "({} IS NOT NULL)",
}
REDUCTIONS = {"Any": "BOOL_OR", "Count": "COUNT", "Max": "MAX", "Mean": "AVG", "Min": "MIN", "Sum": "SUM"}


class UnknownOperationError(Exception):
    """An operation that only Ibis compiles."""


def sql_of(of: ops.Relation) -> str:
    """A query with the rows of a relation. Raises UnknownOperationError."""
    build = _RELATIONS.get(type(of).__name__)
    if build is None:
        raise UnknownOperationError(type(of).__name__)
    return build(of)


def _table(of: Any) -> str:
    parts = (of.namespace.catalog, of.namespace.database, of.name)
    return f"SELECT * FROM {'.'.join(_quoted(part) for part in parts if part)}"


def _project(of: Any) -> str:
    return f"SELECT {_named(of.values)} FROM {_from(of.parent)}"


def _filter(of: Any) -> str:
    return f"SELECT * FROM {_from(of.parent)} WHERE {' AND '.join(map(_value, of.predicates))}"


def _aggregate(of: Any) -> str:
    by = f" GROUP BY {', '.join(str(n + 1) for n in range(len(of.groups)))}" if of.groups else ""
    return f"SELECT {_named({**of.groups, **of.metrics})} FROM {_from(of.parent)}{by}"


def _sort(of: Any) -> str:
    return f"SELECT * FROM {_from(of.parent)} ORDER BY {', '.join(map(_sort_key, of.keys))}"


def _sort_key(key: Any) -> str:
    way, nulls = "ASC" if key.ascending else "DESC", "FIRST" if key.nulls_first else "LAST"
    return f"{_value(key.arg)} {way} NULLS {nulls}"


def _limit(of: Any) -> str:
    if type(of.n) is not int or of.offset or type(of.parent).__name__ != "Sort":
        raise UnknownOperationError("Limit")
    return f"{_sort(of.parent)} LIMIT {of.n}"


def _union(of: Any) -> str:
    if of.distinct:
        raise UnknownOperationError("Union")
    return f"({sql_of(of.left)}) UNION ALL ({sql_of(of.right)})"


def _from(of: ops.Relation) -> str:
    if type(of).__name__ == "Sort":
        # A subquery's order is lost.
        raise UnknownOperationError("Sort")
    return f"({sql_of(of)})"


def _named(values: Any) -> str:
    return ", ".join(f"{_value(value)} AS {_quoted(name)}" for name, value in values.items())


def _value(of: Any) -> str:
    name = type(of).__name__
    if name == "Field":
        return _quoted(of.name)
    if infix := INFIX.get(name):
        return f"({_value(of.left)} {infix} {_value(of.right)})"
    if function := SEVERAL.get(name):
        return f"{function}({_listed(of.arg)})"
    if template := OF_ONE.get(name):
        return template.format(_value(of.arg))
    if name in REDUCTIONS:
        return _reduced(REDUCTIONS[name], of)
    build = _VALUES.get(name)
    if build is None:
        raise UnknownOperationError(name)
    return build(of)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(_value, values))


def _reduced(function: str, of: Any) -> str:
    arg = _value(of.arg)
    if function in ("SUM", "AVG") and of.arg.dtype.is_boolean():
        arg = f"CAST({arg} AS INTEGER)"
    found = f"{function}({arg}){_where(of)}"
    # Sums of integers have 128 bits.
    return f"CAST({found} AS BIGINT)" if function == "SUM" and of.dtype.is_integer() else found


def _where(of: Any) -> str:
    return "" if of.where is None else f" FILTER (WHERE {_value(of.where)})"


def _type(dtype: Any) -> str:
    # A type that allows no nulls begins with an exclamation mark.
    found = TYPES.get(str(dtype).removeprefix("!"))
    if found is None:
        raise UnknownOperationError(f"Cast to {dtype}")
    return found


def _literal(of: Any) -> str:
    if of.value is None:
        return f"CAST(NULL AS {_type(of.dtype)})" if not of.dtype.is_null() else "NULL"
    if of.dtype.is_boolean():
        return "TRUE" if of.value else "FALSE"
    if of.dtype.is_integer():
        return str(int(of.value)) if of.value >= 0 else f"({int(of.value)})"
    if of.dtype.is_floating() and math.isfinite(of.value):
        return repr(float(of.value))
    if of.dtype.is_string():
        return "'{}'".format(of.value.replace("'", "''"))
    raise UnknownOperationError(f"Literal {of.dtype}")


def _cases(of: Any) -> str:
    whens = "".join(
        f" WHEN {_value(case)} THEN {_value(result)}" for case, result in zip(of.cases, of.results, strict=True)
    )
    return _as_known(f"CASE{whens} ELSE {_value(of.default)} END", of)


def _if_else(of: Any) -> str:
    found = f"CASE WHEN {_value(of.bool_expr)} THEN {_value(of.true_expr)} ELSE {_value(of.false_null_expr)} END"
    return _as_known(found, of)


def _as_known(text: str, of: Any) -> str:
    """Integers in the type that Ibis gives them: the engine has no literals of fewer than 32 bits."""
    return f"CAST({text} AS {_type(of.dtype)})" if of.dtype.is_integer() else text


def _in_values(of: Any) -> str:
    return f"({_value(of.value)} IN ({_listed(of.options)}))" if of.options else "FALSE"


def _clip(of: Any) -> str:
    arg = found = _value(of.arg)
    # The functions ignore nulls.
    found = found if of.upper is None else f"LEAST({_value(of.upper)}, {found})"
    found = found if of.lower is None else f"GREATEST({_value(of.lower)}, {found})"
    return f"CASE WHEN {arg} IS NULL THEN NULL ELSE {found} END"


def _round(of: Any) -> str:
    if of.digits is not None and getattr(of.digits, "value", None) != 0:
        raise UnknownOperationError("Round")
    return f"CAST(ROUND({_value(of.arg)}, 0) AS BIGINT)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_RELATIONS: dict[str, Callable[[Any], str]] = {
    "Aggregate": _aggregate,
    "DatabaseTable": _table,
    "Filter": _filter,
    "Limit": _limit,
    "Project": _project,
    "Sort": _sort,
    "Union": _union,
}
_VALUES: dict[str, Callable[[Any], str]] = {
    "Alias": lambda of: _value(of.arg),
    "Between": lambda of: f"({_value(of.arg)} BETWEEN {_value(of.lower_bound)} AND {_value(of.upper_bound)})",
    "Cast": lambda of: f"CAST({_value(of.arg)} AS {_type(of.to)})",
    "Clip": _clip,
    "CountStar": lambda of: f"COUNT(*){_where(of)}",
    "IfElse": _if_else,
    "InValues": _in_values,
    "Literal": _literal,
    "Power": lambda of: f"POWER({_value(of.left)}, {_value(of.right)})",
    "Round": _round,
    "SearchedCase": _cases,
}
