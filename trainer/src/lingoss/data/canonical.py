# SPDX-License-Identifier: MIT-0
"""When are two answer expressions the same sum in other words? A normal form, so that families do not repeat."""

import ast
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from lingoss.data.expressions import BINARY, CALLS, COMPARE, ExpressionError, names, parse

MOST_VARIABLES = 7  # every renaming is tried


def canonical(source: str) -> str:
    """A text that is equal for expressions which differ only in the names of variables, in the order of sums and
    products, in brackets, in constants written apart, or in `a > b` against `b < a`.

    The least text over all renamings of the variables.

    Raises:
        ExpressionError: more than 7 variables, or syntax outside the language.
    """
    found = sorted(names(source))
    if len(found) > MOST_VARIABLES:
        raise ExpressionError(f"{source!r} has {len(found)} variables; at most {MOST_VARIABLES}")
    tree = parse(source)
    orders = itertools.permutations(f"v{number}" for number in range(len(found)))
    return min(_shape(tree, dict(zip(found, order, strict=True))).text for order in orders)


@dataclass(frozen=True, slots=True)
class Shape:
    """A node of the normal form; sums and products hold one constant and their other terms in sorted order."""

    kind: str
    parts: tuple["Shape", ...] = ()
    constant: Fraction = Fraction(0)

    @property
    def text(self) -> str:
        """The shape as text, by which shapes are sorted and compared."""
        return f"{self.kind}[{self.constant}]({','.join(part.text for part in self.parts)})"

    @property
    def is_constant(self) -> bool:
        """True for a number."""
        return self.kind == "sum" and not self.parts


def _shape(node: ast.expr, rename: dict[str, str]) -> Shape:
    def shape(inner: ast.expr) -> Shape:
        return _shape(inner, rename)

    match node:
        case ast.Constant(value=int() as number):
            return Shape("sum", (), Fraction(number))
        case ast.Name(id=name):
            return Shape(rename[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negative(shape(operand))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Shape("not", (shape(operand),))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum((shape(left), shape(right)))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _sum((shape(left), _negative(shape(right))))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product((shape(left), shape(right)))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _product((shape(left), _inverse(shape(right))))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return Shape(type(op).__name__, (shape(left), shape(right)))
        case ast.BoolOp(op=op, values=values):
            return Shape(type(op).__name__, _sorted(map(shape, values)))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARE for op in ops):
            terms = [shape(term) for term in (left, *others)]
            pairs = [_comparison(op, a, b) for op, a, b in zip(ops, terms, terms[1:], strict=False)]
            return pairs[0] if len(pairs) == 1 else Shape("And", _sorted(pairs))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Shape("if", (shape(test), shape(body), shape(orelse)))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in CALLS:
            return Shape(name, _sorted(map(shape, arguments)))
    raise ExpressionError(f"{type(node).__name__} is not part of the language")


def _sorted(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    return tuple(sorted(shapes, key=lambda shape: shape.text))


def _comparison(op: ast.cmpop, left: Shape, right: Shape) -> Shape:
    match op:
        case ast.Gt():
            return Shape("Lt", (right, left))
        case ast.GtE():
            return Shape("LtE", (right, left))
        case ast.Lt() | ast.LtE():
            return Shape(type(op).__name__, (left, right))
    return Shape(type(op).__name__, _sorted((left, right)))


def _sum(terms: Iterable[Shape]) -> Shape:
    flat, constant = _flatten("sum", terms, Fraction(0), lambda a, b: a + b)
    return flat[0] if len(flat) == 1 and constant == 0 else Shape("sum", _sorted(flat), constant)


def _product(factors: Iterable[Shape]) -> Shape:
    plain = [Shape("product", (), factor.constant) if factor.is_constant else factor for factor in factors]
    flat, constant = _flatten("product", plain, Fraction(1), lambda a, b: a * b)
    if not flat or constant == 0:
        return Shape("sum", (), constant)
    return flat[0] if len(flat) == 1 and constant == 1 else Shape("product", _sorted(flat), constant)


def _flatten(
    kind: str, shapes: Iterable[Shape], constant: Fraction, join: Callable[[Fraction, Fraction], Fraction]
) -> tuple[list[Shape], Fraction]:
    flat: list[Shape] = []
    for shape in shapes:
        if shape.kind == kind:
            constant = join(constant, shape.constant)
            flat += shape.parts
        else:
            flat.append(shape)
    return flat, constant


def _negative(shape: Shape) -> Shape:
    return _product((Shape("sum", (), Fraction(-1)), shape))


def _inverse(shape: Shape) -> Shape:
    if shape.is_constant and shape.constant:
        return Shape("sum", (), 1 / shape.constant)
    if shape.kind == "product":
        return _product((Shape("sum", (), 1 / shape.constant), *map(_inverse, shape.parts)))
    return shape.parts[0] if shape.kind == "inverse" else Shape("inverse", (shape,))
