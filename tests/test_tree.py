"""Functions of ``dn.tree``: paths, transposition, stacks and arithmetic of containers."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn

Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - the untyped form too.


@dataclass
class Layer:
    weight: Any
    bias: Any
    title: str = "layer"


class Group:
    def __init__(self, parts: list[Any], label: str) -> None:
        self.parts, self.label = parts, label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and vars(other) == vars(self)

    __hash__ = None


dn.register_container(Group, lambda g: (g.parts, g.label), lambda label, parts: Group(parts, label))


def containers(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Containers of any classes, nested, with values in between that are no leaves."""
    keys = st.one_of(st.text("abc", max_size=2), st.integers(0, 3))

    def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.lists(inner, max_size=3),
            st.tuples(inner, inner),
            st.dictionaries(keys, inner, max_size=3),
            st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
            st.builds(Pair, inner, inner),
            st.builds(Layer, inner, inner),
            st.builds(Group, st.lists(inner, max_size=3), st.just("g")),
        )

    return st.recursive(
        st.one_of(leaves, st.sampled_from([None, "text", True])), extend, max_leaves=8
    )


NUMBERS = containers(st.integers(-100, 100))


def step(container: Any, entry: Any) -> Any:
    """The part of a container to which an entry of a path leads, by the container's own means."""
    if isinstance(container, Group):
        return container.parts[entry]
    if isinstance(container, Layer | Pair):
        return getattr(container, entry)
    return container[entry]


@given(NUMBERS)
def test_paths_lead_to_the_leaves(tree) -> None:
    found, structure = dn.tree.flatten_with_path(tree)
    leaves = dn.tree.leaves(tree)
    assert found == dn.tree.leaves_with_path(tree)
    assert [leaf for _, leaf in found] == leaves
    for path, leaf in found:
        part = tree
        for entry in path:
            part = step(part, entry)
        assert part is leaf
    assert structure == dn.tree.structure(tree)
    assert dn.tree.unflatten(structure, leaves) == tree
    assert dn.tree.map_with_path(lambda path, leaf: leaf, tree) == tree


@given(containers(st.integers(0, 9)))
def test_paths_are_those_of_jax(tree) -> None:
    import jax

    register(jax)

    def plain(part: Any) -> Any:
        """What JAX treats as we do: values that are no leaves are None there, keys are ordered."""
        if isinstance(part, dict):
            items = sorted(part.items(), key=lambda item: (isinstance(item[0], str), item[0]))
            items = [(str(key), plain(value)) for key, value in items]
            return type(part)(sorted(items))
        if isinstance(part, Pair):
            return Pair(*map(plain, part))
        if isinstance(part, list | tuple):
            return type(part)(map(plain, part))
        if isinstance(part, Layer):
            return Layer(plain(part.weight), plain(part.bias))
        if isinstance(part, Group):
            return [plain(inner) for inner in part.parts]
        return part if type(part) is int else None

    tree = plain(tree)
    theirs, _ = jax.tree_util.tree_flatten_with_path(tree)
    ours = dn.tree.leaves_with_path(tree)
    assert [leaf for _, leaf in ours] == [leaf for _, leaf in theirs]
    for (path, _), (their_path, _) in zip(ours, theirs, strict=True):
        text = dn.tree.path_text(path)
        assert text.replace('"', "'") == jax.tree_util.keystr(their_path)


def register(jax: Any) -> None:
    """Registers ``Layer`` with JAX, once."""
    if jax.tree.structure(Layer(0, 1)).num_leaves != 2:
        jax.tree_util.register_dataclass(Layer, ["weight", "bias"], ["title"])


