"""Wrong programs with user blocks and with functions called at run time: rows of ``errors``."""

from __future__ import annotations

TAG = "tag = ('twice', 2)\ntwice = lambda tag, x: x * 2.0\n"

BACKEND = (
    TAG
    + """\
class Own(dn.backends.NumPyBackend):
    def block(self, tag, out, args, fun):
        return np.zeros(7)
o = dn.tensor([1.0, 2.0], backend=Own())
"""
)

ROWS: list[tuple[str, str]] = [
    (
        "a block that gives another shape",
        TAG + 'dn.block(tag, [v], dn.template((4,), "f32"), twice)',
    ),
    (
        "a block that gives another dtype",
        TAG + 'dn.block(tag, [v], dn.template((3,), "s32"), twice)',
    ),
    (
        "a block that gives another name",
        TAG + 'dn.block(tag, [x], dn.rename(x, ["y", None]), twice)',
    ),
    ("a block that gives another structure", TAG + "dn.block(tag, [v], (v, v), twice)"),
    ("a block whose tag cannot be hashed", "dn.block([1], [v], v, lambda tag, x: x)"),
    ("a block whose arguments are no list", TAG + "dn.block(tag, v, v, twice)"),
    ("a block without a function", TAG + "dn.block(tag, [v], v, 3)"),
    ("a block whose output is no template", TAG + 'dn.block(tag, [v], "f32", twice)'),
    ("a block that a backend gives another shape", BACKEND + "dn.block(tag, [o], o, twice)"),
    (
        "a block that a backend gives another structure",
        BACKEND + "dn.block(tag, [o], (o, o), lambda tag, x: (x, x))",
    ),
    ("an optional without a name", "dn.optional(3, [v], lambda x: x)"),
    ("a call that gives another shape", "dn.runtime_call(v, v, lambda x: x[:2])"),
    (
        "a call that gives another dtype",
        "dn.runtime_call(v, v, lambda x: np.asarray(x, np.float64))",
    ),
    (
        "a call that gives another name",
        'dn.runtime_call(x, x, lambda x: dn.rename(x, ["y", None]))',
    ),
    ("a call that gives another structure", 'dn.runtime_call({"a": v}, v, lambda x: x)'),
    (
        "a call that gives a number of another kind",
        "dn.runtime_call(dn.tensor(1), v, lambda x: 1.5)",
    ),
    ("a call that gives no tensor", 'dn.runtime_call(v, v, lambda x: "x")'),
    ("a call without a function", "dn.runtime_call(v, v, 3)"),
    (
        "a call in a loop that gives another shape",
        """\
body = lambda s: (s[0] + 1, dn.runtime_call(v, s[1], lambda x: x[:2]))
dn.jit(lambda v: dn.while_((0, v), lambda s: s[0] < 3, body))(v)""",
    ),
    ("a call on a vectorized value", 'dn.runtime_call(v, dn.vectorize(v, "n"), lambda x: x)'),
    ("a call for a vectorized output", 'dn.runtime_call(dn.vectorize(v, "n"), v, lambda x: x)'),
    (
        "the gradient of a call",
        "dn.grad(lambda v: dn.sum(dn.runtime_call(v, v, lambda x: x)))(v)",
    ),
]
