"""Functions that generated code calls: dtypes, conversions, and operations that NumPy lacks."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np

import defn as dn
from defn.backends.numpy.linalg import substituted
from defn.backends.numpy.values import cast, extremes

Array = Any

DTYPES = "bool u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64".split()
DTYPES += "f8_e5m2 f8_e4m3fn f16 bf16 f32 f64 c64 c128".split()
KINDS = {name: dn.dtype(name) for name in DTYPES}
_OF_NUMPY = {kind.to_numpy(): kind for kind in KINDS.values()}
_WIDE = {
    "bool": np.uint64,
    "unsigned": np.uint64,
    "signed": np.int64,
    "float": np.float64,
    "complex": np.complex128,
}


def _conversion(dtype: Any) -> Any:
    """A function that converts arrays to a dtype by the rules of ``as_type``."""
    target = dtype.to_numpy()
    is_native = dtype.bits >= 32 and dtype.kind in ("float", "complex")

    def convert(x: Array) -> Array:
        x = np.asarray(x)
        if x.dtype == target:
            return x
        if x.dtype == np.bool_ or (is_native and x.dtype.kind in "iuf" and x.dtype.itemsize > 1):
            return x.astype(target)
        source = _OF_NUMPY[x.dtype]
        if dtype.kind == source.kind == "float" and dtype.bits >= 32:
            return x.astype(target)
        return np.asarray(cast(x.astype(_WIDE[source.kind]), dtype))

    return convert


_OBJECTS: dict[str, Any] = {name: kind.to_numpy().type for name, kind in KINDS.items()}
_OBJECTS |= {f"as_{name}": _conversion(kind) for name, kind in KINDS.items()}
globals().update(_OBJECTS)


def _dtype(scalar: Any) -> Any:
    """The dtype of a NumPy class."""
    return _OF_NUMPY[np.dtype(scalar)]


def each_as(conversions: list[Any], values: Any) -> list[Array]:
    """Several results, converted to their dtypes."""
    return [convert(value) for convert, value in zip(conversions, values, strict=True)]


def named(value: Array, names: list[str | None]) -> Any:
    """A tensor with axis names, for a host function."""
    return dn.tensor(value, names=names)


def from_memory(data: bytes, scalar: Any, shape: tuple[int, ...]) -> Array:
    """Elements from raw memory, where each element of 2 or 4 bits takes a byte."""
    dtype = _dtype(scalar)
    if dtype.bits < 8:
        kind = np.int8 if dtype.kind == "signed" else np.uint8
        return np.frombuffer(data, kind).astype(dtype.to_numpy()).reshape(shape)
    return np.frombuffer(data, scalar).reshape(shape)


def iota(shape: tuple[int, ...], axis: int | None, convert: Any) -> Array:
    """Counts along an axis, or over the flat index."""
    if axis is None:
        return convert(np.arange(math.prod(shape))).reshape(shape)
    sizes = [-1 if at == axis else 1 for at in range(len(shape))]
    return np.broadcast_to(convert(np.arange(shape[axis])).reshape(sizes), shape)


# elements


def sign(x: Array) -> Array:
    """-1, 0 or 1; for complex numbers the direction."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    return np.where((x == 0) | (x != x), x, np.sign(x))


def away(x: Array) -> Array:
    """The nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(whole.dtype.type(1), x), whole)


def cube_root(x: Array) -> Array:
    """The principal cube root of complex numbers."""
    return np.where(x == 0, 0, np.exp(np.log(np.where(x == 0, 1, x)) / 3))


def _erf_inv(y: float) -> float:
    """The inverse of ``erf`` by Newton's method, on ``1 - y`` if that is small."""
    if not -1.0 < y < 1.0:
        return math.copysign(math.inf, y) if abs(y) == 1.0 else math.nan
    size = abs(y)
    rest = 1.0 - size
    if rest < 2.0**-52:
        x = 5.8
    else:
        x = -statistics.NormalDist().inv_cdf(rest / 2) / math.sqrt(2) if size > 0.5 else size
    for _ in range(8):
        error = math.erfc(x) - rest if size > 0.5 else size - math.erf(x)
        x += error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return math.copysign(x, y)


erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])
erf_inv = np.vectorize(_erf_inv, otypes=[np.float64])