def test_a_path_is_compared_and_matched() -> None:
    tree = {"layers": [Layer(1.0, Pair(2.0, 3.0))], 7: Group([4.0], "g")}
    paths = [path for path, _ in dn.tree.leaves_with_path(tree)]
    assert paths == [
        ("layers", 0, "weight"),
        ("layers", 0, "bias", "left"),
        ("layers", 0, "bias", "right"),
        (7, 0),
    ]
    texts = [
        '["layers"][0].weight',
        '["layers"][0].bias.left',
        '["layers"][0].bias.right',
        "[7][0]",
    ]
    assert list(map(dn.tree.path_text, paths)) == texts
    assert dn.tree.path_text(paths[1][1:]) == "[0].bias.left"
    assert dn.tree.path_text(()) == ""
    for other in (pickle.loads(pickle.dumps(paths)), copy.deepcopy(paths)):
        assert list(map(dn.tree.path_text, other)) == texts

    def kind(path, value):
        match path:
            case ("layers", int(at), *_, "left" | "weight"):
                return (at, value)
            case _:
                return None

    named = dn.tree.map_with_path(kind, tree)
    assert named["layers"][0] == Layer((0, 1.0), Pair((0, 2.0), None))
    assert dn.tree.leaves_with_path(3.5) == [((), 3.5)]


def test_map_with_path_takes_other_containers() -> None:
    out = dn.tree.map_with_path(
        lambda path, x, y: (path, x - y), {"a": 5, "b": 3}, {"b": 1, "a": 2}
    )
    assert out == {"a": (("a",), 3), "b": (("b",), 2)}
    assert dn.tree.map(operator.sub, {"a": 5, "b": 3}, {"b": 1, "a": 2}) == {"a": 3, "b": 2}
    with pytest.raises(
        dn.ContainerError, match=r"tree and others\[1\] differ in structure: at \[0\]"
    ):
        dn.tree.map_with_path(lambda *_: 0, [1], [2], [(3,)])
    with pytest.raises(ZeroDivisionError):
        dn.tree.map_with_path(lambda path, x: 1 / x, [0])


def test_map_with_path_in_a_definition() -> None:
    @dn.jit
    def decayed(params):
        return dn.tree.map_with_path(lambda path, x: x * 0.5 if path[-1] == "w" else x, params)

    out = decayed({"a": {"w": 2.0, "b": 3.0}, "w": np.array([4.0])})
    assert (float(out["a"]["w"]), float(out["a"]["b"]), out["w"].to_list()) == (1.0, 3.0, [2.0])


# Transposition.


@given(NUMBERS, NUMBERS)
def test_transposing_twice(outer, inner) -> None:
    structure = dn.tree.structure(outer)
    places = dn.tree.leaves(outer)
    if not places or not dn.tree.leaves(inner):
        return
    # Each leaf of outer is a copy of inner, with values of its own.
    parts = [dn.tree.map(lambda x, at=at: (1000 * at) + x, inner) for at in range(len(places))]
    tree = dn.tree.unflatten(structure, list(range(len(places))))
    tree = substitute(tree, parts)
    turned = dn.tree.transpose(tree, outer=outer)
    assert dn.tree.transpose(turned, outer=inner) == tree
    assert dn.tree.transpose(turned, dn.tree.structure(inner)) == tree
    for path, leaf in dn.tree.leaves_with_path(inner):
        part = turned
        for entry in path:
            part = step(part, entry)
        assert dn.tree.structure(part) == structure
        assert dn.tree.leaves(part) == [1000 * at + leaf for at in range(len(places))]


