"""Operations at the limits of their domains: wrapping, overflow, singular matrices, infinities."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import defn as dn
from cases.dtypes import COMPLEX, INTEGERS, NUMPY, limits
from defn.backends.numpy import NumPyBackend


def full(number: float, shape: tuple[int, ...], dtype: Any) -> Any:
    return dn.broadcast(dn.tensor(number, dtype=dtype), shape)


def ways(fun: Any, *arrays: Any) -> list[Any]:
    """A function's results: eager, compiled, and on NumPy's backend."""
    tensors = [dn.tensor(a) for a in arrays]
    found = [fun(*tensors), dn.jit(fun)(*tensors)]
    with dn.options(backend=NumPyBackend(), compiler="evaluator"):
        found.append(fun(*[dn.tensor(a) for a in arrays]))
    return found


class Defined(NumPyBackend):
    """NumPy's backend, with every block computed by its definition."""

    def block(self, tag: Any, out: Any, args: list[Any], fun: Any) -> Any:
        return fun(tag, *args)


def defined(fun: Any, *arrays: Any) -> Any:
    with dn.options(backend=Defined(), compiler="evaluator"):
        return fun(*[dn.tensor(a) for a in arrays])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_means_of_integers_do_not_wrap(dtype: str) -> None:
    low, high = limits(dtype)
    for end in (low, high):
        x = np.array([end] * 300, object).astype(NUMPY[dtype])
        # The exact result, in Python's integers.
        want = float(end)
        for got in ways(dn.mean, x):
            assert float(got) == pytest.approx(want, rel=1e-6)
        for got in ways(lambda x: dn.window_mean(x, 300), x):
            assert got.to_numpy()[0] == pytest.approx(want, rel=1e-6)
        for got in ways(lambda x: dn.weighted_mean(x, full(1, (300,), "u8")), x):
            assert float(got) == pytest.approx(want, rel=1e-6)
        for fun in (dn.variance, dn.standard_deviation):
            assert [float(got) for got in ways(fun, x)] == [0.0] * 3
    x = np.array([low, high] * 150, object).astype(NUMPY[dtype])
    spread = np.var([float(low), float(high)])
    for got in ways(dn.variance, x):
        assert float(got) == pytest.approx(spread, rel=1e-5)
    for got in ways(lambda x: dn.covariance(dn.new_axis(x, -1)), x):
        assert got.to_numpy()[0, 0] == pytest.approx(spread, rel=1e-5)


def test_a_mean_of_many_small_integers() -> None:
    x = dn.broadcast(dn.tensor(250, dtype="u8"), (20_000_000,))
    assert float(dn.mean(x)) == 250.0
    assert float(dn.variance(x)) == 0.0


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "c64"])
def test_means_do_not_overflow(dtype: str) -> None:
    # The greatest number of each dtype, and half of it.
    kind = NUMPY[dtype]
    real = np.float32 if dtype == "c64" else kind
    greatest = float(ml_dtypes.finfo(real).max)
    values = np.array([greatest, greatest / 2] * 50)
    x = (values * (1 - 1j) if dtype == "c64" else values).astype(kind)
    want = x.astype("c16" if dtype == "c64" else "f8").mean()
    for fun in (
        dn.mean,
        lambda x: dn.window_mean(x, 100)[0],
        lambda x: dn.weighted_mean(x, full(1, (100,), dtype)),
    ):
        for got in ways(fun, x):
            assert str(got.dtype) == dtype
            np.testing.assert_allclose(got.to_numpy().astype(want.dtype), want, rtol=2.0**-8)


def test_means_of_small_numbers_are_as_small() -> None:
    x = np.full(1000, 1e-38, np.float32)
    assert float(dn.mean(dn.tensor(x))) == pytest.approx(1e-38)


@pytest.mark.parametrize(
    ("dtype", "size"), [("u8", 257), ("s8", 129), ("u4", 17), ("s2", 3), ("u2", 5)]
)
def test_indices_fit_their_dtype(dtype: str, size: int) -> None:
    x = dn.iota((size,), dtype="s32")
    for op in (dn.argmax, dn.argmin, dn.argsort):
        with pytest.raises(dn.OptionError, match=f"{op.__name__}: dtype is {dtype}, it must be"):
            op(x, dtype=dtype)
        with pytest.raises(dn.OptionError):
            dn.jit(lambda x, op=op: op(x, dtype=dtype))(x)
    shorter = x[:-1]
    assert int(dn.argmax(shorter, dtype=dtype)) == size - 2
    np.testing.assert_array_equal(
        dn.argsort(shorter, dtype=dtype).to_numpy().astype(int), np.arange(size - 1)
    )


