"""Every way to be wrong: a title, and the program that is wrong.

Programs run as a file ``user.py``, so that the last line of each message is theirs. The texts
that they give are kept in ``golden/errors.txt``, to be read as prose.
"""

from __future__ import annotations

from cases import errors_backend, errors_index, errors_places

PRELUDE = """
import dataclasses
import numpy as np
import defn as dn
x = dn.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], names=["row", None])
v = dn.tensor([1.0, 2.0, 3.0])
i = dn.tensor([1, 2, 3])
c = dn.tensor([1j])
"""

ROWS: list[tuple[str, str]] = [
    # Numbers and element types.
    ("a dtype that does not exist", 'dn.tensor(1, dtype="f23")'),
    ("something that is no dtype", "dn.as_type(v, [1])"),
    ("a NumPy dtype without a counterpart", 'dn.tensor(np.array(["a"]))'),
    ("a float given as an integer", 'dn.tensor(1.5, dtype="s32")'),
    ("a complex number given as a float", 'dn.tensor([1.0, 2j], dtype="f32")'),
    ("an integer that does not fit", "dn.tensor(2**31)"),
    ("an integer that fits nothing", "dn.tensor(2**80)"),
    ("a tensor of another dtype", 'dn.tensor(v, dtype="s32")'),
    ("an order of complex numbers", "dn.floor(c)"),
    ("a comparison of complex numbers", "c < c"),
    ("bits of a float", "dn.bitwise_and(v, 1)"),
    ("bits of one float", "dn.population_count(v)"),
    ("a quotient of floats", "dn.quotient(v, 2.0)"),
    ("a bitcast to another width", 'dn.bitcast(v, "u8")'),
    ("the inverse of a predicate", "~(v > 1.0)"),
    ("a negative exponent of an integer", "dn.tensor([2]) ** dn.tensor([-1])"),
    ("an integer divided by zero", "dn.quotient(i, dn.tensor(0))"),
    ("an integer's floor by zero", "i // dn.tensor(0)"),
    ("a negative shift", "dn.left_shift(i, dn.tensor(-1))"),
    # Values.
    ("a ragged list", "dn.tensor([[1, 2], [3]])"),
    ("a list of lists and numbers", "dn.tensor([[1, 2], 3])"),
    ("an empty list", "dn.tensor([])"),
    ("a tensor inside a list", "dn.tensor([v, v])"),
    ("a string inside a list", 'dn.tensor([1, "two"])'),
    ("an operand that is no tensor", 'dn.sin("v")'),
    ("a list as an operand", "dn.sin([1.0, 2.0])"),
    ("copy=False of a list", "dn.tensor([1.0], copy=False)"),
    ("copy=False of an array with gaps", "dn.tensor(np.arange(4)[::2], copy=False)"),
    ("bytes that are no whole elements", 'dn.from_binary(b"abc", "f32")'),
    # Shapes.
    ("shapes that do not broadcast", "x + dn.iota((4,))"),
    ("a negative size", "dn.iota((2, -3))"),
    ("a size that is no integer", "dn.iota((2, 1.5))"),
    ("a tensor as a size", "dn.iota((2, dn.tensor(3)))"),
    ("more elements than memory can address", "dn.iota((2**62, 4))"),
    ("more bytes than there are", "dn.broadcast(1.0, (2**20, 2**20, 2**10))"),
    ("a reshape to another size", "x.reshape(4, 2)"),
    ("a reshape with two free sizes", "x.reshape(-1, -1)"),
    ("a reshape whose free size does not divide", "x.reshape(4, -1)"),
    ("a squeeze of a larger axis", "x.squeeze(axes=[1])"),
    ("a flatten of axes apart", "dn.iota((2, 3, 4)).flatten(axes=[0, 2])"),
    ("a transpose that is no permutation", "x.transpose(axes=[0])"),
    ("a transpose with an axis twice", "x.transpose(axes=[0, 0])"),
    ("a broadcast that does not fit", "v.broadcast((2, 4))"),
    ("a broadcast with axes that do not ascend", "x.broadcast((3, 2), axes=[1, 0])"),
    ("tile by a float", "v.tile([1.5])"),
    ("tile by zero", "v.tile([0])"),
    ("concatenate nothing", "dn.concatenate([])"),
    ("concatenate shapes that differ", "dn.concatenate([x, dn.iota((2, 4))])"),
    ("stack shapes that differ", "dn.stack([v, x])"),
    ("a split that leaves nothing", "v.split(3)"),
    ("a slice longer than the axis", "dn.slice(v, [0], [4])"),
    ("a slice with too few starts", "dn.slice(x, [0], [1])"),
    ("a slice with a stride of zero", "dn.slice(v, [0], [2], strides=0)"),
    ("a slice that starts at a float", "dn.slice(v, [dn.tensor(1.5)], [1])"),
    ("a slice that starts at a vector", "dn.slice(v, [i], [1])"),
    ("a slice that does not fit", "dn.put_slice(v, [0], dn.iota((4,)))"),
    ("pad without an entry per axis", "dn.pad(x, 0, [(0, 0, 0)])"),
    ("pad with a negative interior", "dn.pad(v, 0, [(0, 0, -1)])"),
    ("pad that crops too much", "dn.pad(v, 0, [(-2, -2, 0)])"),
    ("pad with a vector", "dn.pad(v, v, [(0, 0, 0)])"),
    ("padding of an unknown kind", "dn.pad_outer(v, 'round', [(1, 1)])"),
    ("a negative outer padding", "dn.pad_outer(v, 'mirror', [(-1, 1)])"),
    ("clip with a vector", "dn.clip(v, v, 1.0)"),
    ("select that does not fit", "dn.select(dn.tensor([1, 0]), v, v)"),
    ("the maximum of nothing", "dn.broadcast(0.0, (2, 0)).reduce_max()"),
    ("a product of sizes that differ", "dn.dot(x, x)"),
    ("dot with batch axes on one side", "dn.dot(x, [1], [0], v, [0], [])"),
    ("dot with three arguments", "dn.dot(x, [1], v)"),
    ("a product of scalars as matrices", "dn.tensor(2) @ v"),
    ("a diagonal of a vector", "dn.take_diagonal(v)"),
    ("a diagonal outside the matrix", "dn.take_diagonal(x, offset=5)"),
    ("a diagonal of another length", "dn.put_diagonal(x, v)"),
    ("a triangle of a vector", "dn.tril(v)"),
    ("eye of one axis", "dn.eye((3,))"),
    ("linspace of bounds that differ", "dn.linspace(v, 1.0, n=3)"),
    ("linspace of no values", "dn.linspace(0.0, 1.0, n=0)"),
    ("weights of another shape", "dn.weighted_mean(x, v)"),
    ("the covariance of a vector", "dn.covariance(v)"),
    ("differences of a scalar", "dn.diff(1.0)"),
    ("more differences than there are", "dn.diff(v, order=4)"),
    ("the median of nothing", "dn.median(dn.broadcast(0.0, (2, 0)), axis=1)"),
    ("the mode of complex numbers", "dn.mode(c)"),
    ("a logarithm to the base 1", "dn.log(v, 1)"),
    # Random numbers and constants.
    ("a key of floats", "dn.random.uniform(v)"),
    ("a key that is a number", "dn.random.split(12)"),
    ("a seed that is a float", "dn.random.key(1.5)"),
    ("a seed of 32 bits", "dn.random.key(dn.tensor(12))"),
    ("keys folded with floats", "dn.random.fold_in(dn.random.key(0), v)"),
    ("random integers of a float dtype", 'dn.random.randint(dn.random.key(0), 0, 9, dtype="f32")'),
    ("random floats of an integer dtype", 'dn.random.normal(dn.random.key(0), dtype="s32")'),
    ("random integers between floats", "dn.random.randint(dn.random.key(0), 0, v, dtype='s32')"),
    (
        "a random integer that does not fit",
        "dn.random.randint(dn.random.key(0), 0, 300, dtype='u8')",
    ),
    ("a random integer between nothing", "dn.random.randint(dn.random.key(0), 5, 5)"),
    ("random numbers between complex ones", "dn.random.uniform(dn.random.key(0), c, 1.0)"),
    (
        "bounds that do not fit the sample",
        "dn.random.uniform(dn.random.key(0), v, 1.0, shape=(2, 2))",
    ),
    ("a shuffle of a scalar", "dn.random.shuffle(dn.random.key(0), 1.0)"),
    ("a choice from a scalar", "dn.random.choice(dn.random.key(0), 1.0)"),
    ("a choice from nothing", "dn.random.choice(dn.random.key(0), dn.broadcast(0.0, (0,)))"),
    ("no samples", "dn.random.choice(dn.random.key(0), v, samples=0)"),
    ("too many samples", "dn.random.choice(dn.random.key(0), v, samples=4, replace=False)"),
    ("too few probabilities", "dn.random.choice(dn.random.key(0), x, v)"),
    ("probabilities that are integers", "dn.random.choice(dn.random.key(0), v, i)"),
    ("a sample too large", "dn.random.bits(dn.random.key(0), shape=(2**62, 4))"),
    ("an unknown option of random", "dn.random.uniform(dn.random.key(0), size=3)"),
    ("pi as an integer", 'dn.constants.pi("s32")'),
    ("i as a float", 'dn.constants.i("f32")'),
    # Axes and names.
    ("an axis out of range", "dn.sum(x, axes=[2])"),
    ("an axis name that is not there", 'dn.sum(x, axes="column")'),
    ("an axis name that stands twice", 'dn.rename(x, ["a", "a"]).sum(axes="a")'),
    ("an axis given twice", 'dn.sum(x, axes=[0, "row"])'),
    ("names of another length", 'dn.tensor([1, 2], names=["a", "b"])'),
    ("names that differ", 'x + dn.rename(x, ["line", None])'),
    (
        "a name on two axes of a product",
        'dn.dot(dn.rename(x, ["a", "b"]), dn.iota((3, 2), names=["b", "a"]))',
    ),
    ("a new axis out of range", "dn.new_axis(v, 3)"),
    # Options and foreign names.
    ("axis for axes", "dn.sum(x, axis=1)"),
    ("keepdims for keep_axes", "x.sum(axes=1, keepdims=True)"),
    ("dim for axis", "x.argmax(dim=1)"),
    ("an option that nothing resembles", "dn.reshape(x, (6,), order='F')"),
    ("NumPy's max", "x.max()"),
    ("NumPy's min with an axis", "dn.min(x, axis=0)"),
    ("a tie that does not exist", 'dn.argmax(x, tie_break="middle")'),
    ("NumPy's where", "dn.where(v > 1, v, 0.0)"),
    ("NumPy's astype", "v.astype(np.float64)"),
    ("NumPy's zeros", "dn.zeros((2, 3))"),
    ("JAX's lax name", "dn.while_loop"),
    ("PyTorch's unsqueeze", "v.unsqueeze(0)"),
    ("a name that nobody has", "dn.frobnicate"),
    ("an import that is not there", "from defn import where"),
    ("rounding to digits", "round(v, 2)"),
    ("an unknown option of keyword", "dn.keyword({'rat': 1}, rate=1.0, steps=2)"),
    ("an unknown default option", "dn.default_options(nonsense=1)"),
    # Indexing and reading.
    ("an index out of range", "x[2]"),
    ("too many indices", "x[0, 0, 0]"),
    ("two ellipses", "x[..., ...]"),
    ("a step of zero", "x[::0]"),
    ("a mask", "v[v > 1]"),
    ("an array of indices", "v[np.array([[0, 1], [1, 2]])]"),
    ("a string as an index", 'v["row"]'),
    ("an axis name as an index that is not there", "x[{'column': 0}]"),
    ("the length of a scalar", "len(dn.tensor(1))"),
    ("iterating over a scalar", "list(dn.tensor(1))"),
    ("a float of many", "float(v)"),
    ("the truth of many", "if v > 1:\n    pass"),
    ("an index that is a float", "[1, 2][dn.tensor(1.0)]"),
    ("a format for many", 'f"{v:.2f}"'),
    # Definitions.
    (
        "a branch on a traced tensor",
        "@dn.jit\ndef f(x):\n    if x > 0:\n        return x\n    return -x\nf(1.0)",
    ),
    (
        "a return in one branch only",
        "@dn.defn\ndef f(x):\n    if x > 0:\n        return x\n    return -x\nf(1.0)",
    ),
    (
        "a variable of two types",
        "@dn.defn\ndef f(x):\n    y = None\n    if x > 0:\n        y = x\n    return y\nf(1.0)",
    ),
    ("a number from a traced tensor", "@dn.jit\ndef f(x):\n    return x * float(x)\nf(1.0)"),
    ("an array from a traced tensor", "@dn.jit\ndef f(x):\n    return np.sin(x)\nf(1.0)"),
    (
        "an error inside a definition",
        "@dn.defn\ndef f(x, y):\n    z = x + 1\n    return z + y\nf(v, dn.iota((4,)))",
    ),
    (
        "a tensor of a trace that has ended",
        "kept = []\n@dn.jit\ndef f(x):\n    kept.append(x)\n    return x\nf(1.0)\nkept[0] + 1",
    ),
    (
        "a tensor of an ended trace in another",
        "kept = []\n@dn.jit\ndef f(x):\n    kept.append(x)\n    return x\nf(1.0)\n"
        "dn.jit(lambda y: y + kept[0])(1.0)",
    ),
    ("a template used as a tensor", 'dn.template((2,), "f32") + 1'),
    ("a template as an argument", 'dn.jit(lambda x: x)(dn.template((2,), "f32"))'),
    ("the elements of a template", 'dn.template((2,), "f32").to_list()'),
    ("a definition that calls itself", "@dn.defn\ndef f(x):\n    return f(x) + 1\nf(1.0)"),
    (
        "a static value that cannot be hashed",
        "@dn.defn\ndef f(x, *, table):\n    return x\nf(1.0, table=bytearray(2))",
    ),
    ("a static parameter that is not there", 'dn.jit(lambda x: x, static="n")'),
    ("an unknown on_conflict", 'dn.jit(lambda x: x, on_conflict="ignore")'),
    ("an unknown compiler", 'dn.jit(lambda x: x, compiler="fast")(1.0)'),
    ("a compiler that is not there yet", 'dn.jit(lambda x: x, compiler="cpu")(1.0)'),
    ("an unknown compiler option", "dn.jit(lambda x: x, speed=11)(1.0)"),
    ("no function", "dn.jit(3)"),
    ("too few arguments", "dn.jit(lambda x, y: x)(1.0)"),
    ("too many arguments", "dn.jit(lambda x: x)(1.0, 2.0)"),
    ("an unknown argument", "dn.jit(lambda x: x)(1.0, z=2.0)"),
    ("too many compilations", "f = dn.jit(lambda x: x, max_compiles=1)\nf(1)\nf(1.0)"),
    ("a jitted function inside another", "f = dn.jit(lambda x: x)\ndn.jit(lambda x: f(x))(1.0)"),
    (
        "a compiled function inside a definition",
        'f = dn.compile(lambda x: x, [dn.template((), "f32")])\ndn.jit(lambda x: f(x))(1.0)',
    ),
    (
        "a compiled function with another shape",
        'dn.compile(lambda x: x, [dn.template((3,), "f32")])(dn.iota((4,)))',
    ),
    (
        "a compiled function with another name",
        'dn.compile(lambda x: x, [dn.template((3,), "f32", names=["a"])])(dn.rename(v, ["b"]))',
    ),
    (
        "a compiled function with more arguments",
        'dn.compile(lambda x: x, [dn.template((3,), "f32")])(v, v)',
    ),
    ("a result that is no tensor", "dn.jit(lambda x: object())(1.0)"),
    (
        "a captured tensor that is gone",
        "box = [dn.tensor(1.0)]\n@dn.jit\ndef f(x):\n    return x + box[0]\n"
        "f(1.0)\nbox[0] = None\nf(1.0)",
    ),
    (
        "a captured tensor that is gone from a compiled function",
        "box = [dn.tensor(1.0)]\n"
        'f = dn.compile(lambda x: x + box[0], [dn.template((), "f32")])\n'
        "box[0] = None\nf(1.0)",
    ),
    (
        "a captured tensor that goes while it is traced",
        "box = [dn.tensor(1.0)]\n@dn.jit\ndef f(x):\n    y = x + box[0]\n    box[0] = None\n"
        "    return y\nf(1.0)",
    ),
    (
        "a tensor that cannot be found again",
        "hidden = iter([dn.tensor(1.0)])\ndn.jit(lambda x: x + next(hidden))(1.0)",
    ),
    (
        "a traced tensor for a function that runs apart",
        'f = dn.jit(lambda x: x, on_conflict="force")\ndn.jit(lambda x: f(x))(1.0)',
    ),
    # Containers.
    ("an argument of an unknown class", "dn.jit(lambda p: p)(object())"),
    ("a container in itself", "loop = []\nloop.append(loop)\ndn.jit(lambda p: p)(loop)"),
    (
        "a class that is a container anyway",
        "dn.register_container(dict, lambda p: ([], None), lambda r, c: {})",
    ),
    # Control flow.
    ("a loop that changes its dtype", "dn.while_(0, lambda s: s < 3, lambda s: s + 0.5)"),
    (
        "a loop that changes its shape",
        "dn.while_((0, v), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1][:2]))",
    ),
    (
        "a loop that changes its structure",
        "dn.while_((0, 1), lambda s: s[0] < 3, lambda s: (s[0] + 1,))",
    ),
    (
        "a loop that changes a name",
        'dn.while_({"a": v}, lambda s: s["a"][0] < 3, lambda s: {"b": s["a"]})',
    ),
    ("a condition with elements", "dn.while_(v, lambda s: s < 3, lambda s: s + 1)"),
    ("a condition that gives two values", "dn.while_(0, lambda s: (s, s), lambda s: s)"),
    ("a predicate with elements", "dn.cond([(v > 1, lambda: v)], lambda: -v)"),
    ("branches that differ in structure", "dn.cond([(v[0] > 1, lambda: (v, v))], lambda: v)"),
    ("branches that do not broadcast", "dn.cond([(v[0] > 1, lambda: v)], lambda: dn.iota((2,)))"),
    ("for over a number", "dn.for_(0, 5, lambda s, i: s + i)"),
    ("for over a scalar", "dn.for_(0, dn.tensor(5), lambda s, i: s + i)"),
    ("scan with a body that gives no pair", "dn.scan(0, v, lambda s, x: s)"),
    ("a negative unroll", "dn.for_(0, range(3), lambda s, i: s + i, unroll=-1)"),
    # Gradients.
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
    *errors_backend.ROWS,
    *errors_places.ROWS,
    *errors_index.ROWS,
]