def power(x: Array, y: Array) -> Array:
    """An integer power, which wraps; 0 for a negative exponent."""
    x, y = np.asarray(x), np.asarray(y)
    result = np.power(x.astype(np.uint64), np.maximum(y, 0).astype(np.uint64)).astype(x.dtype)
    return np.where(y < 0, x.dtype.type(0), result)


def quotient(x: Array, y: Array) -> Array:
    """The integer quotient, truncated towards zero; all bits set for a divisor of zero."""
    x, y = np.asarray(x), np.asarray(y)
    safe = np.where(y == 0, y.dtype.type(1), y)
    floor = x // safe
    whole = np.where((floor * safe != x) & ((x < 0) != (safe < 0)), floor + x.dtype.type(1), floor)
    return np.where(y == 0, ~x.dtype.type(0), whole)


def remainder(x: Array, y: Array) -> Array:
    """The remainder of ``quotient``; the dividend for a divisor of zero."""
    x, y = np.asarray(x), np.asarray(y)
    return np.where(y == 0, x, x - quotient(x, y) * y)


def left_shift(x: Array, count: Array, bits: int) -> Array:
    """Shift bits up; 0 if the count is negative or at least the number of bits."""
    x, count = np.asarray(x), np.asarray(count)
    is_inside = (count >= 0) & (count < bits)
    kept = x << np.where(is_inside, count, 0).astype(x.dtype)
    return np.where(is_inside, kept, x.dtype.type(0))


def right_shift(x: Array, count: Array, bits: int) -> Array:
    """Shift bits down, filling with the sign, or with 0 if unsigned."""
    x, count = np.asarray(x), np.asarray(count)
    is_inside = (count >= 0) & (count < bits)
    if x.dtype.kind == "i":
        return x >> np.where(is_inside, count, bits - 1).astype(x.dtype)
    return np.where(is_inside, x >> np.where(is_inside, count, 0).astype(x.dtype), x.dtype.type(0))


def _bits(x: Array, bits: int) -> Array:
    return np.asarray(x).astype(np.int64).astype(np.uint64) & np.uint64(2**bits - 1)


def population_count(x: Array, bits: int) -> Array:
    """The number of bits that are 1."""
    return np.bitwise_count(_bits(x, bits))


def count_leading_zeros(x: Array, bits: int) -> Array:
    """The number of 0 bits before the first 1."""
    pattern = _bits(x, bits)
    length = sum(((pattern >> np.uint64(at)) != 0).astype(np.int64) for at in range(bits))
    return bits - np.asarray(length)


def joined(real: Array, imag: Array, scalar: Any) -> Array:
    """Complex numbers from two parts."""
    result = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), scalar)
    result.real, result.imag = real, imag
    return result


def all_close(a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> bool:
    """Whether all elements are close."""
    a, b = (x.astype(np.float64) if x.dtype.kind in "iu" else x for x in map(np.asarray, (a, b)))
    return np.allclose(a, b, rtol, atol, equal_nan)


# indices


def pad(x: Array, value: Array, config: Any) -> Array:
    """Pad with a value around and between elements; negative amounts crop."""
    x = np.asarray(x)
    sizes = [max(n + (n - 1) * gap, 0) for n, (_, _, gap) in zip(x.shape, config, strict=True)]
    spread = np.full(sizes, value, x.dtype)
    spread[tuple(slice(None, None, gap + 1) for _, _, gap in config)] = x
    sides = [(max(low, 0), max(high, 0)) for low, high, _ in config]
    outer = [n + low + high for n, (low, high) in zip(sizes, sides, strict=True)]
    whole = np.full(outer, value, x.dtype)
    whole[tuple(slice(low, low + n) for n, (low, _) in zip(sizes, sides, strict=True))] = spread
    ends = zip(outer, config, strict=True)
    return whole[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high, _) in ends)]


def from_front(starts: list[Any], x: Array) -> list[int]:
    """Start indices from the front; those below 0 count from the end."""
    return [int(at) + size * (at < 0) for at, size in zip(starts, x.shape, strict=True)]


def _first(starts: list[Any], sizes: Any, lengths: Any) -> list[int]:
    """Start indices, clamped so that the window is inside."""
    spans = zip(starts, sizes, lengths, strict=True)
    return [min(max(int(at), 0), size - length) for at, size, length in spans]


def window_at(x: Array, starts: list[Any], lengths: Any, strides: Any) -> Array:
    """A window at computed start indices."""
    first = _first(starts, x.shape, lengths)
    spans = zip(first, lengths, strides, strict=True)
    return x[tuple(slice(at, at + length, step) for at, length, step in spans)]


