"""Wrong compilers, and nodes where none exist: rows of ``errors``."""

from __future__ import annotations


def compiler(body: str, use: str = "dn.jit(lambda x: x + 1, compiler=Mine())(v)") -> str:
    """A program with a compiler, whose ``compile`` has this body, and a use of it."""
    head = "class Mine(dn.Compiler):\n    def compile(self, key, vars, fun, options):\n"
    return f"{head}        {body}\n{use}"


ROWS: list[tuple[str, str]] = [
    ("a compiler without callbacks", "dn.jit(lambda x: x, compiler=3)"),
    ("a compiler that cannot compile", "dn.jit(lambda x: x + 1, compiler=dn.Compiler())(v)"),
    (
        "a compiler that lacks a callback",
        "class Mine:\n    def jit(self, key, vars, fun, args_list, options):\n        pass\n"
        'dn.compile(lambda x: x + 1, [dn.template((), "f32")], compiler=Mine())',
    ),
    (
        "a profile of a program that runs as a whole",
        "class Mine:\n    def compile(self, key, vars, fun, options):\n        pass\n"
        "dn.jit(lambda x: x + 1, compiler=Mine()).profile(v)",
    ),
    (
        "the memory of a program that is not planned",
        'dn.jit(lambda x: x + 1, compiler="evaluator").memory(v)',
    ),
    (
        "the code of a program that has none",
        'dn.jit(lambda x: x + 1, compiler="evaluator").asm(v)',
    ),
    (
        "code for unknown instructions",
        'dn.jit(lambda x: x + 1).asm(v, instructions="sse")',
    ),
    ("a compiler that does not trace", compiler("return len")),
    ("a compiler that traces with other vars", compiler("return fun(*vars, 1)")),
    (
        "a compiler that traces too late",
        compiler(
            "self.fun, self.vars = fun, vars; fun(*vars); return lambda lists: [v]",
            "mine = Mine()\ntry:\n    dn.jit(lambda x: 1 / 0, compiler=mine)(v)\n"
            "except ZeroDivisionError:\n    mine.fun(*mine.vars)",
        ),
    ),
    ("a compiler that gives no function", compiler("fun(*vars); return 1")),
    ("a program that gives no list", compiler("fun(*vars); return (lambda lists: lists[0][0])")),
    ("a program of another type", compiler("fun(*vars); return (lambda lists: [1.5])")),
    ("a program of another structure", compiler("fun(*vars); return (lambda lists: [(v, v)])")),
    (
        "checks that a compiler does not make",
        compiler("pass", 'with dn.checks("nan"):\n    dn.jit(lambda x: x + 1, compiler=Mine())(v)'),
    ),
    (
        "parts that are no options",
        compiler("pass").splitlines()[0]
        + "\n    def compile(self, key, vars, fun, options):\n"
        + '        return dn.compilers.get("evaluator").compile(key, vars, fun, {})\n'
        + "    def partitions_options(self, options):\n        return options\n"
        + "dn.compile(lambda x: x + 1, [v], compiler=Mine()).run_each([[v], [v]])",
    ),
    (
        "a default that its compiler does not take",
        'dn.default_options({"compiler": "cpu", "client": "host"})',
    ),
    ("a default of an unknown compiler", 'dn.default_options(compiler="gpu")'),
    ("a parameter that is static and not there", 'dn.compile(lambda n: n, [v], static="m")'),
    ("hooks where nothing runs", "dn.compilers.hooks()"),
    ("the node of a tensor with values", "v.expr"),
    ("the node of a template", 'dn.template((3,), "f32").expr'),
    (
        "a node whose definition has ended",
        "kept = []\ndn.jit(lambda x: kept.append((x + 1).expr) or x + 2)(v)\nkept[0].op",
    ),
    (
        "tensors of two definitions",
        "f = dn.debug_expr(lambda x: x + 1)\ndn.compilers.program([f(v), f(v)])",
    ),
    ("too few tensors for a container", "dn.compilers.flatten((v, v))[1]([v])"),
    ("the graph of nothing", "dn.compilers.program(())"),
    (
        "a stream of a compiler's own that is none",
        compiler("pass").splitlines()[0]
        + "\n    def stream(self, *args):\n        return [1]\n"
        + "dn.stream(lambda x, s: (x, s), [0.0, 0.0], compiler=Mine())",
    ),
]
