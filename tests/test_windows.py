"""Windows, convolutions, transforms and folds beyond their rows: edges, ties, sizes, functions."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn
from cases import store
from support import assert_alike, on_xla


def test_windows_of_the_manual() -> None:
    """A sum, a maximum with a stride and a dilation, and a mean, worked out by hand."""
    x = dn.tensor([[1, 2, 3], [4, 5, 6]])
    # 1+2+4+5, 2+3+5+6.
    assert dn.window_sum(x, (2, 2)).to_list() == [[12, 16]]
    # "same" pads the end if the padding is odd: the last window has the last column only.
    assert dn.window_sum(x, (1, 2), padding="same").to_list() == [[3, 5, 3], [9, 11, 6]]
    assert dn.window_max(x, (2, 2), strides=[1, 2]).to_list() == [[5]]
    assert dn.window_min(x, (1, 2), window_dilations=[1, 2]).to_list() == [[1], [4]]
    assert dn.window_mean(x, (2, 1), padding=[(1, 0), (0, 0)]).to_list() == [
        [0.5, 1.0, 1.5],
        [2.5, 3.5, 4.5],
    ]


def test_padding_of_windows_is_what_changes_nothing() -> None:
    for dtype, least, greatest in (
        ("u4", 0, 15),
        ("s8", -128, 127),
        ("f32", -np.inf, np.inf),
        ("f8_e4m3fn", -448.0, 448.0),
    ):
        x = dn.tensor(store([1], dtype))
        around = {"padding": [(1, 1)]}
        assert dn.window_max(x, 1, **around).to_list() == [least, 1, least]
        assert dn.window_min(x, 1, **around).to_list() == [greatest, 1, greatest]
        assert dn.window_sum(x, 1, **around).to_list() == [0, 1, 0]
        assert dn.window_product(x, 1, **around).to_list() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "f8_e5m2"])
def test_nan_wins_in_windows(dtype: str) -> None:
    x = dn.tensor(store([1.0, np.nan, np.inf, -np.inf, 2.0], dtype))
    for function in (dn.window_max, dn.window_min, dn.window_sum):
        got = function(x, 2).to_numpy().astype(float)
        assert np.isnan(got[:2]).all(), function
        assert not np.isnan(got[3]), function
    # Infinity minus infinity is NaN.
    assert np.isnan(dn.window_sum(x, 2).to_numpy().astype(float)[2])


def test_no_elements_and_many_axes() -> None:
    empty = dn.broadcast(1.0, (2, 0, 3))
    assert dn.window_sum(empty, (2, 1, 2)).shape == (1, 0, 2)
    assert dn.window_max(empty, (1, 1, 1)).shape == (2, 0, 3)
    assert (
        dn.window_sum(empty, (1, 2, 1), padding=[(0, 0), (1, 1), (0, 0)]).to_list()
        == [[[0.0] * 3]] * 2
    )
    assert dn.window_reduce(empty, 1.0, (1, 1, 1), dn.add).shape == (2, 0, 3)
    assert dn.reduce(empty, 5.0, dn.subtract, axes=1).to_list() == [[5.0] * 3] * 2
    assert dn.reduce(empty, 5.0, lambda x, acc: x - acc, axes=0).shape == (0, 3)
    assert dn.fft(empty).shape == (2, 0, 3)
    assert dn.fft(empty, axis=1).shape == (2, 0, 3)
    assert dn.rfft(empty, axis=1).shape == (2, 0, 3)
    assert dn.fft(empty, axis=1, length=2).to_list() == [[[0j] * 3] * 2] * 2
    assert dn.conv(dn.broadcast(1.0, (0, 2, 3)), dn.broadcast(1.0, (4, 2, 3))).shape == (0, 4, 1)
    nothing = dn.conv(dn.broadcast(1.0, (1, 0, 3)), dn.broadcast(1.0, (2, 0, 2)))
    assert nothing.to_list() == [[[0.0, 0.0]] * 2]
    for function in (dn.window_sum, dn.window_max):
        gradient = dn.grad(lambda x, f=function: dn.sum(f(x, (1, 1, 1))))(empty)
        assert gradient.shape == (2, 0, 3)
    deep = dn.iota((1, 2, 1, 2, 1, 2, 1, 2, 1, 2))
    want = np.arange(32).reshape(deep.shape).sum((1, 9), keepdims=True)
    assert (dn.window_sum(deep, (1, 2, 1, 1, 1, 1, 1, 1, 1, 2)).to_numpy() == want).all()
    scalar = dn.tensor(3)
    assert dn.window_sum(scalar, ()).item() == 3
    assert dn.window_reduce(scalar, 2, (), lambda x, acc: x - acc).item() == 1
    assert dn.reduce(scalar, 2, lambda x, acc: x - acc).item() == 1


@pytest.mark.parametrize("size", [40, 50, 333])
def test_long_windows(size: int) -> None:
    """Long windows are reduced by doubling; sums do not accumulate a running error."""
    rng = np.random.default_rng(size)
    x = rng.normal(size=(3, 1000, 2)).astype(np.float32)
    views = np.lib.stride_tricks.sliding_window_view(x, size, axis=1)
    ours = dn.tensor(x)
    assert (dn.window_max(ours, (1, size, 1)).to_numpy() == views.max(-1)).all()
    sums = dn.window_sum(ours, (1, size, 1), strides=[1, 3, 1]).to_numpy()
    want = views.astype(np.float64).sum(-1)[:, ::3]
    assert np.abs(sums - want).max() <= 1e-6 * size
    # A huge element does not affect windows that do not contain it.
    spike = np.ones(200, np.float32)
    spike[3] = 1e30
    assert (dn.window_sum(dn.tensor(spike), 60).to_numpy()[4:] == 60).all()


def test_enormous_padding_costs_nothing() -> None:
    x = dn.tensor([1, 2, 3])
    window, padding = 2**40, [(2**40 - 3, 0)]
    assert dn.window_sum(x, window, padding=padding).to_list() == [6]
    assert dn.window_max(x, window, padding=padding).to_list() == [3]
    source = dn.tensor([5])
    assert dn.window_scatter_max(x, source, 0, window, padding=padding).to_list() == [0, 0, 5]


def test_ties_of_windows_go_to_the_last() -> None:
    x = dn.tensor([2.0, 2.0, 1.0, 2.0])
    assert dn.grad(lambda v: dn.sum(dn.window_max(v, 2)))(x).to_list() == [0.0, 2.0, 0.0, 1.0]
    assert dn.window_scatter_max(x, dn.tensor([1.0, 10.0]), 0.0, 2, strides=2).to_list() == [
        0.0,
        1.0,
        0.0,
        10.0,
    ]
    # NaN is the greatest for a maximum, and the least for a minimum.
    nan = dn.tensor([np.nan, 1.0, 2.0])
    for function in (dn.window_scatter_max, dn.window_scatter_min):
        assert function(nan, dn.tensor([7.0]), 0.0, 3).to_list() == [7.0, 0.0, 0.0]


def test_gradients_through_padding_and_dilation() -> None:
    """Padding is never chosen, although a zero would be greater than every element."""
    x = dn.tensor([-3.0, -1.0, -2.0])
    gradient = dn.grad(lambda v: dn.sum(dn.window_max(v, 2, padding=[(1, 1)])))(x)
    # Windows (pad -3) (-3 -1) (-1 -2) (-2 pad).
    assert gradient.to_list() == [1.0, 2.0, 1.0]
    dilated = dn.grad(lambda v: dn.sum(dn.window_min(v, 2, window_dilations=2)))(x)
    assert dilated.to_list() == [1.0, 0.0, 0.0]
    cropped = dn.grad(lambda v: dn.sum(dn.window_max(v, 1, padding=[(-1, 0)])))(x)
    assert cropped.to_list() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("window", [(2, 2), (5, 4)])
def test_gradients_of_scattering(window: tuple[int, int]) -> None:
    """The graph unrolls a window of few elements; for many it has a loop."""
    rng = np.random.default_rng(5)
    x = dn.tensor(rng.permutation(42).reshape(6, 7).astype(np.float64))
    places = tuple(n - k + 1 for n, k in zip(x.shape, window, strict=True))
    source, weight = rng.normal(size=places), rng.normal(size=x.shape)

    def loss(source: dn.Tensor, init: dn.Tensor) -> dn.Tensor:
        return dn.sum(dn.window_scatter_max(x, source, init, window) * weight)

    to_source, to_init = dn.grad(loss, argnums=(0, 1))(source, 0.5)
    at = np.lib.stride_tricks.sliding_window_view(x.to_numpy(), window)
    want = np.array(
        [[weight[tuple(np.argwhere(x.to_numpy() == cell.max())[0])] for cell in row] for row in at]
    )
    assert np.allclose(to_source.to_numpy(), want)
    assert np.isclose(to_init.item(), weight.sum())
    twice = dn.grad(lambda s: dn.sum(dn.grad(lambda v: loss(v, 0.5) ** 2)(s)))(source)
    assert twice.shape == places


def test_second_gradients_of_convolutions() -> None:
    rng = np.random.default_rng(2)
    x, kernel = rng.normal(size=(2, 2, 5)), rng.normal(size=(3, 2, 2))

    def slope(x: dn.Tensor, kernel: dn.Tensor) -> dn.Tensor:
        inner = dn.grad(lambda v: dn.sum(dn.conv(v, kernel, strides=2) ** 3))(x)
        return dn.sum(inner * inner)

    got = dn.grad(slope)(x, kernel).to_numpy()
    step = 1e-5
    for place in np.ndindex(x.shape):
        shift = np.zeros(x.shape)
        shift[place] = step
        up, down = (slope(dn.tensor(x + s), dn.tensor(kernel)).item() for s in (shift, -shift))
        assert np.isclose(got[place], (up - down) / (2 * step), rtol=1e-4, atol=1e-4)


def test_zeros_around_a_convolution_are_multiplied() -> None:
    """An infinite weight times padding is NaN, with few output channels and with many.

    XLA may leave padding out, as it does for one channel.
    """
    x = dn.broadcast(1.0, (1, 1, 3))
    for features in (1, 8):
        kernel = np.full((features, 1, 2), np.inf, np.float32)
        got = dn.conv(x, kernel, padding=[(1, 0)]).to_numpy()
        assert (np.isnan(got[..., 0]) | (on_xla() & np.isinf(got[..., 0]))).all()
        assert np.isinf(got[..., 1:]).all()


@pytest.mark.parametrize("features", [1, 3, 16])
def test_large_convolutions(features: int) -> None:
    """Several blocks of positions and of summed elements, compared with SciPy."""
    signal = pytest.importorskip("scipy.signal")
    rng = np.random.default_rng(features)
    x = rng.normal(size=(1, 40, 70, 90))
    kernel = rng.normal(size=(features, 40, 5, 5))
    got = dn.conv(x, kernel).to_numpy()
    for feature in range(features):
        planes = [
            signal.correlate(a, b, "valid") for a, b in zip(x[0], kernel[feature], strict=True)
        ]
        assert np.allclose(got[0, feature], np.sum(planes, axis=0))


def test_transforms_undo_each_other() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 6, 97, 128, 1000):
        x = rng.normal(size=(3, size)) + 1j * rng.normal(size=(3, size))
        assert np.allclose(dn.ifft(dn.fft(x)).to_numpy(), x)
        assert np.allclose(dn.fft(x).to_numpy(), np.fft.fft(x))
        real = dn.irfft(dn.rfft(x.real), length=size)
        assert np.allclose(real.to_numpy(), x.real)
    assert dn.fft(dn.tensor([1.0, np.nan])).to_numpy().view(np.float32).sum() != 0


def test_transforms_keep_small_values() -> None:
    """``eps`` lets a backend flush small values to zero; the CPU's kernels do not."""
    tiny = dn.fft(dn.tensor(np.array([1e-20, 0.0])), eps=1.0)
    assert tiny.to_list() == [1e-20 + 0j, 1e-20 + 0j]