def test_long_axes_have_wide_indices() -> None:
    long = dn.template((2**31 + 1, 2), "u8")
    short = dn.template((2**31, 2), "u8")

    def dtypes(x: Any, axis: int) -> list[str]:
        types = []

        def f(x: Any) -> Any:
            results = [dn.argmax(x, axis=axis), dn.argmin(x, axis=axis), dn.argsort(x, axis=axis)]
            types.extend(str(result.dtype) for result in results)
            return results[0]

        dn.compile(f, [x])
        return types

    assert dtypes(long, 0) == ["s64"] * 3
    assert dtypes(short, 0) == ["s32"] * 3
    assert dtypes(long, 1) == ["s32"] * 3


@pytest.mark.parametrize("dtype", ["u8", "s32", "f32", "bf16", "c64"])
def test_no_axes_give_truth_values(dtype: str) -> None:
    x = np.array([3, 0, 1]).astype(NUMPY[dtype])
    for op in (dn.all, dn.any):
        for got in ways(lambda x, op=op: op(x, axes=[]), x):
            assert got.to_list() == [1, 0, 1]
            assert got.dtype == dn.all(dn.tensor(x)).dtype
    assert dn.all(dn.tensor([np.nan, -0.0]), axes=[]).to_list() == [1, 0]


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("transform", ["none", "transpose", "conjugate", "adjoint"])
def test_transforms_of_triangular_systems(transform: str, left_side: bool, lower: bool) -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) + 3 * np.eye(3)
    b = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    part = np.tril(a) if lower else np.triu(a)
    op = {
        "none": lambda m: m,
        "transpose": np.transpose,
        "conjugate": np.conj,
        "adjoint": lambda m: m.conj().T,
    }[transform]
    want = np.linalg.solve(op(part), b) if left_side else np.linalg.solve(op(part).T, b.T).T

    def solve(a: Any, b: Any) -> Any:
        return dn.linalg.triangular_solve(
            a, b, lower=lower, left_side=left_side, transform_a=transform
        )

    for got in ways(solve, a, b):
        np.testing.assert_allclose(got.to_numpy(), want, atol=1e-12)

    # The gradient G of a complex variable: a small change adds real(sum(G * change)) to the loss.
    weights = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))

    def loss(a: Any, b: Any) -> Any:
        return dn.sum(dn.real(solve(a, b) * weights))

    tensors = [dn.tensor(a), dn.tensor(b)]
    gradients = dn.grad(loss, argnums=(0, 1))(*tensors)
    for position, gradient in enumerate(gradients):
        change = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
        ends = []
        for step in (1e-6, -1e-6):
            moved = [a, b]
            moved[position] = moved[position] + step * change
            ends.append(float(loss(*[dn.tensor(m) for m in moved])))
        slope = (ends[0] - ends[1]) / 2e-6
        assert slope == pytest.approx(float((gradient.to_numpy() * change).sum().real), rel=1e-5)


def test_the_mode_of_a_scalar() -> None:
    for got in ways(lambda x: dn.mode(x, keep_axis=True), np.float32(3)):
        assert (got.shape, got.to_list()) == ((1,), [3.0])
    assert dn.mode(dn.tensor(3.0)).shape == ()


@pytest.mark.parametrize(
    ("shape", "mean_shape"),
    [((5, 3), (3,)), ((5, 3), (1,)), ((2, 5, 3), (3,)), ((2, 5, 3), (1, 3)), ((5, 3), (2, 3))],
)
def test_a_mean_of_a_covariance_broadcasts(
    shape: tuple[int, ...], mean_shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(2)
    x, mean = rng.normal(size=shape), rng.normal(size=mean_shape)
    apart = x - mean[..., None, :]
    want = np.swapaxes(apart, -1, -2) @ apart / 5
    for got in ways(dn.covariance, x, mean):
        np.testing.assert_allclose(got.to_numpy(), want)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_cut_of_a_pseudo_inverse_is_relative(dtype: str, scale: float) -> None:
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(5, 2)), rng.normal(size=(2, 4))
    exact = left @ right
    x = (exact * scale).astype(NUMPY[dtype])
    want = np.linalg.pinv(exact, rcond=1e-6) / scale
    for got in ways(dn.linalg.pinv, x):
        error = np.abs(got.to_numpy().astype("f8") - want).max() / np.abs(want).max()
        assert error < (1e-4 if dtype == "f32" else 1e-12)
    # Singular values are cut off relative to the largest one.
    diagonal = np.diag([4.0, 2.0, 0.5]) * (scale if dtype == "f64" else 1.0)
    want = np.linalg.pinv(diagonal, rcond=0.3)
    np.testing.assert_allclose(dn.linalg.pinv(dn.tensor(diagonal), eps=0.3).to_numpy(), want)


