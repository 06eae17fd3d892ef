"""Functions of neural networks beside JAX's: values and gradients, far from 0 and at kinks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import optax
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
    for compiler in ("cpu", "evaluator") if dtype == "f32" else ("cpu",):
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


def softmax_mask(shape: tuple[int, ...]) -> np.ndarray:
    """Some elements, and in the second row none."""
    mask = np.cos(np.arange(np.prod(shape))).reshape(shape) > -0.3
    mask[1] = False
    return mask


LOGITS = np.sin(np.arange(20.0) * 3).reshape(4, 5) * 6
CLASSES = np.array([4, 0, 2, 2])
P = np.abs(np.cos(np.arange(20.0))).reshape(4, 5)
P /= P.sum(-1, keepdims=True)
P[0] = [0, 0, 1, 0, 0]
SIGNS = np.where(np.arange(20) % 3 == 0, 1.0, -1.0).reshape(4, 5)

# Ours, those of JAX or of optax, and the arguments that have gradients.
ROWS: dict[str, tuple[Any, Any, tuple[np.ndarray, ...]]] = {
    "softmax": (dn.nn.softmax, lambda j, o, x: j.nn.softmax(x), (LOGITS,)),
    "softmax(0)": (lambda x: dn.nn.softmax(x, 0), lambda j, o, x: j.nn.softmax(x, 0), (LOGITS,)),
    "softmax(where)": (
        lambda x: dn.nn.softmax(x, where=softmax_mask((4, 5))),
        lambda j, o, x: j.nn.softmax(x, where=softmax_mask((4, 5))),
        (LOGITS,),
    ),
    "log_softmax": (dn.nn.log_softmax, lambda j, o, x: j.nn.log_softmax(x), (LOGITS,)),
    "standardize": (dn.nn.standardize, lambda j, o, x: j.nn.standardize(x), (LOGITS,)),
    "cross_entropy of classes": (
        lambda x: dn.nn.cross_entropy(x, CLASSES),
        lambda j, o, x: o.softmax_cross_entropy_with_integer_labels(x, CLASSES),
        (LOGITS,),
    ),
    "cross_entropy of classes along 0": (
        lambda x: dn.nn.cross_entropy(x, CLASSES, axis=0),
        lambda j, o, x: o.softmax_cross_entropy_with_integer_labels(x, CLASSES, axis=0),
        (LOGITS.T,),
    ),
    "cross_entropy of probabilities": (
        dn.nn.cross_entropy,
        lambda j, o, x, p: o.softmax_cross_entropy(x, p),
        (LOGITS, P),
    ),
    "binary_cross_entropy": (
        dn.nn.binary_cross_entropy,
        lambda j, o, x, p: o.sigmoid_binary_cross_entropy(x, p),
        (LOGITS, P),
    ),
    "squared_error": (dn.nn.squared_error, lambda j, o, x, y: o.squared_error(x, y), (LOGITS, P)),
    "half of squared_error": (
        lambda x, y: 0.5 * dn.nn.squared_error(x, y),
        lambda j, o, x, y: o.l2_loss(x, y),
        (LOGITS, P),
    ),
    "absolute_error": (
        dn.nn.absolute_error,
        lambda j, o, x, y: j.numpy.abs(x - y),
        (LOGITS, P),
    ),
    "huber": (dn.nn.huber, lambda j, o, x, y: o.huber_loss(x, y), (LOGITS, P)),
    "huber(2)": (
        lambda x, y: dn.nn.huber(x, y, 2.0),
        lambda j, o, x, y: o.huber_loss(x, y, delta=2.0),
        (LOGITS, P),
    ),
    "log_cosh": (dn.nn.log_cosh, lambda j, o, x, y: o.log_cosh(x, y), (LOGITS, P)),
    "hinge": (dn.nn.hinge, lambda j, o, x, y: o.hinge_loss(x, y), (LOGITS, SIGNS)),
    "cosine_similarity": (
        dn.nn.cosine_similarity,
        lambda j, o, x, y: o.cosine_similarity(x, y, epsilon=1e-8),
        (LOGITS, P),
    ),
    "kl_divergence": (
        dn.nn.kl_divergence,
        lambda j, o, x, y: o.kl_divergence(x, y),
        (np.log(P[::-1] + 0.1), P),
    ),
}


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_and_losses_are_those_of_jax(name: str, dtype: str) -> None:
    ours, theirs, arrays = ROWS[name]
    arrays = tuple(array.astype(NUMPY[dtype]) for array in arrays)
    # In bf16 JAX rounds each operation, and this library only results: the oracle computes in f32.
    wide = tuple(a.astype(np.float32) if dtype == "bf16" else a for a in arrays)
    with jax.enable_x64(True):
        want, pull = jax.vjp(lambda *args: theirs(jax, optax, *args), *wide)
        weights = np.cos(np.arange(want.size)).reshape(want.shape).astype(NUMPY[dtype])
        slopes = pull(weights.astype(want.dtype))
        tangent = jax.jvp(lambda *args: theirs(jax, optax, *args), wide, wide)[1]
    got, own_pull = dn.vjp(ours, *arrays)
    assert got.dtype == dtype
    ulps = 2 if dtype == "bf16" else 64
    near(got, want, dtype, ulps)
    for slope, own in zip(slopes, own_pull(weights), strict=True):
        # The slope of 0 log(0) is infinite; JAX and this library differ in what they give.
        inside = arrays[1].astype(np.float64) != 0 if name == "kl_divergence" else slice(None)
        near(np.asarray(own)[inside], np.asarray(slope)[inside], dtype, ulps)
    near(dn.jvp(ours, arrays, arrays)[1], tangent, dtype, 4 * ulps)


def test_one_hot_is_jaxs() -> None:
    labels = np.array([[0, 2, -1], [5, 1, 3]])
    for axis in (-1, 0, 1):
        want = np.asarray(jax.nn.one_hot(labels, 4, axis=axis))
        got = dn.nn.one_hot(labels, 4, axis=axis)
        assert got.dtype == "f32"
        assert np.array_equal(np.asarray(got), want)
    assert dn.nn.one_hot(labels, 4, dtype="bool").dtype == "bool"
    assert dn.nn.one_hot(dn.tensor([3, 0], dtype="u2"), 4).to_list() == [
        [0.0, 0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 0.0],
    ]
    assert dn.nn.one_hot(dn.tensor(1, names=[]), 0).shape == (0,)


def test_a_class_out_of_range_is_an_error_or_nan() -> None:
    for labels in ([0, 5, 1, 1], [0, -1, 1, 1]):
        if dn.default_backend() == "cpu":
            with pytest.raises(dn.BoundsError, match=r"must be in 0\.\.5"):
                dn.nn.cross_entropy(LOGITS, dn.tensor(labels))
        loss = dn.jit(dn.nn.cross_entropy)(LOGITS, dn.tensor(labels))
        assert np.isnan(np.asarray(loss)).tolist() == [False, True, False, False]
        slope = dn.grad(lambda x, y: dn.sum(dn.nn.cross_entropy(x, y)))(LOGITS, dn.tensor(labels))
        assert np.isfinite(np.asarray(slope)).all()
    for dtype in ("u8", "s8", "u64"):
        labels = dn.tensor(CLASSES, dtype=dtype)
        near(dn.nn.cross_entropy(LOGITS, labels), dn.nn.cross_entropy(LOGITS, CLASSES), "f64")


def test_checks_find_a_class_out_of_range() -> None:
    with dn.checks("nan", "inf"):
        for function in (dn.nn.cross_entropy, dn.jit(dn.nn.cross_entropy)):
            assert np.isfinite(np.asarray(function(LOGITS, CLASSES))).all()
        with pytest.raises(dn.NonFiniteError, match="has a NaN"):
            dn.jit(dn.nn.cross_entropy)(LOGITS, CLASSES + 1)
        assert np.isfinite(np.asarray(dn.nn.softmax(LOGITS, where=LOGITS > 0))).all()


def test_one_class_for_all_examples_broadcasts() -> None:
    want = dn.nn.cross_entropy(LOGITS, np.array([3, 3, 3, 3]))
    assert np.array_equal(np.asarray(dn.nn.cross_entropy(LOGITS, 3)), np.asarray(want))
    assert np.array_equal(np.asarray(dn.vmap(lambda x: dn.nn.cross_entropy(x, 3))(LOGITS)), want)


def test_infinite_logits() -> None:
    """Classes that are excluded by a logit of -inf take no part, also in gradients."""
    x = dn.tensor([0.0, -np.inf, 1.0])
    for labels in (dn.tensor(0), dn.tensor([0.5, 0.0, 0.5])):
        loss, slope = dn.value_and_grad(dn.nn.cross_entropy)(x, labels)
        assert np.isfinite(float(loss))
        assert np.isfinite(np.asarray(slope)).all()
        assert float(slope[1]) == 0.0
    assert float(dn.nn.cross_entropy(x, 1)) == np.inf
    assert dn.nn.binary_cross_entropy(
        dn.tensor([np.inf, -np.inf]), dn.tensor([1, 0])
    ).to_list() == [
        0.0,
        0.0,
    ]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64"])
def test_losses_of_large_operands_are_finite(dtype: str) -> None:
    greatest = GREATEST[dtype] / 4
    x = np.array([greatest, -greatest, 0.0, 1.0]).astype(NUMPY[dtype])
    y = np.array([0.0, 1.0, 0.0, 1.0]).astype(NUMPY[dtype])
    for loss in (dn.nn.huber, dn.nn.log_cosh, dn.nn.binary_cross_entropy, dn.nn.absolute_error):
        for argnums in (0, 1):
            slope = dn.grad(lambda *args, f=loss: dn.sum(f(*args)), argnums=argnums)(x, y)
            if loss is not dn.nn.binary_cross_entropy or argnums == 0:
                assert (np.abs(np.asarray(slope).astype(np.float64)) <= 1).all()
        assert np.isfinite(np.asarray(loss(x, y)).astype(np.float64)).all()
    assert np.isfinite(float(dn.nn.cross_entropy(x, 0)))
    cosine, slope = dn.value_and_grad(dn.nn.cosine_similarity)(x, x)
    assert float(cosine) == pytest.approx(1, abs=4 * EPSILON[dtype])
    assert np.isfinite(np.asarray(slope).astype(np.float64)).all()


def test_second_derivatives_at_equal_operands() -> None:
    for loss in (dn.nn.squared_error, dn.nn.huber, dn.nn.log_cosh):
        second = dn.grad(lambda x, f=loss: dn.grad(lambda x: f(x, 1.0))(x))(dn.tensor(1.0))
        assert float(second) == (2.0 if loss is dn.nn.squared_error else 1.0)


def test_log_cosh_keeps_its_digits_near_zero() -> None:
    x = np.array([1e-4, 1e-3, 0.1, 0.9999, 1.0, 3.0])
    got = np.asarray(dn.nn.log_cosh(x.astype(np.float32), 0.0)).astype(np.float64)
    want = np.asarray(dn.nn.log_cosh(x.astype(np.float32).astype(np.float64), 0.0))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_vectors_of_zeros_have_the_cosine_zero() -> None:
    x = dn.tensor([0.0, 0.0])
    cosine, slope = dn.value_and_grad(dn.nn.cosine_similarity)(x, dn.tensor([1.0, 0.0]))
    assert float(cosine) == 0.0
    assert np.isfinite(np.asarray(slope)).all()
    # Of a vector with one element, the slope along it is 0.
    slope = dn.grad(dn.nn.cosine_similarity)(dn.tensor([2.0, 0.0]), dn.tensor([1.0, 1.0]))
    np.testing.assert_allclose(np.asarray(slope), [0.0, 0.5 / np.sqrt(2)], atol=1e-6)


SCALE, BIAS = np.linspace(0.5, 2, 5), np.linspace(-1, 1, 5)


def scaled(jax: Any, x: Any, scale: Any, bias: Any, axes: Any) -> Any:
    return jax.nn.standardize(x, axis=axes, epsilon=1e-5) * scale + bias


NORMS: dict[str, tuple[Any, Any]] = {
    "layer_norm": (
        lambda x, s, b: dn.nn.layer_norm(x, scale=s, bias=b),
        lambda jax, x, s, b: scaled(jax, x, s, b, -1),
    ),
    "batch_norm": (
        lambda x, s, b: dn.nn.batch_norm(x, scale=s, bias=b)[0],
        lambda jax, x, s, b: scaled(jax, x, s, b, 0),
    ),
    "group_norm of one channel": (
        lambda x, s, b: dn.nn.group_norm(dn.new_axis(x, -1), 1, scale=s, bias=b)[..., 0],
        lambda jax, x, s, b: scaled(jax, x, s, b, -1),
    ),
}


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("name", NORMS)
def test_normalizations_are_those_of_jax(name: str, dtype: str) -> None:
    ours, theirs = NORMS[name]
    arrays = tuple(array.astype(NUMPY[dtype]) for array in (LOGITS, SCALE, BIAS))
    wide = tuple(a.astype(np.float32) if dtype == "bf16" else a for a in arrays)
    weights = np.cos(np.arange(20)).reshape(4, 5).astype(NUMPY[dtype])
    with jax.enable_x64(True):
        want, pull = jax.vjp(lambda *args: theirs(jax, *args), *wide)
        slopes = pull(weights.astype(want.dtype))
    got, own_pull = dn.vjp(ours, *arrays)
    assert got.dtype == dtype
    ulps = 2 if dtype == "bf16" else 64
    near(got, want, dtype, ulps)
    for slope, own in zip(slopes, own_pull(weights), strict=True):
        near(own, slope, dtype, ulps)


def test_the_statistics_of_a_batch() -> None:
    """They are f32 for a batch in bf16, as running means need."""
    x = LOGITS.astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float32)
    _, mean, variance = dn.nn.batch_norm(x)
    assert mean.dtype == variance.dtype == "f32"
    near(mean, wide.mean(0), "f32")
    near(variance, wide.var(0), "f32")
    y, given, _ = dn.nn.batch_norm(x, mean=mean, variance=variance)
    assert y.dtype == "bf16"
    assert np.array_equal(np.asarray(given), np.asarray(mean))
    assert np.array_equal(np.asarray(y), np.asarray(dn.nn.batch_norm(x)[0]))


def test_normalizations_of_one_example() -> None:
    """What is normalized within an example is the same with and without an axis of examples."""
    x = np.sin(np.arange(48.0) * 2).reshape(2, 4, 6)
    for batched, alone in (
        (dn.nn.layer_norm, dn.nn.layer_norm),
        (
            lambda x: dn.nn.group_norm(x, 2),
            lambda x: dn.nn.group_norm(x, 2, axis=0, batch_axes=[]),
        ),
    ):
        near(dn.vmap(alone)(x), batched(x), "f64")


TABLE = np.sin(np.arange(12.0)).reshape(4, 3)
PLACES = np.array([[0, 3, 3], [1, 0, 3]])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_embeddings_are_those_of_numpy(dtype: str) -> None:
    """The gradient of a row is the sum over the places at which it is."""
    table = TABLE.astype(NUMPY[dtype])
    weights = np.cos(np.arange(18.0)).reshape(2, 3, 3).astype(NUMPY[dtype])
    got, pull = dn.vjp(lambda table: dn.nn.embedding(table, PLACES), table)
    assert np.array_equal(np.asarray(got), table[PLACES])
    want = np.zeros((4, 3))
    np.add.at(want, PLACES, weights.astype(np.float64))
    near(pull(weights)[0], want, dtype)
    near(dn.vmap(dn.nn.embedding, in_axes=(None, 0))(table, PLACES), table[PLACES], dtype)


def test_a_row_that_there_is_not() -> None:
    for index in (-1, 4, np.iinfo(np.int64).max, np.array([0, 4])):
        if dn.default_backend() == "cpu":
            with pytest.raises(dn.BoundsError, match=r"embedding: index .* must be in 0\.\.4"):
                dn.nn.embedding(TABLE, index)
        rows = np.asarray(dn.jit(dn.nn.embedding)(TABLE, np.asarray(index)))
        assert np.array_equal(np.isnan(rows).all(-1), np.asarray(index) != 0)
        assert np.array_equal(np.isnan(rows).any(-1), np.asarray(index) != 0)
    # The others learn nothing wrong.
    places, weights = np.array([1, 4]), np.ones((2, 3))
    slope = dn.grad(lambda table: dn.sum(dn.nn.embedding(table, places) * weights))(TABLE)
    assert np.array_equal(np.asarray(slope), np.eye(4)[1][:, None] * np.ones(3))


def test_embeddings_have_the_names_of_both() -> None:
    table = dn.tensor(TABLE, names=["word", "part"])
    assert dn.nn.embedding(table, dn.tensor([0, 1], names=["time"])).names == ("time", "part")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.99, 1.0])
def test_what_dropout_leaves(rate: float, dtype: str) -> None:
    x = dn.broadcast(dn.tensor(3.0, dtype=dtype), (400, 300))
    key = dn.random.key(3)
    y, pull = dn.vjp(lambda x: dn.nn.dropout_split(x, key, rate), x)
    assert y.dtype == dtype
    kept = np.asarray(y) != 0
    # Five standard deviations of the mean of so many draws.
    assert abs(kept.mean() - (1 - rate)) <= 5 * np.sqrt(rate * (1 - rate) / kept.size)
    factor = 1 / (1 - rate) if rate < 1 else 0.0
    for values, size in ((y, 3.0), (pull(x / 3)[0], 1.0)):
        want = np.where(kept, np.float64(size) * factor, 0.0)
        near(values, want, dtype)


def test_draws_of_dropout() -> None:
    x, key = dn.broadcast(1.0, (64, 32)), dn.random.key(5)
    first, after = dn.nn.dropout(x, key)
    second, _ = dn.nn.dropout(x, after)
    assert not np.array_equal(np.asarray(first), np.asarray(second))
    compiled, next = dn.jit(dn.nn.dropout)(x, key)
    assert np.array_equal(np.asarray(first), np.asarray(compiled))
    assert np.array_equal(np.asarray(after), np.asarray(next))
    shared = np.asarray(dn.nn.dropout_split(x, key, shared_axes=[0]))
    assert (shared == shared[:1]).all()
    assert len(set(shared[0])) == 2
    keys = dn.random.split(key, 3)
    each = dn.vmap(dn.nn.dropout_split, in_axes=(None, 0))(x, keys)
    for own, key in zip(each, keys, strict=True):
        assert np.array_equal(np.asarray(own), np.asarray(dn.nn.dropout_split(x, key)))


def test_dropout_has_no_nan_where_nothing_is_left() -> None:
    x = dn.tensor([np.inf, np.nan, 3e38])
    assert dn.nn.dropout_split(x, dn.random.key(1), 1.0).to_list() == [0.0, 0.0, 0.0]
    slope = dn.grad(lambda x: dn.sum(dn.nn.dropout_split(x, dn.random.key(1), 1.0)))(x)
    assert slope.to_list() == [0.0, 0.0, 0.0]


def test_far_rows_keep_their_variance() -> None:
    """The mean of the squares minus the square of the mean would be 0 or negative."""
    x = np.array([1e4 + 1, 1e4 - 1, 1e4 + 1, 1e4 - 1], np.float32)
    near(dn.nn.layer_norm(x, eps=0.0), [1, -1, 1, -1], "f32")
    near(dn.nn.standardize(x, eps=0.0), [1, -1, 1, -1], "f32")