def put(x: Array, update: Array, starts: list[Any]) -> Array:
    """An array with a window overwritten."""
    result = np.array(x)
    first = _first(starts, x.shape, update.shape)
    window = [slice(at, at + n) for at, n in zip(first, update.shape, strict=True)]
    result[tuple(window)] = update
    return result


def _positions(indices: Array) -> Array:
    """Indices as signed integers; values that do not fit are out of any range."""
    indices = np.asarray(indices)
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**62))
    return indices.astype(np.int64)


def into_range(indices: Array, size: int) -> Array:
    """Indices clamped into range; those below 0 count from the end."""
    places = _positions(indices)
    return np.clip(np.where(places < 0, places + size, places), 0, size - 1)


def gather(x: Array, indices: Array, axes: Any) -> Array:
    """Windows at indices, which are clamped into range."""
    front = np.moveaxis(x, axes, range(len(axes)))
    if not axes:
        return np.broadcast_to(front, indices.shape[:-1] + front.shape)
    return front[tuple(into_range(indices[..., at], x.shape[axis]) for at, axis in enumerate(axes))]


def last(_: Array, update: Array) -> Array:
    """The update itself, which replaces an element."""
    return update


def scatter(function: Any, x: Array, updates: Array, indices: Array, axes: Any) -> Array:
    """Updates at indices, one after the other; those out of range are dropped."""
    result = np.array(x)
    front = np.moveaxis(result, axes, range(len(axes)))
    for place, update in zip(_positions(indices), updates, strict=True):
        if all(-size <= at < size for at, size in zip(place, front.shape, strict=False)):
            window = (*place, *(slice(0, size) for size in update.shape))
            front[window] = function(front[window], update)
    return result


def extreme(function: Any, x: Array, axis: int | None, keep: bool, tie_break: str) -> Array:
    """The index of an extreme element; the first or the last of ties."""
    if axis is None:
        shape = (1,) * np.ndim(x) if keep else ()
        return np.asarray(extreme(function, np.reshape(x, -1), 0, False, tie_break)).reshape(shape)
    if tie_break == "low":
        return function(x, axis, keepdims=keep)
    return x.shape[axis] - 1 - function(np.flip(x, axis), axis, keepdims=keep)


def in_order(x: Array, axis: int, direction: str) -> Array:
    """The indices that sort an array: stable, NaN greatest."""
    if direction == "asc":
        return np.argsort(x, axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def top(x: Array, elements: Array, k: int, convert: Any) -> tuple[Array, Array]:
    """The greatest elements along the last axis, and their indices."""
    order = in_order(elements, x.ndim - 1, "desc")[..., :k]
    return np.take_along_axis(x, order, -1), convert(order)


# windows


def least(scalar: Any) -> Any:
    """The lower bound of a dtype's elements."""
    return extremes(_dtype(scalar))[0]


def greatest(scalar: Any) -> Any:
    """The upper bound of a dtype's elements."""
    return extremes(_dtype(scalar))[1]


def windows(x: Array, value: Any, sizes: Any, strides: Any, padding: Any, dilations: Any) -> Array:
    """The elements of every window: the axes of the positions, then those of the window."""
    whole = pad(x, value, [(low, high, 0) for low, high in padding])
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]
    if any(size < span for size, span in zip(whole.shape, spans, strict=True)):
        return np.empty((*(0 for _ in sizes), *sizes), whole.dtype)
    # NumPy's sliding views do not support 8-bit floats; a view of their bytes is equivalent.
    plain = whole.view(np.uint8) if whole.dtype.itemsize == 1 else whole
    every = np.lib.stride_tricks.sliding_window_view(plain, spans).view(whole.dtype)
    return every[tuple(slice(None, None, step) for step in (*strides, *dilations))]


def window_scatter(
    choose: Any, x: Array, source: Array, init: Array, fill: Array, *options: Any
) -> Array:
    """Add each source value at the extreme of its window, the last one of ties."""
    elements = windows(x, fill, *options)
    places = windows(np.arange(x.size).reshape(x.shape), -1, *options)
    result = np.full(x.size, init, np.asarray(init).dtype)
    for at in np.ndindex(source.shape):
        flat = elements[at].reshape(-1)
        chosen = places[at].reshape(-1)[flat.size - 1 - choose(flat[::-1])]
        if chosen >= 0:
            result[chosen] += source[at]
    return result.reshape(x.shape)