def test_pseudo_inverses_of_small_vectors() -> None:
    for x in (np.array([3e-30, 4e-30], np.float32), np.array(2e-30, np.float32)):
        want = x / (x.astype("f8") ** 2).sum()
        np.testing.assert_allclose(dn.linalg.pinv(dn.tensor(x)).to_numpy(), want, rtol=1e-6)
    assert dn.linalg.pinv(dn.tensor([0.0, 0.0])).to_list() == [0.0, 0.0]


def semidefinite(size: int, rank: int, dtype: str) -> np.ndarray:
    """A matrix of this rank, without negative eigenvalues."""
    rng = np.random.default_rng([size, rank])
    root = rng.normal(size=(size, rank))
    if dtype in COMPLEX:
        root = root + 1j * rng.normal(size=(size, rank))
    root = root.astype("c16" if dtype in COMPLEX else "f8")
    return (root @ root.conj().T).astype(NUMPY[dtype])


def factors(x: np.ndarray) -> list[Any]:
    return [*ways(dn.linalg.cholesky, x), defined(dn.linalg.cholesky, x)]


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize(("size", "rank"), [(2, 1), (3, 0), (4, 3), (10, 2), (40, 3), (70, 5)])
def test_singular_matrices_have_a_cholesky_factor(size: int, rank: int, dtype: str) -> None:
    x = semidefinite(size, rank, dtype)
    bound = 8 * size * np.finfo(NUMPY[dtype]).eps * np.abs(np.diagonal(x)).max(initial=0)
    for got in factors(x):
        factor = got.to_numpy()
        assert np.isfinite(factor).all()
        np.testing.assert_array_equal(factor, np.tril(factor))
        assert np.abs(factor @ factor.conj().T - x).max() <= bound


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("size", [3, 20, 60])
@pytest.mark.parametrize("kind", ["smooth", "graph", "projection", "few samples", "scales"])
def test_covariances_that_rounding_makes_indefinite(kind: str, size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    if kind == "smooth":
        points = np.sort(rng.uniform(size=size))
        points[1] = points[0]
        x = np.exp(-((points[:, None] - points) ** 2))
    elif kind == "graph":
        x = 2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
        x[0, 0] = x[-1, -1] = 1
    elif kind == "projection":
        columns = np.linalg.qr(rng.normal(size=(size, size)))[0][:, : size // 2 + 1]
        x = columns @ columns.T
    elif kind == "few samples":
        x = np.cov(rng.normal(size=(max(2, size // 2), size)).T)
    else:
        rows = rng.normal(size=(size, size - 1)) * 10.0 ** rng.uniform(-3, 3, size=(size, 1))
        x = rows @ rows.T
    x = x.astype(NUMPY[dtype])
    scale = np.sqrt(np.outer(np.diagonal(x), np.diagonal(x)))
    for got in factors(x):
        factor = got.to_numpy()
        np.testing.assert_array_equal(factor, np.tril(factor))
        error = np.abs(factor @ factor.T - x) / scale
        assert error.max() <= 16 * size * np.finfo(NUMPY[dtype]).eps
    for got in factors(x - 0.01 * np.diag(np.diagonal(x))):
        assert np.isnan(got.to_numpy()).all()


def test_cholesky_factors_of_singular_and_other_matrices() -> None:
    x = np.array([[[1, 1], [1, 1]], [[4, 2], [2, 5]], [[1, 2], [2, 1]], [[0, 0], [0, 4]]], "f4")
    nan = np.nan
    want = [[[1, 0], [1, 0]], [[2, 0], [1, 2]], [[nan, nan], [nan, nan]], [[0, 0], [0, 2]]]
    for got in factors(x):
        np.testing.assert_array_equal(got.to_numpy(), want)
    for refused in ([[0.0, 1.0], [1.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]], [[1.0, nan], [nan, 1.0]]):
        for got in factors(np.array(refused)):
            assert np.isnan(got.to_numpy()).all()


@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
def test_normal_vectors_of_a_singular_covariance(method: str) -> None:
    covariance = [[1.0, 1.0], [1.0, 1.0]]
    drawn, _ = dn.random.multivariate_normal(
        dn.random.key(3), dn.tensor([0.0, 2.0]), dn.tensor(covariance), shape=(50,), method=method
    )
    values = drawn.to_numpy()
    np.testing.assert_allclose(values[:, 0] + 2.0, values[:, 1], atol=2e-3)
    assert values.std() > 0.5


@pytest.mark.parametrize("dtype", COMPLEX)
def test_cube_roots_beside_infinity(dtype: str) -> None:
    for im in (1.0, -1.0, 0.0, -0.0, 1e30):
        x = np.array(complex(np.inf, im)).astype(NUMPY[dtype])
        got = dn.cbrt(dn.tensor(x)).to_numpy()
        assert (got.real, got.imag) == (np.inf, 0.0)
        assert np.signbit(got.imag) == np.signbit(im)


def test_products_of_complex_infinities_agree() -> None:
    rng = np.random.default_rng(0)
    parts = [0.0, 1.0, -2.0, np.inf, -np.inf]
    for size in (1, 2, 3, 7):
        for _ in range(100):
            x = dn.tensor([complex(*pair) for pair in rng.choice(parts, (size, 2))])
            # Products of infinities depend on their order, and windows have another than rows.
            whole = dn.window_product(x, size).to_numpy()[0]
            padded = dn.window_product(x, size + 4, padding=[(2, 2)]).to_numpy()[0]
            np.testing.assert_array_equal([padded.real, padded.imag], [whole.real, whole.imag])
    # A window that is long enough to be computed by doubling.
    long = np.full(120, 1 + 0j)
    long[100] = complex(np.inf, 0)
    got = dn.window_product(dn.tensor(long), 60, padding=[(30, 30)]).to_numpy()
    assert not np.isnan(got[:71]).any()


def test_the_gradient_of_imag() -> None:
    """The derivative of a holomorphic function, times the cotangent: imag(dz) is real(-i dz)."""
    gradient = dn.grad(lambda z: 3.0 * dn.imag(z))(dn.tensor(1 + 2j))
    assert gradient.item() == -3j
    assert "-i g" in (dn.imag.__doc__ or "")
    assert float(dn.grad(lambda x: dn.imag(x))(dn.tensor(1.0))) == 0.0


SELECTS = [
    ((3,), (2, 1), ()),
    ((2, 1), (3,), (1, 3)),
    ((1,), (3,), (3,)),
    ((), (2, 1), (3,)),
    ((2, 3), (), (3,)),
    ((4, 1, 1), (2, 1), (1, 3)),
    ((0, 1), (1, 3), (3,)),
]


@pytest.mark.parametrize("shapes", SELECTS, ids=str)
def test_a_select_broadcasts_all_three(shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(1)
    pred = rng.integers(0, 2, shapes[0]).astype("u1")
    a, b = (rng.normal(size=shape) for shape in shapes[1:])
    for got in ways(dn.select, pred, a, b):
        np.testing.assert_array_equal(got.to_numpy(), np.where(pred, a, b))

    weights = rng.normal(size=np.broadcast_shapes(*shapes))
    to_a, to_b = dn.grad(
        lambda a, b: dn.sum(dn.select(dn.tensor(pred), a, b) * weights), argnums=(0, 1)
    )(dn.tensor(a), dn.tensor(b))
    for got, mask, like in ((to_a, pred != 0, a), (to_b, pred == 0, b)):
        share = np.where(mask, weights, 0.0)
        for _ in range(share.ndim - like.ndim):
            share = share.sum(0)
        for axis, size in enumerate(like.shape):
            share = share.sum(axis, keepdims=True) if size == 1 else share
        np.testing.assert_allclose(got.to_numpy(), share)


def test_a_select_merges_names() -> None:
    pred = dn.tensor([[1], [0]], names=["row", None])
    branch = dn.tensor([1.0, 2.0, 3.0], names=["column"])
    for got in (dn.select(pred, branch, 0.0), dn.jit(dn.select)(pred, branch, 0.0)):
        assert got.names == ("row", "column")
        assert got.to_list() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    with pytest.raises(dn.AxisError):
        dn.select(dn.tensor([1, 0, 1], names=["other"]), branch, 0.0)


def test_a_vectorized_select_broadcasts_all_three() -> None:
    rng = np.random.default_rng(4)
    pred, a, b = rng.integers(0, 2, (4, 3)), rng.normal(size=(4, 2, 1)), rng.normal(size=(3,))
    rows = dn.vmap(dn.select, in_axes=(0, 0, None))(dn.tensor(pred), dn.tensor(a), dn.tensor(b))
    np.testing.assert_array_equal(rows.to_numpy(), np.where(pred[:, None, :], a, b))
