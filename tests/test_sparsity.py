"""Patterns of Jacobians, their colors, and sparse Jacobians against dense ones."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases import Case
from test_grad import CASES, COMPLEX, FLOWS, identify
from test_jvp import drawn

sparse = pytest.importorskip("scipy.sparse")

MATRIX = np.random.default_rng(3).normal(size=(4, 4))
INDICES = np.array([4, 0, -1, 4])
FEW = np.array([2, 5, 7])


def vector(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


def pattern(fun: Callable[..., Any], *args: Any, argnums: int = 0) -> np.ndarray:
    return dn.sparsity(fun, *args, argnums=argnums).toarray()


def dense(fun: Callable[..., Any], x: dn.Tensor, jacobian: Any = dn.jacobian) -> np.ndarray:
    return jacobian(fun)(x).to_numpy().reshape(-1, x.size)


def lorenz_96(x: dn.Tensor) -> dn.Tensor:
    return (dn.roll(x, -1) - dn.roll(x, 2)) * dn.roll(x, 1) - x + 8.0


def brusselator(state: dn.Tensor) -> dn.Tensor:
    u, v = state[0], state[1]

    def laplacian(w: dn.Tensor) -> dn.Tensor:
        return dn.roll(w, 1) - 2.0 * w + dn.roll(w, -1)

    reaction = u * u * v
    return dn.stack([1.0 + reaction - 4.0 * u + laplacian(u), 3.0 * u - reaction + laplacian(v)])


def heat(u: dn.Tensor) -> dn.Tensor:
    """A step of nonlinear diffusion on a grid."""
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return inner + 0.1 * (1.0 + inner**2) * (around - 4.0 * inner)


def arrow(x: dn.Tensor) -> dn.Tensor:
    return dn.concatenate([dn.sum(x * x).reshape(1), x[1:] * x[0]])


def blocks(x: dn.Tensor) -> dn.Tensor:
    rows = x.reshape(-1, 4)
    return dn.sin(rows @ dn.tensor(MATRIX)) * rows


def through_scan(x: dn.Tensor) -> dn.Tensor:
    return dn.scan(0.0 * x[0], x, lambda s, v: (0.5 * s + v * v, s + v))[1]


def elementwise_scan(x: dn.Tensor) -> dn.Tensor:
    return dn.scan(0, x, lambda s, v: (s + 1, dn.exp(v)))[1]


def shifted_loop(x: dn.Tensor) -> dn.Tensor:
    """Each trip reads the neighbour: the last value depends on three elements."""
    return dn.for_(x, range(2), lambda y, _: y * dn.roll(y, 1))


def masked(x: dn.Tensor) -> dn.Tensor:
    return dn.select(dn.iota(x.size) % 2 == 0, x * x[0], 0.0)


def branch(x: dn.Tensor) -> dn.Tensor:
    return dn.cond([(x[0] > 0.0, lambda: dn.roll(x, 1) ** 2)], lambda: x * 3.0)


def scattered(x: dn.Tensor) -> dn.Tensor:
    return dn.indexed_add(x, dn.tensor([[1], [3], [1]]), x[:3] ** 2)


def replaced(x: dn.Tensor) -> dn.Tensor:
    return dn.put_slice(x * x, [2], dn.sin(x[:3]))


def convolved(x: dn.Tensor) -> dn.Tensor:
    return dn.convolve(x * x, dn.tensor([1.0, -2.0, 0.5]))


def strided_conv(x: dn.Tensor) -> dn.Tensor:
    kernel = dn.tensor(vector(2 * 2 * 3, 5).reshape(2, 2, 3))
    return dn.conv(x.reshape(1, 2, -1), kernel, strides=2, padding=[(1, 1)])


# Functions whose pattern has exactly the entries that differ from zero at a random point.
EXACT: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "Lorenz-96": (lorenz_96, (12,)),
    "Brusselator": (brusselator, (2, 8)),
    "heat on a grid": (heat, (6, 7)),
    "arrow": (arrow, (9,)),
    "blocks": (blocks, (12,)),
    "gather": (lambda x: x[INDICES] ** 2, (6,)),
    "take along an axis": (lambda x: dn.take(x, FEW % 3, axis=1) * 2.0, (2, 4)),
    "computed constant indices": (lambda x: dn.take(x, dn.iota(4) * 2) ** 2, (9,)),
    "scan": (through_scan, (7,)),
    "element-wise scan": (elementwise_scan, (7,)),
    "loop": (shifted_loop, (6,)),
    "mask": (masked, (7,)),
    "scatter": (scattered, (6,)),
    "replaced window": (replaced, (8,)),
    "convolution": (convolved, (9,)),
    "strided convolution": (strided_conv, (12,)),
    "cumulative sum": (lambda x: dn.cumulative_sum(x * x), (8,)),
    "reversed cumulative sum": (lambda x: dn.cumulative_sum(x, reverse=True) ** 2, (5,)),
    "cumulative product of rows": (lambda x: dn.cumulative_product(x, axis=1), (3, 4)),
    "sums of rows": (lambda x: dn.sum(x**2, axes=[1]), (4, 5)),
    "sums of columns": (lambda x: dn.sum(x**2, axes=[0]), (4, 5)),
    "batched product": (lambda x: x @ dn.transpose(x, [0, 2, 1]), (2, 3, 2)),
    "product": (lambda x: dn.tensor(MATRIX) @ x, (4, 3)),
    "fft": (lambda x: dn.real(dn.fft(x)) + dn.imag(dn.fft(x)), (3, 5)),
    "windows": (lambda x: dn.window_sum(x * x, (3,), strides=2), (9,)),
    "pad and reverse": (lambda x: dn.pad(dn.reverse(x) ** 2, 0.0, [(2, 1, 1)]), (4,)),
    "outer": (lambda x: x[:, None] * x, (4,)),
    "transpose": (lambda x: dn.transpose(x) ** 2, (3, 4)),
    "rounded": (lambda x: dn.floor(x) + dn.sign(x) + x[0], (4,)),
    "constant": (lambda x: dn.stop_grad(x) * 2.0, (4,)),
    "triangle": (lambda x: dn.tril(x) * 2.0, (4, 4)),
    "stack": (lambda x: dn.stack([x, x[::-1] ** 2], axis=1), (4,)),
}

# Functions whose pattern has more entries, because it holds for all values.
COVERED: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "sort": (lambda x: dn.sort(x, axis=1), (3, 5)),
    "greatest": (lambda x: dn.reduce_max(x, axes=[0]), (4, 3)),
    "top": (lambda x: dn.top_k(x, 2)[0], (3, 5)),
    "branch": (branch, (6,)),
    "computed index": (lambda x: x[dn.argmax(x)] * x, (6,)),
    "computed window": (lambda x: dn.slice(x, [dn.argmax(x[:3])], [3]) ** 2, (8,)),
    "written at a computed index": (lambda x: x.at[dn.argmin(x)].set(x[0] * x[1]), (6,)),
    "loop of unknown length": (
        lambda x: dn.while_(x, lambda y: dn.sum(y * y) > 1.0, lambda y: 0.5 * dn.roll(y, 1)),
        (5,),
    ),
    "solve": (lambda x: dn.linalg.solve(x @ x.T + 3.0 * dn.eye(3), x), (3, 3)),
    "inverse of blocks": (lambda x: dn.linalg.invert(x + 4.0 * dn.eye(3)), (2, 3, 3)),
    "clip": (lambda x: dn.clip(x, -0.5, 0.5), (6,)),
}
ALL = {**EXACT, **COVERED}


@pytest.mark.parametrize("name", ALL)
def test_pattern_covers_the_jacobian(name: str) -> None:
    fun, shape = ALL[name]
    for seed in range(3):
        x = dn.tensor(vector(int(np.prod(shape)), seed).reshape(shape))
        entries = dense(fun, x) != 0.0
        found = pattern(fun, x)
        assert found.shape == entries.shape
        assert not (entries & ~found).any()
        if name in EXACT:
            np.testing.assert_array_equal(found, entries)


@pytest.mark.filterwarnings("ignore:.*colors for")
@pytest.mark.parametrize("jacobian", [dn.jacobian, dn.jacfwd, dn.jacrev])
@pytest.mark.parametrize("name", ALL)
def test_sparse_is_dense(name: str, jacobian: Any) -> None:
    fun, shape = ALL[name]
    of = jacobian(fun, sparse=True)
    for seed in range(2):
        x = dn.tensor(vector(int(np.prod(shape)), seed).reshape(shape))
        got = of(x)
        assert isinstance(got, sparse.csr_array)
        assert got.dtype == np.float64
        assert got.has_canonical_format
        np.testing.assert_allclose(got.toarray(), dense(fun, x, jacobian), rtol=1e-12, atol=1e-14)


def covers(case: Case, dtype: str) -> None:
    """The pattern of each result by each argument has the entries of the Jacobian."""
    tensors = [dn.tensor(a) for a in drawn(case, dtype)]
    results = dn.tree.leaves(case.run(*tensors))
    for position in case.grad_args or range(len(tensors)):
        if str(tensors[position].dtype) != dtype:
            continue
        for leaf in range(len(results)):

            def one(*args: Any, leaf: int = leaf) -> Any:
                return dn.tree.leaves(case.run(*args))[leaf]

            found = pattern(one, *tensors, argnums=position)
            jacobian = dn.jacobian(one, argnums=position)(*tensors).to_numpy()
            entries = (jacobian != 0.0).reshape(found.shape)
            assert not (entries & ~found).any(), (position, leaf)


@pytest.mark.parametrize("case", FLOWS, ids=identify)
def test_rows_are_covered(case: Case) -> None:
    covers(case, "f64")


@pytest.mark.parametrize("case", COMPLEX, ids=identify)
def test_complex_rows_are_covered(case: Case) -> None:
    covers(case, "c128")


@pytest.mark.parametrize("case", [c for c in CASES if c.grad == "zero"], ids=identify)
def test_rows_without_a_gradient_have_no_entry(case: Case) -> None:
    dtype = "f64" if "f64" in case.dtypes else "s32"
    tensors = [dn.tensor(a) for a in case.arrays(dtype, draw=case.grad_draw or case.draw)]
    for position in range(len(tensors)):
        for leaf in range(len(dn.tree.leaves(case.run(*tensors)))):

            def one(*args: Any, leaf: int = leaf) -> Any:
                return dn.tree.leaves(case.run(*args))[leaf]

            assert dn.sparsity(one, *tensors, argnums=position).nnz == 0


def test_bands_take_few_colors() -> None:
    """What a pass costs is the number of colors: a tridiagonal Jacobian of any size takes three."""
    for size in (10, 1000):
        found = dn._core.sparsity(
            lambda u: u[1:-1] * (u[2:] - u[:-2]) + u[1:-1] ** 2, 0, (dn.tensor(vector(size)),)
        )[0]
        assert found.coloring(False)[1] == 3


def test_rows_are_colored_where_they_take_fewer_colors() -> None:
    """The first result depends on all elements: by columns each would take its own pass."""
    found = dn._core.sparsity(arrow, 0, (dn.tensor(vector(50)),))[0]
    assert (found.coloring(False)[1], found.coloring(True)[1]) == (50, 50)
    found = dn._core.sparsity(
        lambda x: dn.concatenate([dn.sum(x).reshape(1), x**2]), 0, (dn.tensor(vector(50)),)
    )[0]
    assert (found.coloring(False)[1], found.coloring(True)[1]) == (50, 2)


def test_colors_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    import defn.sparse

    monkeypatch.setattr(defn.sparse, "_PASS_BYTES", 1000)
    x = dn.tensor(vector(30))
    for jacobian in (dn.jacfwd, dn.jacrev):
        got = jacobian(lorenz_96, sparse=True)(x)
        np.testing.assert_allclose(got.toarray(), dense(lorenz_96, x), rtol=1e-12, atol=1e-14)


def test_second_call_traces_nothing() -> None:
    traced = []

    def counted(x: dn.Tensor) -> dn.Tensor:
        traced.append(x.shape)
        return x[1:] * x[:-1]

    of = dn.jacobian(counted, sparse=True)
    of(dn.tensor(vector(10)))
    first = len(traced)
    of(dn.tensor(vector(10, 1)))
    assert len(traced) == first
    assert of(dn.tensor(vector(11))).shape == (10, 11)
    assert len(traced) > first


def test_captured_positions_may_change() -> None:
    """A pattern depends on the captured indices; with others it is found again."""
    captured = {"indices": dn.tensor([0, 1, 2])}

    def read(x: dn.Tensor) -> dn.Tensor:
        return x[captured["indices"]] * x[3]

    of, x = dn.jacobian(read, sparse=True), dn.tensor(vector(6))
    for indices in ([0, 1, 2], [5, 4, 3], [0, 0, 0]):
        captured["indices"] = dn.tensor(indices)
        np.testing.assert_allclose(of(x).toarray(), dense(read, x))


def test_results_do_not_share_their_indices() -> None:
    of, x = dn.jacobian(lambda x: x * x, sparse=True), dn.tensor(vector(4))
    first = of(x)
    first.data[:] = 0.0
    first.eliminate_zeros()
    np.testing.assert_allclose(of(x).toarray(), np.diag(2.0 * x.to_numpy()))


def test_other_arguments_and_options() -> None:
    x, y = dn.tensor(vector(5)), dn.tensor(vector(5, 1))

    def mixed(x: dn.Tensor, y: dn.Tensor, *, scale: float) -> dn.Tensor:
        return scale * x * dn.roll(y, 1)

    got = dn.jacobian(mixed, argnums=1, sparse=True)(x, y, scale=2.0).toarray()
    want = dn.jacobian(mixed, argnums=1)(x, y, scale=2.0).to_numpy()
    np.testing.assert_allclose(got, want)
    # Positions that another argument gives may be anywhere.
    where = dn.tensor([1, 2])
    assert pattern(lambda x, where: x[where], x, where).all()
    got = dn.jacobian(lambda x, where: x[where], sparse=True)(x, where).toarray()
    np.testing.assert_allclose(got, np.eye(5)[[1, 2]])


def test_given_patterns() -> None:
    x = dn.tensor(vector(8))
    band = np.abs(np.arange(7)[:, None] - np.arange(8) + 0.5) < 1.0

    def differences(x: dn.Tensor) -> dn.Tensor:
        return x[1:] ** 2 - x[:-1] ** 2

    for given in (band, sparse.csr_array(band), sparse.coo_matrix(band.astype(float))):
        got = dn.jacobian(differences, sparse=given)(x)
        np.testing.assert_allclose(got.toarray(), dense(differences, x))
        assert got.nnz == 14


def test_hessian() -> None:
    def rosenbrock(x: dn.Tensor) -> dn.Tensor:
        return dn.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    x = dn.tensor(vector(9))
    got = dn.hessian(rosenbrock, sparse=True)(x)
    assert got.nnz == 9 + 2 * 8
    np.testing.assert_allclose(got.toarray(), dn.hessian(rosenbrock)(x).to_numpy(), rtol=1e-10)
    with pytest.raises(dn.OptionError, match="the value has 2 elements"):
        dn.hessian(lambda x: x[:2], sparse=True)(x)


def test_dtypes() -> None:
    for dtype, expected in (("f32", np.float32), ("bf16", np.float32), ("f64", np.float64)):
        x = dn.tensor([1.0, 2.0], dtype=dtype)
        got = dn.jacobian(lambda x: x * x, sparse=True)(x)
        assert got.dtype == expected
        np.testing.assert_array_equal(got.toarray(), [[2.0, 0.0], [0.0, 4.0]])


def test_custom_rules() -> None:
    """A rule that is not linear has no forward mode: reverse mode is taken, as without sparse."""

    def clipped(x: dn.Tensor) -> dn.Tensor:
        return dn.custom_grad(x * x, [x], lambda g: [dn.clip(g * 2.0 * x, -1.0, 1.0)])

    x = dn.tensor(vector(5))
    got = dn.jacobian(clipped, sparse=True)(x)
    np.testing.assert_allclose(got.toarray(), dense(clipped, x))
    assert got.nnz == 5
    with pytest.raises(dn.TraceError, match="not linear"):
        dn.jacfwd(clipped, sparse=True)(x)

    def mixed(x: dn.Tensor) -> dn.Tensor:
        return dn.custom_grad(x + dn.roll(x, 1), [x], lambda g: [g + dn.roll(g, -1)])

    np.testing.assert_array_equal(pattern(mixed, x), dense(mixed, x) != 0.0)


def test_rules_for_forward_mode() -> None:
    """The pattern is that of the rules, and covers both modes where there are two."""

    def forward(x: dn.Tensor) -> dn.Tensor:
        return dn.custom_jvp(x + dn.roll(x, 1), [x], lambda t: t + dn.roll(t, 1))

    def both(x: dn.Tensor) -> dn.Tensor:
        rules = (lambda g: [g], lambda t: dn.roll(t, 2))
        return dn.custom_grad(x * 1.0, [x], rules[0], jvp=rules[1])

    x = dn.tensor(vector(6))
    np.testing.assert_array_equal(pattern(forward, x), dense(forward, x) != 0.0)
    for jacobian in (dn.jacfwd, dn.jacrev):
        got = jacobian(both, sparse=True)(x).toarray()
        np.testing.assert_array_equal(got, dense(both, x, jacobian))
    assert dn.sparsity(both, x).nnz == 12


def test_solutions_depend_on_all_that_defines_them() -> None:
    matrix = dn.tensor(MATRIX + 4.0 * np.eye(4))

    def fun(x: dn.Tensor) -> dn.Tensor:
        b = x[:4]
        root = dn.implicit(dn.linalg.solve(matrix, b), lambda y: matrix @ y - b)
        return dn.concatenate([root, x[4:] ** 2])

    x = dn.tensor(vector(6))
    found = dn.sparsity(fun, x).toarray()
    assert found.tolist() == (dense(fun, x) != 0).tolist()
    np.testing.assert_allclose(dn.jacobian(fun, sparse=True)(x).toarray(), dense(fun, x), atol=1e-6)


def test_dense_patterns_warn_once() -> None:
    of, x = dn.jacobian(lambda x: x * dn.sum(x), sparse=True), dn.tensor(vector(20))
    with pytest.warns(UserWarning, match="20 colors for 20 columns.*dn.jvp") as caught:
        of(x)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of(x)


def test_constant_values() -> None:
    got = dn.jacobian(lambda x: dn.floor(x)[:2], sparse=True)(dn.tensor(vector(4)))
    assert (got.shape, got.nnz, got.dtype) == ((2, 4), 0, np.float64)


def test_newton_with_a_sparse_solver() -> None:
    """The steady state of a reaction-diffusion equation: Newton's method with SciPy's solver."""
    from scipy.sparse.linalg import spsolve

    def residual(u: dn.Tensor) -> dn.Tensor:
        padded = dn.pad(u, 0.0, [(1, 1, 0)])
        return padded[2:] - 2.0 * u + padded[:-2] - 0.01 * u**3 + 0.1

    slopes, u = dn.jacobian(residual, sparse=True), np.zeros(200)
    for _ in range(20):
        change = spsolve(slopes(u).tocsc(), residual(dn.tensor(u)).to_numpy())
        u = u - change
        if np.abs(change).max() < 1e-12:
            break
    assert np.abs(residual(dn.tensor(u)).to_numpy()).max() < 1e-9


def test_least_squares_takes_it() -> None:
    from scipy.optimize import least_squares

    def residual(x: dn.Tensor) -> dn.Tensor:
        return dn.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]])

    slopes = dn.jacobian(residual, sparse=True)
    start = np.full(50, -0.5)
    found = least_squares(lambda x: residual(dn.tensor(x)).to_numpy(), start, jac=slopes)
    np.testing.assert_allclose(found.x, np.ones(50), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: dn.jacobian(lambda x: x, sparse=True, argnums=(0,)),
            r"argnums is \(0,\), .* it must be an int",
        ),
        (
            lambda x: dn.jacobian(lambda t: t[0], sparse=True)((x, x)),
            "the argument is a container of 2 tensors, it must be one tensor",
        ),
        (
            lambda x: dn.jacobian(lambda x: (x, x), sparse=True)(x),
            "the value is a container of 2 tensors, it must be one tensor",
        ),
        (
            lambda x: dn.jacobian(lambda x: x, sparse=True)(dn.tensor([1, 2])),
            r"the argument is s32\[2\], one tensor of floats is required",
        ),
        (
            lambda x: dn.jacobian(lambda x: x, sparse=np.eye(3, dtype=bool))(x),
            r"the pattern has the shape \(3, 3\) and the argument is f64\[4\], a column",
        ),
        (
            lambda x: dn.jacobian(lambda x: x[:3], sparse=np.eye(4, dtype=bool))(x),
            r"the pattern has the shape \(4, 4\) and the value is f64\[3\], a row",
        ),
        (
            lambda x: dn.jacobian(lambda x: (x, x), sparse=True, has_aux=True),
            "has_aux is True, with sparse it must be False",
        ),
        (
            lambda x: dn.jacobian(lambda x: x, sparse=np.eye(4)),
            "sparse is an array of float64 with 2 axes",
        ),
        (
            lambda x: dn.jit(lambda x: dn.jacobian(lambda x: x, sparse=True)(x))(x),
            "a sparse matrix cannot be part of a traced function",
        ),
    ],
)
def test_errors(call: Callable[[dn.Tensor], Any], message: str) -> None:
    with pytest.raises(dn.OptionError, match=message):
        call(dn.tensor(vector(4)))


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(dn.OptionError, match="SciPy is not installed"):
        dn.jacobian(lambda x: x, sparse=True)
    with pytest.raises(dn.OptionError, match="SciPy is not installed"):
        dn.sparsity(lambda x: x, dn.tensor(vector(4)))
