"""Transforms along several axes, of real elements and with other norms, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import defn as dn

RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)
NORMS = ("backward", "ortho", "forward")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")


def operand(name: str) -> np.ndarray:
    return REAL if name in ("rfft", "rfft2", "rfftn", "ihfft") else COMPLEX


def is_near(ours: Any, theirs: np.ndarray) -> bool:
    ours = ours.to_numpy()
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    ("axes", "sizes"),
    [(None, None), ([2], None), ([-1, 0], None), ([1, 0, 2], [4, 3, 7]), (None, [2, 8])],
)
def test_several_axes_are_numpys(name: str, axes: Any, sizes: Any, norm: Any) -> None:
    x = operand(name)
    last = None if axes is not None or sizes is None else (-2, -1)
    want = getattr(np.fft, name)(x, s=sizes, axes=axes if last is None else last, norm=norm)
    function = getattr(dn, name)
    assert is_near(function(x, axes=axes, lengths=sizes, norm=norm), want)
    jitted = dn.jit(lambda x: function(x, axes=axes, lengths=sizes, norm=norm))
    assert is_near(jitted(x), want)


@pytest.mark.parametrize("norm", NORMS)
def test_inverses_give_back_their_operands(norm: Any) -> None:
    for forward, inverse in (("fft", "ifft"), ("fft2", "ifft2"), ("fftn", "ifftn")):
        there = getattr(dn, forward)(COMPLEX, norm=norm)
        assert is_near(getattr(dn, inverse)(there, norm=norm), COMPLEX)
    assert is_near(dn.irfft(dn.rfft(REAL, norm=norm), length=5, norm=norm), REAL)
    assert is_near(dn.hfft(dn.ihfft(REAL, norm=norm), length=5, norm=norm), REAL)
    whole = dn.irfftn(dn.rfftn(REAL, norm=norm), lengths=[3, 4, 5], norm=norm)
    assert is_near(whole, REAL)
    assert is_near(dn.irfft2(dn.rfft2(REAL, norm=norm), lengths=[4, 5], norm=norm), REAL)


def test_a_unitary_transform_keeps_norms() -> None:
    transformed = dn.fftn(COMPLEX, norm="ortho").to_numpy()
    assert np.isclose(np.linalg.norm(transformed), np.linalg.norm(COMPLEX))


def test_no_axis_leaves_elements_as_they_are() -> None:
    got = dn.fftn(dn.tensor([1, 2]), axes=[])
    assert (str(got.dtype), got.to_list()) == ("c64", [1, 2])
    assert dn.ifftn(dn.tensor(2.0, dtype="f64")).to_numpy() == np.complex128(2)
    assert dn.fftshift(dn.tensor(3)).item() == 3


def test_names_are_kept() -> None:
    x = dn.tensor(REAL, names=["a", None, "b"])
    for name in SEVERAL:
        assert getattr(dn, name)(x, axes=["b", "a"]).names == ("a", None, "b")
    assert dn.fftshift(x, axes="b").names == ("a", None, "b")
    assert dn.fftfreq(4, name="f").names == ("f",)


@pytest.mark.parametrize("name", SEVERAL)
def test_each_example_is_transformed(name: str) -> None:
    function = getattr(dn, name)
    x = operand(name)
    want = np.stack([function(one, axes=[0], norm="ortho").to_numpy() for one in x])
    got = dn.vmap(lambda one: function(one, axes=[0], norm="ortho"))(x)
    assert np.array_equal(got.to_numpy(), want)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["irfftn", "hfft", "ihfft", "rfft2", "irfft2", "fftn"])
def test_gradients_are_those_of_finite_differences(name: str, norm: Any) -> None:
    function = getattr(dn, name)
    weights = np.cos(np.arange(200.0))

    def loss(x: Any) -> Any:
        y = function(x, norm=norm)
        flat = dn.reshape(dn.abs(y + 0.3), (-1,))
        return dn.sum(flat * weights[: flat.size])

    x = REAL[:, :3, :3]
    gradient = dn.grad(loss)(x).to_numpy()
    step = 1e-6
    for at in ((0, 0, 0), (1, 2, 1), (2, 1, 2)):
        ahead, behind = x.copy(), x.copy()
        ahead[at] += step
        behind[at] -= step
        slope = (loss(ahead).item() - loss(behind).item()) / (2 * step)
        assert np.isclose(gradient[at], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("size", [0, 1, 4, 5])
def test_shifts_undo_each_other(size: int) -> None:
    x = np.arange(size * 3.0).reshape(size, 3)
    there = dn.fftshift(x)
    assert np.array_equal(there.to_numpy(), np.fft.fftshift(x))
    assert np.array_equal(dn.ifftshift(there).to_numpy(), x)
    back = dn.ifftshift(x, [0])
    assert np.array_equal(back.to_numpy(), np.fft.ifftshift(x, [0]))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 1000])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_are_numpys(name: str, n: int) -> None:
    want = getattr(np.fft, name)(n, 0.25)
    got = getattr(dn, name)(n, 0.25, dtype="f64").to_numpy()
    # NumPy multiplies by the rounded inverse of n d.
    assert np.allclose(got, want, rtol=5e-16, atol=0)
    got = getattr(dn, name)(n, 0.1)
    assert str(got.dtype) == "f32"
    assert np.allclose(got.to_numpy(), getattr(np.fft, name)(n, 0.1), rtol=3e-7)


def test_a_distance_may_be_traced() -> None:
    d = np.float64(0.5)
    got = dn.jit(lambda d: dn.fftfreq(5, d, dtype="f64"))(d)
    assert is_near(got, np.fft.fftfreq(5, 0.5))
    slope = dn.grad(lambda d: dn.sum(dn.rfftfreq(5, d, dtype="f64")))(d).item()
    assert np.isclose(slope, -np.fft.rfftfreq(5, 0.5).sum() / 0.5)
    rows = dn.vmap(lambda d: dn.rfftfreq(4, d, dtype="f64"))(np.array([0.5, 0.25]))
    assert is_near(rows, np.stack([np.fft.rfftfreq(4, 0.5), np.fft.rfftfreq(4, 0.25)]))


def test_a_small_float_is_rounded_once() -> None:
    # Divided by the length and multiplied again in f16, this would lose bits or be 0.
    x = np.full(513, 1e-6, dtype=np.float16)
    want = np.fft.irfft(x.astype(np.float64), norm="forward").astype(np.float16)
    assert np.array_equal(dn.irfft(x, norm="forward").to_numpy(), want)