def substitute(tree: Any, parts: list[Any]) -> Any:
    """A container with ``parts[leaf]`` in place of each leaf, by the containers' own means."""
    if isinstance(tree, dict):
        return type(tree)((key, substitute(value, parts)) for key, value in tree.items())
    if isinstance(tree, Pair):
        return Pair(*(substitute(value, parts) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(substitute(value, parts) for value in tree)
    if isinstance(tree, Layer):
        return Layer(substitute(tree.weight, parts), substitute(tree.bias, parts), tree.title)
    if isinstance(tree, Group):
        return Group([substitute(value, parts) for value in tree.parts], tree.label)
    return parts[tree] if type(tree) is int else tree


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.integers(1, 3))
def test_transpose_is_jaxs(values, count) -> None:
    import jax

    tree = [{"a": value, "b": (value + 10,) * count} for value in values]
    outer, inner = jax.tree.structure([0] * len(values)), jax.tree.structure(tree[0])
    theirs = jax.tree.transpose(outer, inner, tree)
    assert dn.tree.transpose(tree) == theirs
    assert (
        dn.tree.transpose(theirs, outer=tree[0]) == jax.tree.transpose(inner, outer, theirs) == tree
    )


def test_transpose_by_default_turns_the_outermost_container() -> None:
    assert dn.tree.transpose({"x": [1, 2], "y": [3, 4]}) == [{"x": 1, "y": 3}, {"x": 2, "y": 4}]
    assert dn.tree.transpose(Layer({"a": 1}, {"a": 2})) == {"a": Layer(1, 2)}
    turned = dn.tree.transpose(OrderedDict(x=Pair(1, 2), y=Pair(3, 4)))
    assert turned == Pair(OrderedDict(x=1, y=3), OrderedDict(x=2, y=4))
    assert type(turned.left) is OrderedDict
    assert dn.tree.transpose([{"a": 1, "b": 2}, {"b": 3, "a": 4}]) == {"a": [1, 4], "b": [2, 3]}
    assert dn.tree.transpose([{"a": 1}, None]) == {"a": [1, None]}
    assert dn.tree.transpose(5) == 5


def test_transpose_in_a_definition() -> None:
    @dn.jit
    def f(layers):
        return dn.tree.map(lambda x: x, dn.tree.transpose(layers))

    out = f([{"a": 1.0}, {"a": 2.0}])
    assert [float(x) for x in out["a"]] == [1.0, 2.0]


# Stacks.

SHAPES = st.lists(st.integers(0, 3), max_size=2).map(tuple)


@st.composite
def layers(draw: Any) -> tuple[list[Any], int]:
    """Containers of arrays with one structure and the same shapes, and an axis for their stack."""
    tree = draw(containers(SHAPES.map(lambda shape: np.zeros(shape, np.float32))))
    count = draw(st.integers(1, 3))
    rank = min((leaf.ndim for leaf in dn.tree.leaves(tree)), default=0)
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def fresh(leaf: np.ndarray) -> np.ndarray:
        return np.asarray(rng.normal(size=leaf.shape), np.float32)

    return [dn.tree.map(fresh, tree) for _ in range(count)], draw(st.integers(-rank - 1, rank))


@settings(deadline=None)
@given(layers())
def test_stack_and_unstack(case) -> None:
    trees, axis = case
    stacked = dn.tree.stack(trees, axis)
    oracle = dn.tree.map(lambda *leaves: np.stack(leaves, axis), *trees)
    for ours, theirs in zip(dn.tree.leaves(stacked), dn.tree.leaves(oracle), strict=True):
        np.testing.assert_array_equal(ours.to_numpy(), theirs)
    assert dn.tree.structure(stacked) == dn.tree.structure(trees[0])
    if dn.tree.leaves(stacked):
        parts = dn.tree.unstack(stacked, axis)
        assert len(parts) == len(trees)
        for part, tree in zip(parts, trees, strict=True):
            assert dn.tree.structure(part) == dn.tree.structure(tree)
            for ours, theirs in zip(dn.tree.leaves(part), dn.tree.leaves(tree), strict=True):
                np.testing.assert_array_equal(ours.to_numpy(), theirs)


def test_stacked_layers_in_a_scan() -> None:
    rng = np.random.default_rng(0)
    layers = [{"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)} for _ in range(4)]
    x = rng.normal(size=3)

    def loss(layers):
        stacked = dn.tree.stack(layers)
        return dn.sum(dn.scan(x, stacked, lambda x, layer: (apply(layer, x), None))[0])

    def apply(layer, x):
        return dn.tanh(dn.dot(layer["w"], x) + layer["b"])

    expected = x
    for layer in layers:
        expected = np.tanh(layer["w"] @ expected + layer["b"])
    assert float(loss(layers)) == pytest.approx(expected.sum(), rel=1e-12)
    grads = dn.jit(dn.grad(loss))(layers)
    assert len(grads) == 4
    moved = copy.deepcopy(layers)
    moved[2]["w"][0, 1] += 1e-6
    slope = (float(loss(moved)) - float(loss(layers))) / 1e-6
    assert grads[2]["w"].to_numpy()[0, 1] == pytest.approx(slope, rel=1e-4)


# Arithmetic.


def arrays(dtype: Any) -> st.SearchStrategy[np.ndarray]:
    def make(shape: tuple[int, ...], seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if np.issubdtype(dtype, np.integer):
            return rng.integers(-9, 10, size=shape, dtype=dtype)
        value = rng.normal(size=shape)
        if np.issubdtype(dtype, np.complexfloating):
            value = value + 1j * rng.normal(size=shape)
        return np.asarray(value, dtype)

    return st.builds(make, SHAPES, st.integers(0, 999))


VECTORS = st.sampled_from([np.float32, np.float64, np.complex128, np.int32]).flatmap(
    lambda dtype: containers(arrays(dtype))
)


def other_than(tree: Any) -> Any:
    """Another container with the same structure, shapes and dtypes."""
    return dn.tree.map(lambda x: (x[..., ::-1] if x.ndim else x) * x.dtype.type(3), tree)


def same(ours: Any, theirs: Any, rtol: float = 1e-6) -> None:
    for a, b in zip(dn.tree.leaves(ours), dn.tree.leaves(theirs), strict=True):
        a, b = dn.tensor(a).to_numpy(), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


@settings(deadline=None)
@given(VECTORS)
def test_arithmetic_is_that_of_arrays(a) -> None:
    b = other_than(a)
    for ours, theirs in (
        (dn.tree.add, np.add),
        (dn.tree.subtract, np.subtract),
        (dn.tree.multiply, np.multiply),
    ):
        same(ours(a, b), dn.tree.map(theirs, a, b))
    same(dn.tree.scale(2, a), dn.tree.map(lambda x: x * x.dtype.type(2), a))
    same(dn.tree.add_scaled(a, 2, b), dn.tree.map(lambda x, y: x + y.dtype.type(2) * y, a, b))
    same(dn.tree.where(True, a, b), a)
    same(dn.tree.where(np.array(False), a, b), b)
    same(dn.tree.zeros_like(a), dn.tree.map(np.zeros_like, a))
    same(dn.tree.ones_like(a), dn.tree.map(np.ones_like, a))
    same(dn.tree.ones_like(a, "f64"), dn.tree.map(lambda x: np.ones_like(x, "f8"), a))
    arrays = dn.tree.leaves(a)
    assert dn.tree.size(a) == sum(x.size for x in arrays)
    assert dn.tree.bytes(a) == sum(x.nbytes for x in arrays)

    def flat(tree: Any) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(x.ravel() for x in dn.tree.leaves(tree))])

    assert dn.tree.dot(a, b).item() == pytest.approx(np.vdot(flat(a), flat(b)), rel=1e-5, abs=1e-5)
    for ord, theirs in ((2, 2), (1, 1), ("inf", np.inf), (math.inf, np.inf)):
        expected = np.linalg.norm(flat(a), theirs) if flat(a).size else 0.0
        assert dn.tree.norm(a, ord).item() == pytest.approx(expected, rel=1e-5)


@settings(deadline=None, max_examples=30)
@given(containers(arrays(np.float32)))
def test_arithmetic_is_optaxs(a) -> None:
    import jax
    import optax

    register(jax)
    leaves = dn.tree.leaves(a)
    b = [leaf * 3 for leaf in leaves]
    same(dn.tree.add_scaled(leaves, 0.5, b), optax.tree.add_scale(leaves, 0.5, b))
    same(dn.tree.scale(0.5, leaves), optax.tree.scale(0.5, leaves))
    same(dn.tree.where(True, leaves, b), optax.tree.where(True, leaves, b))
    assert dn.tree.dot(leaves, b).item() == pytest.approx(
        float(optax.tree.vdot(leaves, b)), rel=1e-5
    )
    for ord in (1, 2):
        theirs = float(optax.tree.norm(leaves, ord))
        assert dn.tree.norm(leaves, ord).item() == pytest.approx(theirs, rel=1e-5)


def test_a_factor_that_is_a_tensor_does_not_widen() -> None:
    half, whole = dn.tensor([1.0, 2.0], dtype="bf16"), dn.tensor([1, 2])
    tree = {
        "half": half,
        "whole": whole,
        "complex": dn.tensor([1j]),
        "byte": dn.tensor([1], dtype="u8"),
    }
    expected = {"half": "bf16", "whole": "f32", "complex": "c64", "byte": "f32"}

    def dtypes(tree: Any) -> dict[str, str]:
        return {key: str(value.dtype) for key, value in tree.items()}

    for factor in (0.5, dn.tensor(0.5), np.float32(0.5)):
        assert dtypes(dn.tree.scale(factor, tree)) == expected
        assert dtypes(dn.tree.add_scaled(tree, factor, tree)) == expected
        assert dtypes(dn.jit(dn.tree.scale)(factor, tree)) == expected
    assert str(dn.tree.scale(dn.tensor(0.5, dtype="f64"), [half])[0].dtype) == "bf16"
    assert dn.tree.scale(dn.tensor(1j), [half])[0].dtype.kind == "complex"
    assert str(dn.tree.scale(2, [whole])[0].dtype) == "s32"


def test_small_floats_are_summed_in_f32() -> None:
    small = {"w": dn.broadcast(dn.bf16(0.01), (10_000,)), "b": dn.broadcast(dn.f16(0.1), (10_000,))}
    exact = [float(dn.bf16(0.01)), float(dn.f16(0.1))]
    squares = 10_000 * sum(x * x for x in exact)
    assert str(dn.tree.norm(small).dtype) == "f32"
    assert dn.tree.norm(small).item() == pytest.approx(math.sqrt(squares), rel=1e-5)
    assert dn.tree.dot(small, small).item() == pytest.approx(squares, rel=1e-5)
    assert dn.tree.norm(small, 1).item() == pytest.approx(10_000 * sum(exact), rel=1e-5)
    # The square of 1000 is more than the greatest f16.
    assert dn.tree.norm([dn.f16(1000.0)]).item() == 1000.0


def test_cast_converts_floats_alone() -> None:
    tree = {
        "w": np.ones(2),
        "n": np.array([3]),
        "c": 1j,
        "x": 0.5,
        "b": np.array([True]),
        "s": "text",
    }
    out = dn.tree.cast(tree, "bf16")
    assert str(out["w"].dtype) == str(out["x"].dtype) == "bf16"
    assert all(out[key] is tree[key] for key in "ncbs")
    grads = dn.grad(lambda tree: dn.sum(dn.tree.cast(tree, "f32")["w"]))({"w": np.ones(2)})
    assert (str(grads["w"].dtype), grads["w"].to_list()) == ("f64", [1.0, 1.0])


def test_gradients() -> None:
    a = {"w": dn.tensor([1.0, -2.0]), "b": dn.tensor(2.0)}
    b = {"b": dn.tensor(0.5), "w": dn.tensor([3.0, 4.0])}
    grads = dn.grad(lambda a: dn.tree.dot(a, b))(a)
    assert (grads["w"].to_list(), grads["b"].item()) == ([3.0, 4.0], 0.5)
    grads = dn.grad(dn.tree.norm)(a)
    np.testing.assert_allclose(grads["w"].to_numpy(), np.array([1.0, -2.0]) / 3.0, rtol=1e-6)
    slope = dn.grad(lambda factor: dn.tree.dot(dn.tree.add_scaled(a, factor, b), b))(dn.tensor(0.1))
    assert slope.item() == pytest.approx(25.25)
    ones = dn.tree.ones_like(b)

    def chosen(pred: bool) -> Any:
        return dn.grad(lambda a: dn.tree.dot(dn.tree.where(pred, a, b), ones))(a)

    assert (chosen(True)["w"].to_list(), chosen(True)["b"].item()) == ([1.0, 1.0], 1.0)
    assert (chosen(False)["w"].to_list(), chosen(False)["b"].item()) == ([0.0, 0.0], 0.0)


def test_vmap() -> None:
    rows = {"w": dn.tensor([[3.0, 0.0], [0.0, 6.0]]), "b": dn.tensor([4.0, 8.0])}
    assert dn.vmap(dn.tree.norm)(rows).to_list() == [5.0, 10.0]
    one = {"w": dn.tensor([1.0, 2.0]), "b": dn.tensor(1.0)}
    assert dn.vmap(dn.tree.dot, in_axes=(0, None))(rows, one).to_list() == [7.0, 20.0]
    scaled = dn.vmap(dn.tree.scale)(dn.tensor([1.0, 2.0]), rows)
    assert scaled["w"].to_list() == [[3.0, 0.0], [0.0, 12.0]]
    assert dn.vmap(lambda p: dn.tree.size(p) * p["b"])(rows).to_list() == [12.0, 24.0]
    chosen = dn.vmap(dn.tree.where)(dn.tensor([True, False]), rows, dn.tree.zeros_like(rows))
    assert chosen["b"].to_list() == [4.0, 0.0]


def test_a_key_for_each_leaf() -> None:
    key, tree = dn.random.key(3), {"w": 1.0, "b": [2.0, 3.0]}
    keys = dn.tree.random_split(key, tree)
    expected = dn.random.split(key, parts=3).to_list()
    assert [leaf.to_list() for leaf in dn.tree.leaves(keys)] == expected
    assert dn.tree.structure(keys) == dn.tree.structure(tree)
    assert dn.tree.random_split(key, {"mode": "a"}) == {"mode": "a"}
    compiled = dn.jit(dn.tree.random_split)(key, tree)
    assert [leaf.to_list() for leaf in dn.tree.leaves(compiled)] == expected


def test_errors_name_the_first_leaf_that_does_not_fit() -> None:
    good, bad = dn.tensor([1.0, 2.0]), dn.tensor([1.0, 2.0, 3.0])
    a, b = Layer([good], {"x": good, "y": good}), Layer([good], {"x": bad, "y": bad})
    for call in (
        lambda: dn.tree.add(a, b),
        lambda: dn.tree.subtract(a, b),
        lambda: dn.tree.multiply(a, b),
        lambda: dn.tree.add_scaled(a, 0.5, b),
        lambda: dn.tree.where(True, a, b),
        lambda: dn.tree.stack([a, b]),
        lambda: dn.jit(dn.tree.add)(a, b),
    ):
        with pytest.raises(dn.ShapeError, match=r'^\w+: at \.bias\["x"\], '):
            call()
    with pytest.raises(
        dn.ShapeError, match=r'a\.bias\["x"\] is f32\[2\] and b\.bias\["x"\] is f32\[3\]'
    ):
        dn.tree.dot(a, b)
    with pytest.raises(
        dn.ShapeError, match=r'tree\.bias\["x"\] is f32\[3\], its axis 0 must have 2'
    ):
        dn.tree.unstack(b)
    with pytest.raises(dn.ContainerError, match="a and b differ in structure"):
        dn.tree.dot(a, [good])
