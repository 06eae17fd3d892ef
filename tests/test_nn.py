"""Functions of neural networks beside JAX's: values and gradients, far from 0 and at kinks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import defn as dn
from cases.dtypes import EPSILON, NUMPY

GREATEST = {"f32": 3.4e38, "f64": 1.7e308, "bf16": 3.3e38, "f16": 65504.0}

ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "relu": (dn.nn.relu, lambda nn, x: nn.relu(x)),
    "relu6": (dn.nn.relu6, lambda nn, x: nn.relu6(x)),
    "leaky_relu": (dn.nn.leaky_relu, lambda nn, x: nn.leaky_relu(x)),
    "leaky_relu(0.2)": (lambda x: dn.nn.leaky_relu(x, 0.2), lambda nn, x: nn.leaky_relu(x, 0.2)),
    "elu": (dn.nn.elu, lambda nn, x: nn.elu(x)),
    "elu(0.5)": (lambda x: dn.nn.elu(x, 0.5), lambda nn, x: nn.elu(x, 0.5)),
    "selu": (dn.nn.selu, lambda nn, x: nn.selu(x)),
    "celu(2)": (lambda x: dn.nn.celu(x, 2.0), lambda nn, x: nn.celu(x, 2.0)),
    "gelu": (dn.nn.gelu, lambda nn, x: nn.gelu(x, approximate=False)),
    "gelu(approximate)": (
        lambda x: dn.nn.gelu(x, approximate=True),
        lambda nn, x: nn.gelu(x, approximate=True),
    ),
    "silu": (dn.nn.silu, lambda nn, x: nn.silu(x)),
    "softplus": (dn.nn.softplus, lambda nn, x: nn.softplus(x)),
    "softsign": (dn.nn.softsign, lambda nn, x: nn.soft_sign(x)),
    "hard_tanh": (dn.nn.hard_tanh, lambda nn, x: nn.hard_tanh(x)),
    "hard_sigmoid": (dn.nn.hard_sigmoid, lambda nn, x: nn.hard_sigmoid(x)),
    "hard_silu": (dn.nn.hard_silu, lambda nn, x: nn.hard_silu(x)),
    "log_sigmoid": (dn.nn.log_sigmoid, lambda nn, x: nn.log_sigmoid(x)),
    "mish": (dn.nn.mish, lambda nn, x: nn.mish(x)),
    "glu": (dn.nn.glu, lambda nn, x: nn.glu(x)),
}


def near(ours: Any, theirs: Any, dtype: str, ulps: float = 32) -> None:
    """Compares with an error of some units in the last place, absolute for numbers below 1."""
    ours, theirs = (np.asarray(value).astype(np.float64) for value in (ours, theirs))
    assert ours.shape == theirs.shape
    error = np.abs(ours - theirs)
    bound = ulps * EPSILON[dtype] * np.maximum(np.abs(theirs), 1)
    assert (error <= bound).all(), (ours, theirs)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_jaxs(name: str, dtype: str) -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = ACTIVATIONS[name]
    x = np.linspace(-9.3, 9.1, 64).astype(NUMPY[dtype])
    weights = np.cos(np.arange(64 if name != "glu" else 32)).astype(NUMPY[dtype])
    with jax.enable_x64(True):
        want, pull = jax.vjp(lambda x: theirs(jax.nn, x), x)
        (slope,) = pull(weights.astype(want.dtype))
        tangent = jax.jvp(lambda x: theirs(jax.nn, x), (x,), (x,))[1]
    got, pull = dn.vjp(ours, x)
    assert got.dtype == dtype
    # JAX rounds each operation to bf16, and this library only the result.
    ulps = 32 if dtype != "bf16" else 4
    if name == "gelu(approximate)":
        # In JAX's form `1 + tanh(u)` cancels at negative numbers.
        ulps *= 8
    near(got, want, dtype, ulps)
    near(pull(weights)[0], slope, dtype, 2 * ulps)
    near(dn.jvp(ours, (x,), (x,))[1], tangent, dtype, 8 * ulps)


@pytest.mark.parametrize("dtype", sorted(GREATEST))
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_far_from_zero_are_finite(name: str, dtype: str) -> None:
    """Also where ``exp(x)``, ``x * x`` and ``x * x * x`` overflow.

    SELU multiplies by 1.05. A second derivative has a factor of ``2 * x``.
    """
    ours = ACTIVATIONS[name][0]
    sizes = np.array([0.0, 1.0, 20.0, 100.0, 1e3, 6e4, 1e12, 1e20, 1e200])
    greatest = GREATEST[dtype] / (1.1 if name == "selu" else 1)
    sizes = np.append(sizes[sizes < greatest / 4], [greatest / 4, greatest])
    x = np.concatenate([sizes, -sizes]).astype(NUMPY[dtype])
    for compiler in ("cpu", "evaluator"):
        with dn.options(compiler=compiler):
            value, slope = dn.value_and_grad(lambda x: dn.sum(ours(x) / GREATEST[dtype] / 64))(x)
            inner = x[np.abs(x) < greatest / 2]
            second = dn.grad(lambda x: dn.sum(dn.grad(lambda x: dn.sum(ours(x)))(x)))(inner)
        assert np.isfinite(np.asarray(ours(x)).astype(np.float64)).all()
        assert np.isfinite(float(value))
        assert np.isfinite(np.asarray(slope).astype(np.float64)).all()
        assert np.isfinite(np.asarray(second).astype(np.float64)).all()


KINKS = {
    "relu": [(0.0, 0.0)],
    "relu6": [(0.0, 0.0), (6.0, 0.0)],
    "leaky_relu": [(0.0, 1.0)],
    "leaky_relu(0.2)": [(0.0, 1.0), (-0.0, 1.0)],
    "elu": [(0.0, 1.0)],
    "elu(0.5)": [(0.0, 0.5)],
    "celu(2)": [(0.0, 1.0)],
    "hard_tanh": [(-1.0, 1.0), (1.0, 1.0)],
    "hard_sigmoid": [(-3.0, 0.0), (3.0, 0.0)],
    "hard_silu": [(-3.0, 0.0), (3.0, 1.0)],
    "softsign": [(0.0, 1.0)],
    "softplus": [(0.0, 0.5)],
    "log_sigmoid": [(0.0, 0.5)],
}
# JAX's slope is the mean of both sides where its definition is a maximum or a minimum.
OWN_KINKS = {"relu6", "hard_sigmoid", "hard_silu"}


@pytest.mark.parametrize("name", KINKS)
def test_slopes_at_kinks(name: str) -> None:
    ours, theirs = ACTIVATIONS[name]
    for place, slope in KINKS[name]:
        assert float(dn.grad(ours)(dn.tensor(place))) == slope
        assert float(dn.jvp(ours, (dn.tensor(place),), (dn.tensor(1.0),))[1]) == slope
        if name not in OWN_KINKS:
            jax = pytest.importorskip("jax")
            assert float(jax.grad(functools.partial(theirs, jax.nn))(place)) == slope


@pytest.mark.parametrize("name", ["relu", "softplus", "gelu", "hard_tanh", "mish"])
def test_nan_stays_nan(name: str) -> None:
    assert np.isnan(float(ACTIVATIONS[name][0](dn.tensor(float("nan")))))


def test_the_negative_tail_keeps_its_digits() -> None:
    """``1 + tanh(u)`` and ``1 + erf(u)`` are 0 in f32 where these still have all digits."""
    x = np.array([-9.0, -7.0, -5.0])
    for approximate in (False, True):
        wide = dn.nn.gelu(dn.tensor(x), approximate=approximate)
        narrow = dn.nn.gelu(dn.tensor(x.astype(np.float32)), approximate=approximate)
        np.testing.assert_allclose(np.asarray(narrow), np.asarray(wide), rtol=2e-5)
        assert (np.asarray(narrow) < 0).all()


def test_names_of_others_lead_here() -> None:
    for name, ours in (("swish", "silu"), ("hardtanh", "hard_tanh"), ("logsigmoid", "log_sigmoid")):
        with pytest.raises(AttributeError, match=rf"use dn\.nn\.{ours}\(x\)"):
            getattr(dn.nn, name)
    for module, name, ours in ((dn, "relu", "relu"), (dn.nn, "softpluss", "softplus")):
        with pytest.raises(AttributeError, match=rf"use dn\.nn\.{ours}"):
            getattr(module, name)


def test_bfloat16_is_rounded_once() -> None:
    x = np.linspace(-4, 4, 257).astype(ml_dtypes.bfloat16)
    got = np.asarray(dn.nn.gelu(x))
    want = np.asarray(dn.nn.gelu(x.astype(np.float32))).astype(ml_dtypes.bfloat16)
    assert (got == want).all()
