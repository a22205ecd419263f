# SPDX-License-Identifier: MIT-0
"""Exact arithmetic on one-line expressions from data files, without `eval`: an allow-list of syntax nodes.

Numbers are integers and fractions, so `3 * 7 / 10` is 21/10 and never 2.0999999999999996.
"""

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

from lingoss.errors import LingossError

Value = int | Fraction | bool

MAX_LENGTH = 400  # characters of source; keeps the parser's recursion shallow
MAX_DIGITS = 10**15  # largest numerator, denominator or intermediate result
MAX_EXPONENT = 20

BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARE: dict[type[ast.cmpop], Callable[[Fraction, Fraction], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
CALLS: dict[str, Callable[..., Fraction]] = {"min": min, "max": max, "abs": abs}


class ExpressionError(LingossError):
    """The expression is outside the small language, or its value is."""


def evaluate(source: str, variables: Mapping[str, Value]) -> Value:
    """The exact value of `source`: an int where it is whole, else a Fraction; True or False for a condition.

    Allowed: integers, variables, + - * / // % **, comparisons (also chained), and/or/not, `a if c else b`,
    min, max, abs.

    Raises:
        ExpressionError: other syntax, an unknown name, division by zero, or a number beyond `MAX_DIGITS`.
    """
    try:
        value = _value(parse(source), variables)
    except ZeroDivisionError as error:
        raise ExpressionError(f"{source!r} divides by zero with {dict(variables)}") from error
    except ExpressionError as error:
        raise ExpressionError(f"{source!r}: {error}") from error
    return value


def names(source: str) -> frozenset[str]:
    """The variables that `source` reads."""
    called = {id(node.func) for node in ast.walk(parse(source)) if isinstance(node, ast.Call)}
    found = (node for node in ast.walk(parse(source)) if isinstance(node, ast.Name) and id(node) not in called)
    return frozenset(node.id for node in found)


@functools.lru_cache(maxsize=4096)
def parse(source: str) -> ast.expr:
    """The syntax tree of an expression; which nodes are allowed is seen on evaluation."""
    if len(source) > MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(source)} characters; at most {MAX_LENGTH}")
    try:
        return ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{source!r} is no expression: {error}") from error


def _value(node: ast.expr, variables: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return _checked(Fraction(number))
        case ast.Name(id=name):
            if name not in variables:
                raise ExpressionError(f"unknown variable {name!r}; known: {', '.join(sorted(variables)) or 'none'}")
            return variables[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _checked(-_number(operand, variables))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, variables)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return _binary(op, _number(left, variables), _number(right, variables))
        case ast.BoolOp(op=op, values=values):
            results = (bool(_value(value, variables)) for value in values)
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARE for op in ops):
            terms = [_number(term, variables) for term in (left, *others)]
            return all(COMPARE[type(op)](a, b) for op, a, b in zip(ops, terms, terms[1:], strict=False))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, variables) else orelse, variables)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=[]) if name in CALLS:
            if len(arguments) != 1 if name == "abs" else len(arguments) < 2:
                raise ExpressionError(f"{name}() with {len(arguments)} argument(s)")
            return _checked(CALLS[name](*(_number(argument, variables) for argument in arguments)))
    raise ExpressionError(f"{type(node).__name__} is not part of the language")


def _number(node: ast.expr, variables: Mapping[str, Value]) -> Fraction:
    return Fraction(_value(node, variables))


def _binary(op: ast.operator, left: Fraction, right: Fraction) -> Value:
    if isinstance(op, ast.Pow) and (right.denominator != 1 or abs(right) > MAX_EXPONENT):
        raise ExpressionError(f"exponent {right}; whole numbers up to {MAX_EXPONENT}")
    return _checked(Fraction(BINARY[type(op)](left, right)))


def _checked(value: Fraction) -> int | Fraction:
    if max(abs(value.numerator), value.denominator) > MAX_DIGITS:
        raise ExpressionError("a number beyond 10^15")
    return value.numerator if value.denominator == 1 else value