def polynomial(x: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
    return acc * 3 + x


def test_folds_go_from_left_to_right() -> None:
    # ((0 * 3 + 1) * 3 + 2) * 3 + 3, of rows and of columns.
    x = dn.tensor([[1, 2, 3], [4, 5, 6]])
    assert dn.reduce(x, 0, polynomial, axes=1).to_list() == [18, 57]
    assert dn.reduce(x, 0, polynomial, axes=0).to_list() == [7, 11, 15]
    assert dn.reduce(x, 0, polynomial).item() == 543
    assert dn.reduce(x, 0, polynomial, axes=[1, 0]).item() == 543
    many = dn.tensor(np.arange(100, dtype=np.int32) % 5)
    want = 0
    for digit in many.to_list():
        want = want * 3 + digit
    want = (want + 2**31) % 2**32 - 2**31
    assert dn.reduce(many, 0, polynomial).item() == want
    rows = dn.broadcast(many, (4, 100))
    assert dn.reduce(rows, 0, polynomial, axes=1).to_list() == [want] * 4


def test_folds_by_one_op() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-5, 6, size=(5, 6)).astype(np.int32)
    for function, oracle in (
        (dn.add, x.sum(1) + 7),
        (lambda a, b: dn.multiply(b, a), x.prod(1) * 7),
        (dn.max, np.maximum(x.max(1), 7)),
        (dn.min, np.minimum(x.min(1), 7)),
    ):
        assert dn.reduce(x, 7, function, axes=1).to_list() == oracle.tolist()
        got = dn.window_reduce(x, 7, (1, 6), function)
        assert got.to_list() == [[value] for value in oracle.tolist()]
    # Integers wrap in their own dtype, whichever path computes the sum.
    bytes_ = dn.tensor(store([200, 100], "u8"))
    assert dn.reduce(bytes_, 0, dn.add).item() == 44
    assert dn.reduce(dn.tensor(store([2**63], "u64")), 1, dn.add).item() == 2**63 + 1


