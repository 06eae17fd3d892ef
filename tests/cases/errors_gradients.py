"""Misuse of gradients, and of rules for them."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("the gradient of a quotient", "dn.grad(lambda x: dn.quotient(x, 2))(7)"),
    ("the gradient of a pair", "dn.grad(lambda x: (x, x))(1.0)"),
    ("the gradient of a string", 'dn.grad(lambda x: "x")(1.0)'),
    ("the gradient of an argument that is not there", "dn.grad(lambda x: x, argnums=1)(1.0)"),
    ("the gradient of a static argument", 'dn.grad(lambda mode: dn.tensor(1.0))("mode")'),
    ("the gradient of nothing", "dn.grad(1.0)"),
    ("argnums with variables", "dn.grad(1.0, lambda x: x, argnums=1)"),
    (
        "a rule with too many cotangents",
        "dn.grad(lambda x: dn.custom_grad(x * x, [x], lambda g: [g, g]))(1.0)",
    ),
    (
        "a rule that gives no list",
        "dn.grad(lambda x: dn.custom_grad(x * x, [x], lambda g: g))(1.0)",
    ),
    (
        "a cotangent of another shape",
        "dn.grad(lambda x: dn.sum(dn.custom_grad(x * x, [x], lambda g: [g[:2]])))(v)",
    ),
    (
        "a rule for tangents that gives a pair",
        "dn.jvp(lambda x: dn.custom_jvp(x * x, [x], lambda t: (t, t)), (1.0,), (1.0,))",
    ),
    (
        "a tangent of another shape from a rule",
        "dn.jvp(lambda x: dn.custom_jvp(x * x, [x], lambda t: t[:2]), (v,), (v,))",
    ),
    ("a rule for tangents of no list", "dn.custom_jvp(v, v, lambda t: t)"),
    (
        "the gradient by a rule for tangents that is not linear",
        "dn.grad(lambda x: dn.custom_jvp(x, [x], lambda t: dn.clip(t, -1, 1)))(1.0)",
    ),
    ("the rest of a function with one result", "dn.grad(lambda x: x, has_aux=True)(1.0)"),
    ("a checkpoint of what is no function", "dn.checkpoint(1.0)"),
    ("a policy of another kind", 'dn.checkpoint(dn.sin, policy="hidden")'),
    ("a policy of other things than names", "dn.checkpoint(dn.sin, policy=[1])"),
    ("a policy with another memory", 'dn.checkpoint(dn.sin, policy={"hidden": "disk"})'),
    ("a policy that names nothing", 'dn.checkpoint(dn.sin, policy=["hidden"])(v)'),
    (
        "a policy that names another value",
        'dn.checkpoint(lambda x: dn.mark(x, "b") + dn.mark(x, "a"), policy=["hidden"])(v)',
    ),
    ("a checkpointed function of no container", "dn.checkpoint(lambda x: object())(v)"),
]
