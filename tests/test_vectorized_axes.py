"""Vectorized axes as Nx documents them; control flow, gradients and definitions over them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import defn as dn

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def rows() -> dn.Tensor:
    return dn.vectorize(dn.tensor(ROWS), "v")


def lanes(tensor: dn.Tensor) -> dict[str, int]:
    return dict(tensor.vectorized_axes)


def values(tensor: dn.Tensor) -> np.ndarray:
    return dn.devectorize(tensor, keep_names=False).to_numpy()


# Properties of vectorized tensors.


def test_axes_leave_the_shape() -> None:
    x = dn.vectorize(dn.tensor([ROWS], names=["a", "b", "c"]), ["a", ("b", 2)])
    assert x.vectorized_axes == (("a", 1), ("b", 2))
    assert (x.shape, x.names, x.rank, x.size, x.flat_size) == ((3,), ("c",), 1, 3, 6)
    assert x.nbytes == 24
    assert len(x) == 3
    assert x.to_list() == [ROWS]
    assert x.to_flat_list(limit=4) == [1.0, 2.0, 3.0, 4.0]
    assert x.to_numpy().shape == (1, 2, 3)
    assert np.asarray(x).shape == (1, 2, 3)
    again = dn.vectorize(x, {"c": 3})
    assert again.vectorized_axes == (("a", 1), ("b", 2), ("c", 3))
    assert again.shape == ()
    back = dn.devectorize(x)
    assert (back.shape, back.names) == ((1, 2, 3), ("a", "b", "c"))
    assert dn.devectorize(x, keep_names=False).names == (None, None, "c")
    assert lanes(dn.devectorize(back)) == {}


def test_printing() -> None:
    assert repr(rows()) == (
        "Tensor<\n  vectorized[v: 2]\n  f32[3]\n  [\n    [1.0, 2.0, 3.0],\n    [4.0, 5.0, 6.0]\n"
        "  ]\n>"
    )
    assert repr(dn.iota((), vectorized_axes={"a": 1, "b": 2})) == (
        "Tensor<\n  vectorized[a: 1][b: 2]\n  s32\n  [\n    [0, 0]\n  ]\n>"
    )


def test_pickle_keeps_them() -> None:
    again = pickle.loads(pickle.dumps(rows()))
    assert repr(again) == repr(rows())


def test_containers() -> None:
    made = dn.vectorize({"a": dn.tensor(ROWS), "b": [dn.iota((2,))]}, "v")
    assert lanes(made["a"]) == lanes(made["b"][0]) == {"v": 2}
    assert dn.devectorize(made)["b"][0].shape == (2,)


def test_templates() -> None:
    t = dn.vectorize(dn.template((2, 3), "f32", names=["a", "b"]), "v")
    assert t.is_template
    assert (t.vectorized_axes, t.shape, t.names) == ((("v", 2),), (3,), ("b",))
    compiled = dn.compile(lambda x: x.sum(), [t])
    assert compiled(dn.vectorize(dn.tensor(ROWS, names=[None, "b"]), "v")).to_list() == [6.0, 15.0]
    with pytest.raises(dn.ShapeError, match=r"\[v: 2\]"):
        compiled(dn.tensor(ROWS))
    with pytest.raises(dn.ShapeError):
        compiled(dn.vectorize(dn.tensor(ROWS), "w"))


def test_making_them() -> None:
    assert dn.iota((2,), vectorized_axes={"a": 2}).to_list() == [[0, 1], [0, 1]]
    assert dn.iota((2, 2), axis=0, vectorized_axes=[("a", 1)]).to_list() == [[[0, 0], [1, 1]]]
    assert dn.eye(2, vectorized_axes={"a": 2}).to_list() == [[[1, 0], [0, 1]]] * 2
    # The first row of a matrix, at each position.
    assert dn.eye((3,), vectorized_axes={"a": 2}).to_list() == [[1, 0, 0]] * 2
    assert dn.eye((2,), names=["n"], vectorized_axes={"a": 1}).names == ("n",)
    assert lanes(dn.fill(rows(), 0.0)) == {"v": 2}


def test_revectorize() -> None:
    t = dn.iota((1,), vectorized_axes={"x": 2, "y": 3, "z": 4})
    assert lanes(dn.revectorize(t, {"x": 12, "y": "auto"})) == {"x": 12, "y": 2}
    assert lanes(dn.revectorize(t, [("a", -1)])) == {"a": 24}
    moved = dn.revectorize(t, {"a": 6}, target_shape=(2, -1), target_names=["p", None])
    assert (lanes(moved), moved.shape, moved.names) == ({"a": 6}, (2, 2), ("p", None))
    kept = dn.revectorize(rows().rename(["c"]), {"a": 2})
    assert (kept.names, kept.to_list()) == (("c",), ROWS)


def test_axes_are_joined_in_the_order_of_first_appearance() -> None:
    x = dn.vectorize(dn.tensor([1, 2]), "x")
    xy = dn.vectorize(dn.tensor([[[5]], [[6]]]), ["y", "x"])
    first, second = dn.broadcast_vectors([x, xy], align_ranks=True)
    assert first.vectorized_axes == second.vectorized_axes == (("x", 2), ("y", 2))
    assert first.to_list() == [[[1], [1]], [[2], [2]]]
    assert second.to_list() == [[[5], [6]], [[5], [6]]]
    second, first = dn.broadcast_vectors([xy, x])
    assert first.shape == ()
    assert first.vectorized_axes == (("y", 2), ("x", 2))
    assert first.to_list() == [[1, 2], [1, 2]]
    first, second = dn.reshape_vectors([x, xy])
    assert first.vectorized_axes == (("x", 2), ("y", 1))
    assert second.vectorized_axes == (("x", 1), ("y", 2))
    assert (x + xy).vectorized_axes == (("x", 2), ("y", 2))
    assert (x + xy).to_list() == [[[6], [7]], [[7], [8]]]
    # A single tensor, and tensors without vectorized axes, are unchanged.
    assert dn.broadcast_vectors([x])[0].to_list() == [1, 2]
    assert dn.broadcast_vectors([dn.tensor(1), dn.iota((2,))])[1].shape == (2,)


def test_axis_arguments_are_of_what_is_inside() -> None:
    x = rows()
    assert x.sum(axes=[0]).to_list() == x.sum().to_list() == [6.0, 15.0]
    with pytest.raises(dn.AxisError, match="axis 1"):
        x.sum(axes=[1])
    assert x.argmax().to_list() == [2, 2]
    assert dn.argmax(x, keep_axis=True, axis=0).shape == (1,)
    assert x[1].to_list() == [2.0, 5.0]
    assert x[::-1].to_list() == [[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]]
    assert dn.concatenate([x, x]).shape == (6,)
    assert dn.stack([x, dn.iota((3,))]).shape == (2, 3)
    assert x.reshape(3, 1).shape == (3, 1)
    assert lanes(x.rename(["c"])) == {"v": 2}


def test_slices_that_begin_elsewhere_for_each_position() -> None:
    start = dn.vectorize(dn.tensor([0, 9]), "v")
    # 9 is clamped to 1, so that two elements fit.
    assert dn.slice(rows(), [start], [2]).to_list() == [[1.0, 2.0], [5.0, 6.0]]
    other = dn.vectorize(dn.tensor([1, -1]), "w")
    assert dn.slice(rows(), [other], [1])[0].to_list() == [[2.0, 1.0], [5.0, 4.0]]
    ends = dn.vectorize(dn.tensor([0, -1]), "v")
    assert dn.iota((4,))[ends].to_list() == [0, 3]


def test_zero_positions() -> None:
    none = dn.vectorize(dn.broadcast(1.0, (0, 3)), "v")
    assert (none + 1).sum().to_list() == []
    assert dn.dot(none, rows().rename([None]).devectorize(keep_names=False)[0]).to_list() == []
    assert dn.if_(none.sum() > 1, none, -none).shape == (3,)
    assert dn.while_(none.sum(), lambda s: s < 3, lambda s: s + 1).to_list() == []


# Definitions.


def test_definitions_keep_axes() -> None:
    calls = []

    @dn.jit
    def f(x, y):
        calls.append(1)
        return {"same": x, "sum": x.sum() + y, "plain": y * 2}

    out = f(rows(), 1.0)
    assert lanes(out["same"]) == lanes(out["sum"]) == {"v": 2}
    assert lanes(out["plain"]) == {}
    assert out["sum"].to_list() == [7.0, 16.0]
    f(rows(), 2.0)
    assert len(calls) == 1
    assert lanes(f(dn.vectorize(dn.tensor(ROWS), "w"), 1.0)["sum"]) == {"w": 2}
    assert f.explain()[-1] == (
        "the vectorized axes of x changed from vectorized[v: 2] f32[3] to vectorized[w: 2] f32[3]"
    )
    assert float(f(dn.tensor(ROWS), 1.0)["sum"]) == 22.0
    assert len(calls) == 3


def test_captured_tensors_keep_axes() -> None:
    box = [rows()]

    @dn.jit
    def f(x):
        return (box[0] * x).sum()

    assert f(2.0).to_list() == [12.0, 30.0]
    box[0] = dn.vectorize(dn.tensor([[1.0], [2.0]]), "w")
    assert lanes(f(2.0)) == {"w": 2}
    box[0] = rows()
    assert f(1.0).to_list() == [6.0, 15.0]


def test_an_argument_that_changes_its_axes_is_another_result() -> None:
    out = dn.jit(lambda x: (x, dn.vectorize(x, "v")))(dn.tensor(ROWS))
    assert lanes(out[0]) == {}
    assert lanes(out[1]) == {"v": 2}


def test_debug_expr_shows_plain_operations() -> None:
    traced = dn.debug_expr(lambda x: dn.sin(x).sum())(rows())
    assert lanes(traced) == {"v": 2}
    text = repr(traced)
    assert "vectorized[v: 2]" in text
    assert "sin a" in text
    assert "f32[2][3]" in text


# Control flow.


def test_cond_selects_per_position() -> None:
    x = rows()
    got = dn.if_(x.sum() > 10, lambda: x * 2, lambda: -x)
    assert got.to_list() == [[-1.0, -2.0, -3.0], [8.0, 10.0, 12.0]]
    three = dn.cond(
        [(x[0] > 3, lambda: dn.tensor(1)), (x[0] > 0, lambda: dn.tensor(2))], lambda: dn.tensor(3)
    )
    assert three.to_list() == [2, 1]
    uniform = dn.if_(x.sum() > 0, lambda: x, lambda: -x)
    assert uniform.to_list() == ROWS
    plain = dn.if_(dn.tensor(1), lambda: x, lambda: 0.0)
    assert lanes(plain) == {"v": 2}
    both = dn.jit(lambda p: dn.if_(p, lambda: {"a": x, "b": 1}, lambda: {"a": 0.0, "b": p}))(
        dn.vectorize(dn.tensor([1, 0, 2]), "w")
    )
    assert lanes(both["a"]) == {"w": 3, "v": 2} or lanes(both["a"]) == {"v": 2, "w": 3}
    assert both["b"].to_list() == [1, 0, 1]


def test_a_branch_that_nobody_takes_does_not_run() -> None:
    x = dn.vectorize(dn.tensor([1, 2]), "v")
    # The other branch is an endless loop.
    endless = lambda: dn.while_(dn.tensor(1), lambda s: s > 0, lambda s: s)  # noqa: E731
    assert dn.if_(x > 0, lambda: x + 1, endless).to_list() == [2, 3]


def test_while_over_a_vectorized_state() -> None:
    i, x = dn.while_((0, rows()), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2))
    assert int(i) == 3
    assert x.to_list() == [[8.0, 16.0, 24.0], [32.0, 40.0, 48.0]]


def test_a_state_gains_the_axes_of_the_body() -> None:
    got = dn.while_((0, 0.0), lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] + rows().sum()))
    assert got[1].to_list() == [12.0, 30.0]
    assert dn.for_(0.0, range(3), lambda s, i: s + rows()[i]).to_list() == [6.0, 15.0]
    last, outs = dn.scan(0.0, rows(), lambda s, x: (s + x, s * x))
    assert last.to_list() == [6.0, 15.0]
    assert outs.to_list() == [[0.0, 2.0, 9.0], [0.0, 20.0, 54.0]]


def collatz(n):
    steps = dn.while_(
        (n, 0),
        lambda s: s[0] != 1,
        lambda s: (dn.if_(s[0] % 2 == 0, lambda: s[0] // 2, lambda: 3 * s[0] + 1), s[1] + 1),
    )
    return steps[1]


@pytest.mark.parametrize("wrap", [lambda f: f, dn.jit])
def test_a_vectorized_condition_loops_over_positions(wrap) -> None:
    # 7: 7 22 11 34 17 52 26 13 40 20 10 5 16 8 4 2 1.
    n = dn.vectorize(dn.tensor([1, 2, 3, 7]), "v")
    assert wrap(collatz)(n).to_list() == [0, 1, 7, 16]
    pair = dn.vectorize(dn.tensor([[1, 2], [3, 7]]), ["v", "w"])
    assert wrap(collatz)(pair).to_list() == [[0, 1], [7, 16]]


def test_captured_tensors_are_read_at_the_position() -> None:
    limit = dn.vectorize(dn.tensor([5.0, 50.0]), "v")
    factor = dn.vectorize(dn.tensor([2.0, 3.0]), "w")
    got = dn.while_(dn.tensor(1.0), lambda s: s < limit, lambda s: s * 2.0)
    assert got.to_list() == [8.0, 64.0]
    # The condition differs along one axis, the body along another.
    got = dn.while_(
        (dn.tensor(1.0), 1.0), lambda s: s[1] < limit, lambda s: (s[0] * factor, s[1] * 2)
    )
    # 3 trips for 5, 6 trips for 50.
    assert sorted(map(sorted, values(got[0]).reshape(2, 2).tolist())) in (
        [[8.0, 27.0], [64.0, 729.0]],
        [[8.0, 64.0], [27.0, 729.0]],
    )
    assert got[1].to_list() == [8.0, 64.0]


def test_a_condition_must_be_a_scalar_inside() -> None:
    with pytest.raises(dn.ShapeError, match="scalar"):
        dn.while_(rows(), lambda s: s < 3, lambda s: s)
    with pytest.raises(dn.ShapeError, match="scalar"):
        dn.if_(rows(), 1, 2)


def test_custom_grad_and_stop_grad() -> None:
    x = rows()
    double = lambda t: dn.custom_grad(t * 2, [t], lambda g: [g * 10])  # noqa: E731
    assert double(x).to_list() == (x * 2).to_list()
    assert dn.grad(lambda t: double(t).sum())(x).to_list() == [[10.0] * 3] * 2
    assert dn.grad(lambda t: (t * dn.stop_grad(t)).sum())(x).to_list() == ROWS
    # The gradient is summed over the axes that an input lacks.
    w = dn.tensor(2.0)
    fun = lambda w: values_of(dn.custom_grad(w * x, [w], lambda g: [(g * x).sum()]))  # noqa: E731
    assert float(dn.grad(fun)(w)) == 21.0


def values_of(tensor):
    return dn.devectorize(tensor).sum()


def test_mark() -> None:
    assert dn.mark(rows(), "here").to_list() == ROWS


# Gradients.


def test_a_gradient_has_the_axes_of_its_variable() -> None:
    x = rows()
    got = dn.grad(lambda t: (t * t).sum())(x)
    assert got.to_list() == (2 * x).to_list()
    assert lanes(got) == {"v": 2}
    # The function may devectorize its argument: the gradient keeps the argument's axes.
    again = dn.grad(lambda t: dn.vectorize(dn.devectorize(t, keep_names=False), "b").sum())(x)
    assert lanes(again) == {"v": 2}
    assert again.to_list() == [[1.0] * 3] * 2
    squares = dn.grad(lambda t: (dn.devectorize(t) ** 2).sum())(x)
    assert squares.to_list() == (2 * x).to_list()
    value, gradient = dn.value_and_grad(lambda t: (t * t).sum())(x)
    assert value.to_list() == [14.0, 77.0]
    assert gradient.to_list() == (2 * x).to_list()


def test_variables_are_broadcast_to_their_union() -> None:
    x = rows()
    y = dn.vectorize(dn.tensor([10.0, 20.0]), "y")
    grad_x, grad_y = dn.grad((x, y), lambda v: (v[0] * v[1]).sum())
    assert grad_x.vectorized_axes == grad_y.vectorized_axes == (("v", 2), ("y", 2))
    assert grad_x.to_list() == [[[10.0] * 3, [20.0] * 3]] * 2
    assert grad_y.to_list() == [[6.0, 6.0], [15.0, 15.0]]


def test_a_vectorized_result_gives_a_gradient_for_each_position() -> None:
    x = rows()
    got = dn.grad(lambda y: (x + y).sum())(1.0)
    assert (got.vectorized_axes, got.to_list()) == ((("v", 2),), [3.0, 3.0])
    got = dn.grad(lambda y: (x * y).sum())(dn.tensor([1.0, 1.0, 1.0]))
    assert got.to_list() == ROWS
    assert dn.jit(lambda y: dn.grad(lambda y: (x * y).sum())(y))(1.0).to_list() == [6.0, 15.0]


def test_second_order() -> None:
    x = rows()
    inner = lambda t: dn.grad(lambda u: (u**3).sum())(t)  # noqa: E731
    assert dn.grad(lambda t: inner(t).sum())(x).to_list() == (6 * x).to_list()


LOSSES = {
    "cond": lambda t: dn.if_(t.sum() > 3, lambda: (t * t).sum(), lambda: t.sum()),
    "while": lambda t: dn.while_((0, t), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * t))[1],
    "while_by_position": lambda t: dn.while_(t[0], lambda s: s < 40, lambda s: s * (t[1] + 1.5)),
    "scan": lambda t: dn.scan(t[0] * 0 + 1, t, lambda s, x: (s * x, s + x))[1],
    "dot": lambda t: dn.dot(t, dn.sin(t)),
    "argmax": lambda t: t * dn.argmax(t),
    "slice": lambda t: dn.slice(t * t, [dn.argmax(t)], [1]),
    "softmax": lambda t: dn.exp(t - dn.logsumexp(t))[0],
    "outer": lambda t: dn.outer(t, t * t),
}


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_gradients_are_those_of_each_position(name: str) -> None:
    loss = LOSSES[name]
    data = np.array([[0.5, 1.25, 2.0], [1.5, 0.75, 1.0], [0.3, 0.2, 0.1]])
    x = dn.vectorize(dn.tensor(data), "v")
    got = dn.grad(lambda t: loss(t).sum())(x)
    assert lanes(got) == {"v": 3}
    each = [dn.grad(lambda t: loss(t).sum())(dn.tensor(row)).to_numpy() for row in data]
    np.testing.assert_allclose(got.to_numpy(), np.stack(each), rtol=1e-12)
    step = 1e-6
    for at in np.ndindex(*data.shape):
        moved = [data.copy(), data.copy()]
        moved[0][at] += step
        moved[1][at] -= step
        high, low = (values(loss(dn.vectorize(dn.tensor(m), "v")).sum()).sum() for m in moved)
        assert got.to_numpy()[at] == pytest.approx((high - low) / (2 * step), rel=1e-5, abs=1e-6)


def test_a_tensor_of_which_only_the_shape_counts_brings_in_its_axes() -> None:
    x = rows()
    got = dn.grad(lambda v: dn.sum(dn.fill(x, v)))(2.0)
    assert (got.vectorized_axes, got.to_list()) == ((("v", 2),), [3.0, 3.0])
    # At one position of a loop it has none.
    start = dn.vectorize(dn.tensor([1.0, 5.0]), "v")
    looped = dn.while_(start, lambda s: s < 4, lambda s: s + dn.sum(dn.fill(x, 1.0)))
    assert looped.to_list() == [4.0, 5.0]
