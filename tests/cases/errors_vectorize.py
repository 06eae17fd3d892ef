"""Wrong programs with vectorized axes: rows of ``errors``."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("more vectorized axes than axes", 'dn.vectorize(v, ["a", "b"])'),
    ("a scalar that is vectorized", 'dn.vectorize(dn.tensor(1), "a")'),
    ("a vectorized axis of another size", 'dn.vectorize(v, {"a": 4})'),
    ("a vectorized axis twice", 'dn.vectorize(x, ["a", "a"])'),
    ("a vectorized axis named as one inside", 'dn.vectorize(x.transpose(), "row")'),
    ("no name for a vectorized axis", "dn.vectorize(x, [None])"),
    ("a size that is no int for a vectorized axis", 'dn.vectorize(x, {"a": "b"})'),
    ("a name of a vectorized axis", 'dn.rename(dn.vectorize(x, "row"), ["row"])'),
    ("vectorized axes that differ", 'dn.vectorize(v, "a") + dn.vectorize(dn.iota((2,)), "a")'),
    ("a name inside and a vectorized axis", 'dn.vectorize(v, "row") + x'),
    ("two free sizes of vectorized axes", 'dn.revectorize(x, {"a": -1}, target_shape=[-1])'),
    ("vectorized axes that hold another size", 'dn.revectorize(x, {"a": 4})'),
    ("vectorized axes without sizes", 'dn.iota((2,), vectorized_axes="a")'),
    ("a number of a vectorized tensor", 'float(dn.vectorize(v, "a"))'),
    ("the truth of a vectorized tensor", 'if dn.vectorize(v, "a") > 1:\n    pass'),
    ("the truth of a tensor in a mapped function", "dn.vmap(lambda s: s if s > 0 else -s)(v)"),
    ("a number of a tensor in a mapped function", "dn.vmap(lambda s: dn.sin(float(s)))(v)"),
    ("an item of a tensor in a mapped function", "dn.map(v, lambda s: s.item())"),
    (
        "a vectorized condition with elements",
        'dn.while_(dn.vectorize(x, "row"), lambda s: s < 3, lambda s: s)',
    ),
    (
        "a vectorized loop that changes its dtype",
        'dn.while_(dn.vectorize(i, "a"), lambda s: 1, lambda s: s + 0.5)',
    ),
    (
        "a compiled function with other vectorized axes",
        'dn.compile(lambda x: x, [dn.vectorize(dn.template((3, 2), "f32"), "a")])'
        '(dn.vectorize(dn.broadcast(1.0, (3, 2)), "b"))',
    ),
    ("vmap over sizes that differ", "dn.vmap(dn.add)(v, x)"),
    ("vmap over no axis", "dn.vmap(dn.add, in_axes=None)(v, v)"),
    ("vmap with too few axes", "dn.vmap(dn.add, in_axes=(0,))(v, v)"),
    ("vmap with axes of another structure", "dn.vmap(lambda p: p, in_axes=({'a': 0},))([v])"),
    ("vmap that drops an axis", "dn.vmap(dn.sin, out_axes=None)(v)"),
    ("vmap over an axis out of range", "dn.vmap(dn.sin, in_axes=2)(x)"),
    ("vmap into an axis out of range", "dn.vmap(dn.sin, out_axes=2)(v)"),
    ("vmap over sizes that differ in containers", "dn.vmap(lambda *_: 1)({'a': v}, [x])"),
    (
        "vmap over an axis that a leaf lacks",
        "dn.vmap(lambda p: 1, ({'a': [0, 1]},))({'a': [v, v]})",
    ),
    (
        "vmap with axes for another part",
        "dn.vmap(lambda p: 1, in_axes=({'a': (0,)},))({'a': [v, v]})",
    ),
    ("vmap with an axis that is none", "dn.vmap(lambda p: 1, in_axes=([0, 0.5],))([v, v])"),
    ("vmap over a size that is no size", "dn.vmap(lambda: 1, axis_size=-1)()"),
    ("vmap over a name that is no name", "dn.vmap(dn.sin, axis_name=1)(v)"),
    (
        "vmap over a name that an argument has",
        "dn.vmap(dn.sin, axis_name='i')(dn.reshape(x, x.shape, names=[None, 'i']))",
    ),
    (
        "vmap over a name that an enclosing one has",
        "dn.vmap(lambda r: dn.vmap(lambda: 1, axis_name='i', axis_size=2)(), axis_name='i')(v)",
    ),
    (
        "an exchange along an axis that is not there",
        "dn.vmap(lambda s: dn.all_reduce(s, 'j'), axis_name='i')(v)",
    ),
    (
        "an exchange in a branch that not all take",
        "dn.vmap(lambda s: dn.if_(s > 1, lambda: dn.all_reduce(s, 'i'), s), axis_name='i')(v)",
    ),
    (
        "an exchange in a loop that ends where it likes",
        "dn.vmap(lambda s: dn.while_(s, lambda t: t < 9, lambda t: dn.all_reduce(t, 'i')), "
        "axis_name='i')(v)",
    ),
    ("a scan over nothing", "dn.scan(0, None, lambda s, _: (s, s))"),
    ("a scan of another length", "dn.scan(0, v, lambda s, _: (s, s), length=5)"),
    ("a scan of a negative length", "dn.scan(0, None, lambda s, _: (s, s), length=-1)"),
    ("map to a vector", "dn.map(v, lambda e: v)"),
    ("a cotangent of another structure", "dn.vjp(lambda x: (x, x))(v)[1](v)"),
    ("a cotangent of another size", "dn.vjp(dn.sin)(v)[1](x)"),
    ("a tangent of another structure", "dn.jvp(lambda p: p[0], ((v, v),), (v,))"),
    ("a tangent of another size", "dn.jvp(dn.sin, (v,), (x,))"),
    ("a tangent of another dtype", "dn.jvp(dn.sin, (v,), (dn.as_type(v, 'f64'),))"),
    ("the tangent of an integer", "dn.jvp(lambda n: n * 2, (dn.s32(3),), (dn.s32(1),))"),
    ("too many tangents", "dn.jvp(dn.sin, (v,), (v, v))"),
    ("primals without a tuple", "dn.jvp(dn.sin, v, v)"),
    ("a value that is no pair", "dn.jvp(dn.sin, (v,), (v,), has_aux=True)"),
    (
        "a gradient rule without a forward mode",
        "dn.jvp(lambda v: dn.custom_grad(v, [v], lambda g: [dn.clip(g, -1, 1)]), (v,), (v,))",
    ),
]