def conv(
    x: Array,
    kernel: Array,
    *,
    strides: Any,
    padding: Any,
    input_dilation: Any,
    kernel_dilation: Any,
    feature_group_size: int,
    batch_group_size: int,
    input_permutation: Any,
    kernel_permutation: Any,
    output_permutation: Any,
) -> Array:
    """A convolution, group by group, each as a product of windows and kernel."""
    gaps = zip(padding, input_dilation, strict=True)
    config = [(0, 0, 0)] * 2 + [(low, high, step - 1) for (low, high), step in gaps]
    images = pad(x.transpose(input_permutation), 0, config)
    kernels = kernel.transpose(kernel_permutation)
    groups = max(feature_group_size, batch_group_size)
    spatial = len(padding)
    parts = []
    for part, own in zip(
        np.split(images, groups, 1 if feature_group_size > 1 else 0),
        np.split(kernels, groups, 0),
        strict=True,
    ):
        sizes = (1, 1, *own.shape[2:])
        none = [(0, 0)] * (spatial + 2)
        every = windows(part, 0, sizes, (1, 1, *strides), none, (1, 1, *kernel_dilation))
        every = every.reshape(every.shape[: spatial + 2] + own.shape[2:])
        summed = [1, *range(2 + spatial, 2 + 2 * spatial)]
        product = np.tensordot(every, own, (summed, [1, *range(2, 2 + spatial)]))
        parts.append(np.moveaxis(product, -1, 1))
    return np.concatenate(parts, 1).transpose(np.argsort(output_permutation))


# transforms and factorizations


def transformed(function: Any, x: Array, length: int, axis: int) -> Array:
    """A Fourier transform along an axis; NumPy does not transform empty axes."""
    half = function is np.fft.rfft
    shape = list(x.shape)
    shape[axis] = length // 2 + 1 if half else length
    return function(x, length, axis) if math.prod(shape) else np.zeros(shape, np.complex128)


def irfft(x: Array, length: int, axis: int) -> Array:
    """The inverse Fourier transform with a real result."""
    shape = list(x.shape)
    shape[axis] = length
    return np.fft.irfft(x, length, axis) if math.prod(shape) else np.zeros(shape)


def solved(a: Array, b: Array, *, lower: bool, left_side: bool, transform_a: str) -> Array:
    """The solution ``x`` of ``a x = b`` or ``x a = b``, for one triangle of ``a``."""
    matrix = np.tril(a) if lower else np.triu(a)
    if transform_a in ("transpose", "adjoint"):
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
    if transform_a in ("conjugate", "adjoint"):
        matrix = matrix.conj()
    if b.ndim < a.ndim:
        b = b[..., None] if left_side else b[..., None, :]
    if left_side:
        return substituted(matrix, b, lower=lower)
    # x a = b is a^T x^T = b^T.
    turned = substituted(np.swapaxes(matrix, -1, -2), np.swapaxes(b, -1, -2), lower=not lower)
    return np.swapaxes(turned, -1, -2)


def _finite(matrices: Array) -> tuple[Array, Array]:
    """The matrices, zero where they have NaN or infinities, and a mask of these matrices."""
    bad = ~np.isfinite(matrices).all((-2, -1))
    return np.where(bad[..., None, None], 0, matrices), bad


def svd(x: Array, full: bool) -> list[Array]:
    """Singular vectors and values."""
    matrices, bad = _finite(x)
    factors = [np.array(factor) for factor in np.linalg.svd(matrices, full_matrices=full)]
    for factor in factors:
        factor[bad] = np.nan
    return factors


def eigh(x: Array, eps: float) -> list[Array]:
    """Eigenvalues in ascending order, and eigenvectors."""
    matrices, bad = _finite(x)
    factors = list(np.linalg.eigh((matrices + np.conj(np.swapaxes(matrices, -1, -2))) / 2))
    for factor in factors:
        factor[np.abs(factor) <= eps] = 0
        factor[bad] = np.nan
    return factors


__all__ = [
    *_OBJECTS,
    *(
        "all_close away conv count_leading_zeros cube_root each_as eigh erf erf_inv erfc extreme"
        " from_front from_memory gather greatest in_order into_range iota irfft joined last least"
        " left_shift named pad population_count power put quotient remainder right_shift scatter"
        " sign solved svd top transformed window_at window_scatter windows"
    ).split(),
]
