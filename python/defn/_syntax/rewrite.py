"""Rewrites a function's tree into code that calls the runtime.

A branch or a loop's body becomes a nested function that shares variables through ``nonlocal``. Two
more functions get and set all variables that it binds, so that the runtime can run a branch and
undo its assignments. Statements that cannot leave a nested function (``break``, ``continue``, a
``return`` in one branch only) stay unchanged, under a condition that must be plain.
"""

from __future__ import annotations
import __future__

import ast
import types
from typing import TYPE_CHECKING

from defn._syntax.names import Reads, always_returns, facts, is_simple, jumps, rebound, stored
from defn._syntax.restructure import STOP, restructure, stop_of
from defn._syntax.source import parse
from defn._syntax.trees import (
    all_arguments,
    cannot_move,
    copied,
    declared_names,
    forget_defaults,
    parsed,
    point,
    relocate,
    thunk,
    unless,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from defn._syntax.names import Facts
    from defn._syntax.source import Definition

__all__ = ["rewrite"]

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag

_OUTER = "_defn_outer"


def rewrite(fun: types.FunctionType, definition: Definition) -> types.CodeType | None:
    """The code of a function with its control flow rewritten; None if it has no control flow.

    The code has the original's name, file, lines and captured names, and ``__defn__``, the runtime.
    """
    if not _has_control_flow(definition):
        return None
    original = fun.__code__
    # Other definitions use the file's tree too, so a copy is rewritten.
    copy = copied(definition)
    restructure(copy, copied)
    body = _Rewriter(copy).function(copy, top=True)
    module = _wrapped(body, original, fun.__qualname__)
    flags = original.co_flags & _FUTURES
    compiled = compile(module, original.co_filename, "exec", flags=flags, dont_inherit=True)
    code = _code_of(compiled, original.co_name, depth=0)
    return code.replace(co_qualname=original.co_qualname)


def _has_control_flow(definition: Definition) -> bool:
    for node in ast.walk(definition):
        if isinstance(node, ast.If | ast.While | ast.For | ast.IfExp | ast.BoolOp):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return True
        if isinstance(node, ast.Assert | ast.comprehension | ast.match_case):
            return True
    return False


def _wrapped(body: Definition, original: types.CodeType, qualname: str) -> ast.Module:
    """A module whose innermost function is ``body``, inside a function with the captured names."""
    names = dict.fromkeys([*original.co_freevars, "__defn__"])
    statement = body if isinstance(body, ast.stmt) else ast.copy_location(ast.Expr(body), body)
    bound = [original.co_name] if isinstance(body, ast.stmt) else []
    owner = qualname.split(".")[-2:-1]
    if owner and owner != ["<locals>"]:
        # Inside the class, names with two leading underscores are mangled as in the original.
        cls: Any = parse(f"class {owner[0]}:\n    pass").body[0]
        cls.body = [statement]
        statement, bound = cls, owner
    parameters = ", ".join(names)
    outer: Any = parse(f"def {_OUTER}({parameters}):\n    pass").body[0]
    # The function's own name, or that of its class, refers to the module's object, not to this one.
    module_names = [name for name in bound if name not in names]
    outer.body = [*([ast.Global(module_names)] if module_names else []), statement]
    module = ast.Module([outer], [])
    for node in ast.walk(module):
        if isinstance(node, ast.stmt | ast.expr | ast.arg) and not hasattr(node, "lineno"):
            ast.copy_location(node, body)
    return ast.fix_missing_locations(module)


def _code_of(code: types.CodeType, name: str, *, depth: int) -> types.CodeType:
    """The code of the wrapped function, inside the outer function and the class if there is one."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    if depth > 0:
        for constant in inner:
            if constant.co_name == name and constant.co_flags & 0x2:
                return constant
    return _code_of(inner[0], name, depth=depth + 1)


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function, and those inside it."""

    def __init__(self, function: Definition) -> None:
        self._reads = Reads(function)
        arguments = function.args
        # The parameter that `super()` uses.
        self._first = next((arg.arg for arg in (*arguments.posonlyargs, *arguments.args)), None)
        self._count = 0
        # The loops around the current statement, outermost first.
        self._loops: list[ast.stmt] = []
        # Names that are shared between nested functions, and names declared global.
        self._shared: dict[str, None] = {}
        self._globals: set[str] = set()
        # Names whose last value is read outside the function's own statements, and the function's
        # names that functions inside it bind.
        self._outer: set[str] = set()
        self._rebound: list[str] = []

    # functions

    def function(self, node: Definition, *, top: bool = False) -> Definition:
        """The function with its body rewritten; at the top without decorators and annotations."""
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            if top:
                forget_defaults(node.args)
            return node
        for inner in ast.walk(node):
            if isinstance(inner, ast.Global):
                self._globals.update(inner.names)
        declared = declared_names(node.body)
        parameters = {arg.arg for arg in all_arguments(node.args)}
        own = {*facts(node.body).stored, *declared, *parameters}
        self._rebound = [name for name in rebound(node.body) if name in own]
        self._outer = {*declared, *self._rebound}
        node.body = self._statements(node.body)
        missing = [name for name in self._shared if name not in declared | parameters]
        if missing:
            # Functions inside can share a name only if the function itself binds it.
            chain = " = ".join(missing)
            node.body = [*parsed(f"if False:\n    {chain} = None", node), *node.body]
        if top:
            # Never run: the first decorator determines the first line.
            node.decorator_list = [
                ast.copy_location(ast.Constant(None), decorator)
                for decorator in node.decorator_list[:1]
            ]
            node.returns = None
            for arg in all_arguments(node.args):
                arg.annotation = None
            if hasattr(node, "type_params"):
                setattr(node, "type_params", [])  # noqa: B010 - Python 3.11 does not know it
            forget_defaults(node.args)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if any(_is_transform(decorator) for decorator in node.decorator_list):
            return node
        if jumps(node.body) & {"yield", "await"}:
            return _Plain(self._call, "generator").visit(node)
        return _Rewriter(node).function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return _Plain(self._call, "coroutine").visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [
            self.visit(inner) if isinstance(inner, ast.FunctionDef) else inner
            for inner in node.body
        ]
        return node

    # statements

    def _statements(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            result.extend(made if isinstance(made, list) else [made])
        return result

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        does = facts([*node.body, *node.orelse])
        left = does.jumps
        both_return = always_returns(node.body) and always_returns(node.orelse)
        refused = left - {"return"} if both_return else left
        if refused:
            kind = _first(refused)
            node.test = self._call("plain", [self.visit(node.test), ast.Constant(kind)], node.test)
            node.body = self._statements(node.body)
            node.orelse = self._statements(node.orelse)
            return [node]
        tests, branches, rest = [node.test], [node.body], node.orelse
        # A chain of simple conditions becomes one choice among many, not nested choices.
        while len(rest) == 1 and isinstance(rest[0], ast.If) and is_simple(rest[0].test):
            tests.append(rest[0].test)
            branches.append(rest[0].body)
            rest = rest[0].orelse
        names = self._bound(does)
        live = tuple(name for name in names if self._is_live(name, node))
        label = self._label()
        first, *others = (self.visit(test) for test in tests)
        made = [
            self._branch(f"_defn_branch_{label}_{at}", self._statements(body), names, node)
            for at, body in enumerate([*branches, rest])
        ]
        functions: list[ast.expr] = [ast.Name(branch.name, ast.Load()) for branch in made]
        made += self._accessors(label, names, node)
        method = "if_return" if both_return else "if_"
        arguments = [
            first,
            ast.Tuple([thunk(test) for test in others], ast.Load()),
            ast.Tuple(functions, ast.Load()),
            *self._shared_arguments(label, names, live, does),
        ]
        call = self._call(method, arguments, node.test)
        made.append(ast.Return(call) if both_return else ast.Expr(call))
        return [ast.copy_location(statement, node) for statement in made]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        does = facts(node.body)
        left = does.jumps
        if left:
            kind = _first(left)
            node.test = self._call(
                "plain", [self.visit(node.test), ast.Constant(f"while {kind}")], node.test
            )
            node.body = self._in_loop(node)
            node.orelse = self._statements(node.orelse)
            return [node]
        stop = stop_of(node)
        names = self._bound(facts([node.test, *node.body]))
        binds = bool(stored([node.test]))
        live, carried = self._loop_names(names, node)
        label = self._label()
        test_body: list[ast.stmt] = [
            ast.copy_location(ast.Return(self.visit(node.test)), node.test)
        ]
        made = [
            self._branch(f"_defn_test_{label}", test_body, names, node),
            self._branch(f"_defn_body_{label}", self._in_loop(node), names, node),
            *self._accessors(label, names, node),
        ]
        arguments = [
            ast.Name(f"_defn_test_{label}", ast.Load()),
            ast.Name(f"_defn_body_{label}", ast.Load()),
            *self._shared_arguments(label, names, live, does),
            _constant(carried),
            _constant(stop),
            _constant(binds),
        ]
        made.append(ast.Expr(self._call("while_", arguments, node.test)))
        made += self._statements(node.orelse)
        return [ast.copy_location(statement, node) for statement in made]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        does = facts([node.target, *node.body])
        left = does.jumps
        if left:
            kind = _first(left)
            node.iter = self._call(
                "plain_items", [self._items(node.iter), ast.Constant(kind)], node.iter
            )
            node.body = self._in_loop(node)
            node.orelse = self._statements(node.orelse)
            return [node]
        stop = stop_of(node)
        names = self._bound(does)
        live, carried = self._loop_names(names, node)
        label = self._label()
        item = f"_defn_item_{label}"
        bind = ast.Assign([node.target], ast.Name(item, ast.Load()))
        point(bind.value, node.target)
        ast.copy_location(bind, node.target)
        if stop is None:
            body = [bind, *self._in_loop(node)]
        else:
            node.body = [unless(stop, [bind, *node.body])]
            body = self._in_loop(node)
        function = self._branch(f"_defn_body_{label}", body, names, node)
        function.args.args.append(ast.arg(item))
        arguments = [
            self._items(node.iter),
            ast.Name(f"_defn_body_{label}", ast.Load()),
            *self._shared_arguments(label, names, live, does),
            _constant(carried),
            _constant(stop),
        ]
        made = [function, *self._accessors(label, names, node)]
        made.append(ast.Expr(self._call("for_", arguments, node.iter)))
        made += self._statements(node.orelse)
        return [ast.copy_location(statement, node) for statement in made]

    def _items(self, node: ast.expr) -> ast.expr:
        """What a for statement iterates over; the runtime decides what ``range(...)`` is."""
        items = self.visit(node)
        if not isinstance(items, ast.Call) or items.keywords:
            return items
        if not isinstance(items.func, ast.Name) or items.func.id != "range":
            return items
        return self._call("range_of", [items.func, *items.args], node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        # A function never evaluates annotations of variables, and nonlocal variables have none.
        if node.value is None:
            return parsed(f"if False:\n    {node.target.id} = None", node)[0]
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = self._call("plain", [node.test, ast.Constant("assert")], node.test)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.body = self._statements(node.body)
        if node.guard is not None:
            guard = self.visit(node.guard)
            node.guard = self._call("plain", [guard, ast.Constant("guard")], node.guard)
        return node

    def _bound(self, does: Facts) -> list[str]:
        """The names that statements bind, and those that functions they call may bind."""
        names = dict(does.stored)
        if does.has_call:
            names.update(dict.fromkeys(self._rebound))
        return list(names)

    def _loop_names(
        self, names: Sequence[str], node: ast.For | ast.While
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of a loop's names, those read after it, and those read in a later iteration."""
        live = [name for name in names if self._is_live(name, node)]
        carried = [
            name for name in names if name.startswith(STOP) or self._reads.is_carried(name, node)
        ]
        return tuple(live), tuple(carried)

    def _in_loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        self._loops.append(node)
        body = self._statements(node.body)
        self._loops.pop()
        return body

    def _is_live(self, name: str, node: ast.stmt) -> bool:
        if name in self._globals or name in self._outer or name.startswith(STOP):
            return True
        return self._reads.is_live(name, node, self._loops[0] if self._loops else None)

    # expressions

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and self._first is not None and not node.args and not node.keywords:
            # Without arguments it does not work in a branch's function.
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
            relocate(node.args, node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        parts = [self.visit(node.test), self.visit(node.body), self.visit(node.orelse)]
        if cannot_move([node.body, node.orelse]):
            node.test = self._call("plain", [parts[0], ast.Constant("walrus")], node.test)
            node.body, node.orelse = parts[1:]
            return node
        return self._call("if_else", [parts[0], thunk(parts[1]), thunk(parts[2])], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(value) for value in node.values]
        if cannot_move(node.values[1:]):
            values[:-1] = [
                self._call("plain", [value, ast.Constant("walrus")], value) for value in values[:-1]
            ]
            node.values = values
            return node
        method = "and_" if isinstance(node.op, ast.And) else "or_"
        return self._call(method, [values[0], *(thunk(value) for value in values[1:])], node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [self._call("plain", [test, ast.Constant("filter")], test) for test in node.ifs]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self._call("not_", [node.operand], node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        left = self.visit(node.left)
        rest = [self.visit(comparator) for comparator in node.comparators]
        if len(node.ops) == 1 or cannot_move(node.comparators[1:]):
            node.left, node.comparators = left, rest
            return node
        arguments: list[ast.expr] = [left]
        for op, value in zip(node.ops, rest, strict=True):
            arguments += [ast.Constant(_COMPARISONS[type(op)]), thunk(value)]
        return self._call("compare", arguments, node)

    # generated code

    def _label(self) -> int:
        self._count += 1
        return self._count

    def _call(self, method: str, arguments: Iterable[ast.expr], at: ast.AST) -> ast.expr:
        """A call of the runtime at a position of the source."""
        function = ast.Attribute(ast.Name("__defn__", ast.Load()), method, ast.Load())
        call = ast.Call(function, list(arguments), [])
        ast.copy_location(call, at)
        for node in ast.walk(call):
            if isinstance(node, ast.expr | ast.arg) and not hasattr(node, "lineno"):
                point(node, at)
        return call

    def _declaration(self, names: Iterable[str]) -> list[ast.stmt]:
        local = [name for name in names if name not in self._globals]
        module = [name for name in names if name in self._globals]
        self._shared.update(dict.fromkeys(local))
        return [
            *([ast.Nonlocal(local)] if local else []),
            *([ast.Global(module)] if module else []),
        ]

    def _branch(
        self, name: str, body: list[ast.stmt], names: Sequence[str], at: ast.stmt
    ) -> ast.FunctionDef:
        """A function of the statements, which shares the names that they bind."""
        function = parse(f"def {name}():\n    pass").body[0]
        assert isinstance(function, ast.FunctionDef)
        declared = declared_names(body)
        names = [name for name in names if name not in declared]
        function.body = [*self._declaration(names), *(body or [ast.Pass()])]
        # Nodes of the original statements have their positions already.
        for node in (function, *function.body):
            if node is function or not hasattr(node, "lineno"):
                point(node, at)
        return function

    def _accessors(self, label: int, names: Sequence[str], at: ast.stmt) -> list[ast.stmt]:
        """The functions that get and set the shared names; an unbound name is ``undefined``."""
        reads = "".join(f"__defn__.value(lambda: {name}), " for name in names)
        lines = [f"def _defn_get_{label}():", f"    return ({reads})"]
        lines += [f"def _defn_put_{label}(_defn_values):", "    pass"]
        for position, name in enumerate(names):
            lines += [
                f"    {name} = _defn_values[{position}]",
                f"    if {name} is __defn__.undefined:",
                f"        del {name}",
            ]
        made = parse("\n".join(lines)).body
        put: Any = made[1]
        put.body[:1] = self._declaration(names) or [ast.Pass()]
        relocate(made, at)
        return made

    def _shared_arguments(
        self, label: int, names: Sequence[str], live: Sequence[str], does: Facts
    ) -> list[ast.expr]:
        mutations: list[ast.expr] = [
            ast.Tuple([_constant(text), thunk(copied(of))], ast.Load())
            for text, of in does.mutations()
        ]
        return [
            ast.Name(f"_defn_get_{label}", ast.Load()),
            ast.Name(f"_defn_put_{label}", ast.Load()),
            _constant(tuple(names)),
            _constant(tuple(live)),
            _constant(tuple(does.changes())),
            ast.Tuple(mutations, ast.Load()),
        ]


class _Plain(ast.NodeTransformer):
    """Requires plain conditions in a function that cannot be rewritten."""

    def __init__(self, call: Callable[..., ast.expr], kind: str) -> None:
        self._call, self._kind = call, kind

    def _marked(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = self._call("plain", [node.test, ast.Constant(self._kind)], node.test)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._marked(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._marked(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._marked(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return self._marked(node)


# The order of precedence in which messages name a statement's jumps.
_ORDER = ("yield", "await", "break", "continue", "return", "raise")

_COMPARISONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def _constant(value: Any) -> ast.Constant:
    """A constant; the compiler takes tuples of strings too, although the parser creates none."""
    return ast.Constant(value)


def _first(ways: set[str]) -> str:
    """The jump that a message names, of those in a statement."""
    return next(kind for kind in _ORDER if kind in ways)


def _is_transform(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else None
    if isinstance(decorator, ast.Name):
        name = decorator.id
    return name == "deftransform"