def test_functions_may_use_tensors_and_control_flow() -> None:
    scale = dn.tensor([1.0, 2.0])
    x = dn.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])

    def weighted(x: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        return acc + dn.sum(scale * x)

    def positive(x: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        return dn.if_(x > 0.0, lambda: acc + x, lambda: acc)

    def clipped(x: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        return dn.clip(x + acc, 0.0, scale[1])

    for run in (lambda f, *a, **o: f(*a, **o), lambda f, *a, **o: dn.jit(lambda: f(*a, **o))()):
        assert run(dn.reduce, x, 0.0, weighted, axes=1).to_list() == [6.0, 9.0]
        assert run(dn.reduce, x, 0.0, positive, axes=1).to_list() == [4.0, 9.0]
        assert run(dn.reduce, x, 0.0, positive).item() == 13.0
        assert run(dn.reduce, x, 0.0, clipped, axes=0).to_list() == [2.0, 2.0, 0.0]
        sums = run(dn.window_reduce, x, 0.0, (1, 2), weighted)
        assert sums.to_list() == [[-3.0, 3.0], [27.0, -3.0]]
        sums = run(dn.window_reduce, x, 0.0, (2, 3), positive, padding="same")
        assert sums.shape == (2, 3)
        assert sums.to_list() == [[10.0, 13.0, 8.0], [9.0, 9.0, 5.0]]


def test_what_a_function_raises_comes_out() -> None:
    def broken(x: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        dn.reduce(dn.tensor([1.0]), 0.0, broken)
    with pytest.raises(LookupError, match="mine"):
        dn.jit(lambda x: dn.window_reduce(x, 0.0, 1, broken))(dn.tensor([1.0]))


def test_folds_of_long_vectors() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1000, size=20_000).astype(np.int64)
    want = 0
    for value in x.tolist():
        want = (want * 31 + value) % 2**64
    want = (want + 2**63) % 2**64 - 2**63
    assert dn.reduce(x, 0, lambda x, acc: acc * 31 + x).item() == want


@pytest.mark.parametrize(
    ("name", "padding"), [("window_sum", 0), ("window_product", 1), ("window_max", -np.inf)]
)
@pytest.mark.parametrize(("size", "stride"), [(2, 1), (2, 2), (40, 1), (40, 3)])
def test_an_empty_axis_behind_the_window(name: str, padding: float, size: int, stride: int) -> None:
    x = dn.broadcast(1.0, (64, 0))
    found = getattr(dn, name)(x, (size, 1), strides=[stride, 1], padding=[(0, 0), (1, 2)])
    want = np.full(((64 - size) // stride + 1, 3), padding)
    np.testing.assert_array_equal(found.to_numpy(), want)


FLOAT_FOLDS = (
    lambda x, acc: dn.clip(dn.sin(x) * acc + dn.exp(acc / 4), -1.5, 1.5),
    lambda x, acc: dn.max(acc, x) - dn.remainder(x, 0.75) + dn.sqrt(dn.abs(acc)),
    lambda x, acc: dn.select(dn.logical_or(x > acc, dn.is_nan(x)), dn.atan2(x, acc), dn.floor(acc)),
    lambda x, acc: dn.as_type(dn.as_type(acc * 10 + x, "s32"), x.dtype) / 7,
    lambda x, acc: dn.pow(dn.min(dn.abs(acc), 2), x) + dn.as_type(x != acc, x.dtype),
    lambda x, acc: 1 * dn.logical_and(acc, x) - dn.logical_not(x) + (x <= 0.5),
)


def at_most(number: int, x: dn.Tensor) -> int:
    """The number, or the greatest value of the dtype."""
    return min(number, 2 ** (x.dtype.bits - (x.dtype.kind == "signed")) - 1)


INTEGER_FOLDS = (
    lambda x, acc: acc * at_most(31, acc) + x,
    lambda x, acc: dn.quotient(acc, x) - dn.remainder(acc, at_most(7, acc)) + dn.max(x, acc),
    lambda x, acc: dn.bitwise_xor(dn.left_shift(acc, at_most(3, acc)), dn.right_shift(acc, x)),
    lambda x, acc: dn.select(x >= acc, dn.pow(x, at_most(3, x)), dn.bitwise_not(acc)),
    lambda x, acc: dn.as_type(dn.sqrt(dn.as_type(acc, "f64") + x), x.dtype) + dn.sign(x),
    lambda x, acc: dn.clip(dn.min(acc, x), 2, 5) + dn.population_count(dn.bitwise_or(acc, x)),
)


@pytest.mark.parametrize(
    "dtype", "u4 u8 u16 u32 u64 s2 s8 s16 s32 s64 f8_e5m2 bf16 f16 f32 f64".split()
)
def test_compiled_folds_have_the_bits_of_kernels(dtype: str) -> None:
    """Compiled programs fold in a loop, kernels many positions at once."""
    rng = np.random.default_rng(7)
    whole = dtype[0] in "us"
    x = rng.integers(1, 2 if dtype == "s2" else 7, (60, 3)) if whole else rng.normal(size=(60, 3))
    few = dn.as_type(dn.tensor(x), dtype)
    many = dn.tile(few, [1, 9])
    for function in INTEGER_FOLDS if whole else FLOAT_FOLDS:
        fold = lambda x, function=function: dn.reduce(  # noqa: E731
            x, dn.as_type(1, dtype), lambda x, acc: dn.as_type(function(x, acc), dtype), axes=0
        )
        got, want = fold(few), fold(many)
        for part in np.split(want.to_numpy(), 9):
            assert got.to_numpy().tobytes() == part.tobytes()
        if not on_xla():
            assert_alike(dn.jit(fold)(few), got)


def test_folds_without_a_result_are_refused() -> None:
    x = dn.tensor([4, 2, 0, 1])
    with pytest.raises(dn.Error, match="zero"):
        dn.reduce(x, 100, lambda x, acc: dn.quotient(acc, x) + 1)
    with pytest.raises(dn.Error, match="negative"):
        dn.reduce(x - 3, 100, lambda x, acc: dn.left_shift(acc, x) + 1)
    with pytest.raises(dn.Error, match="negative"):
        dn.reduce(x - 3, 100, lambda x, acc: dn.pow(acc, x) + 1)
    assert dn.reduce(x, 100, lambda x, acc: acc + dn.pow(x, x), axes=0).item() == 100 + 262
