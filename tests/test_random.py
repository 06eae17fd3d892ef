"""Random numbers: exactly as documented, as a second generator draws them, and as JAX's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL, COMPLEX, FLOATS, INTEGERS, NUMPY, UNSIGNED, limits
from support import assert_alike

random = dn.random

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """Threefry-2x32 with 20 rounds, by its definition: the oracle of this file."""
    words = [int(key[0]), int(key[1]), int(key[0]) ^ int(key[1]) ^ 0x1BD11BDA]
    x = (counters[0] + words[0]) & 0xFFFFFFFF
    y = (counters[1] + words[1]) & 0xFFFFFFFF
    for group in range(1, 6):
        for turn in ROTATIONS[(group - 1) % 2]:
            x = (x + y) & 0xFFFFFFFF
            y = (((y << turn) | (y >> (32 - turn))) & 0xFFFFFFFF) ^ x
        x = (x + words[group % 3]) & 0xFFFFFFFF
        y = (y + words[(group + 1) % 3] + group) & 0xFFFFFFFF
    return np.stack([x, y])


def words(key: np.ndarray, count: int) -> np.ndarray:
    counters = np.arange(count + count % 2, dtype=np.uint64)
    if count % 2:
        counters[-1] = 0
    return threefry(key, counters.reshape(2, -1)).reshape(-1)[:count]


def bits(key: np.ndarray, count: int, width: int) -> np.ndarray:
    if width == 64:
        high, low = words(key, 2 * count).reshape(2, -1)
        return (high << np.uint64(32)) | low
    return words(key, count) & np.uint64(2**width - 1)


def same(got: dn.Tensor, want: Any) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    assert (got.to_numpy() == want.astype(got.to_numpy().dtype)).all(), got


def one(value: dn.Tensor | tuple[dn.Tensor, dn.Tensor]) -> dn.Tensor:
    return value[0] if isinstance(value, tuple) else value


def key(seed: int) -> dn.Tensor:
    return random.key(seed)


# Numbers in the documentation of Nx: exact, or within this many units of the last place.
DOCUMENTED: list[tuple[str, Any, Any, int]] = [
    ("key", lambda: key(12), [0, 12], 0),
    ("key of many bits", lambda: key(999999999999), [232, 3567587327], 0),
    (
        "split",
        lambda: random.split(key(1701)),
        [[56197195, 1801093307], [961309823, 1704866707]],
        0,
    ),
    (
        "split in four",
        lambda: random.split(key(1701), parts=4),
        [
            [4000152724, 2030591747],
            [2287976877, 2598630646],
            [2426625787, 580268518],
            [3136765380, 433355682],
        ],
        0,
    ),
    ("fold_in", lambda: random.fold_in(key(42), 99), [2015327502, 1351855566], 0),
    ("fold_in of 1234", lambda: random.fold_in(key(42), 1234), [1356445167, 2917756949], 0),
    (
        "fold_in of a matrix",
        lambda: random.fold_in(key(42), dn.tensor([[1, 99], [1234, 13]])),
        [
            [[64467757, 2916123636], [2015327502, 1351855566]],
            [[1356445167, 2917756949], [3514951389, 229662949]],
        ],
        0,
    ),
    ("uniform of 12", lambda: random.uniform(key(12)), np.float32(0.7691127), 0),
    ("uniform of 1701", lambda: random.uniform(key(1701)), np.float32(0.9728644), 0),
    (
        "uniform f16",
        lambda: random.uniform(key(1701), shape=(3, 2), dtype="f16"),
        [[0.75390625, 0.6484375], [0.7294921875, 0.21484375], [0.09765625, 0.0693359375]],
        0,
    ),
    (
        "uniform c64",
        lambda: random.uniform(key(1701), shape=(2, 2), dtype="c64"),
        np.array(
            [
                [0.18404806 + 0.65464616j, 0.55259156 + 0.11568141j],
                [0.6074585 + 0.81043756j, 0.2476865 + 0.2197547j],
            ],
            np.complex64,
        ),
        0,
    ),
    (
        "uniform_split",
        lambda: random.uniform_split(key(44), 0, 100),
        np.float32(0.94059706),
        0,
    ),
    (
        "uniform_split f64",
        lambda: random.uniform_split(key(44), 0, 100, dtype="f64"),
        49.70372348385783,
        0,
    ),
    ("randint", lambda: random.randint(key(1701), 1, 100), 91, 0),
    (
        "randint u32",
        lambda: random.randint(key(1701), 1, 100, shape=(3, 2), dtype="u32"),
        [[9, 20], [19, 6], [71, 15]],
        0,
    ),
    ("randint_split u8", lambda: random.randint_split(key(44), 0, 100, dtype="u8"), 12, 0),
    ("randint_split s64", lambda: random.randint_split(key(44), 0, 100, dtype="s64"), 10, 0),
    ("normal_split", lambda: random.normal_split(key(44), 0, 100), np.float32(-234.92354), 4),
    ("normal", lambda: random.normal(key(42)), np.float32(1.3694695), 4),
    (
        "normal c64",
        lambda: random.normal(key(42), 0, 1, shape=(2, 2), dtype="c64"),
        np.array(
            [
                [-0.7632761 + 0.86611277j, -0.1428289 - 0.7384796j],
                [0.6784615 + 0.41183108j, -2.2695384 - 0.3689095j],
            ],
            np.complex64,
        ),
        4,
    ),
    ("gumbel", lambda: random.gumbel(key(1)), np.float32(-0.729461), 4),
    (
        "gumbel of a shape",
        lambda: random.gumbel(key(1), shape=(2, 3)),
        np.array(
            [[0.6247938, -0.21740718, 0.76783276], [0.77784044, 4.0895305, 0.30290902]], np.float32
        ),
        4,
    ),
]


@pytest.mark.parametrize(
    ("draw", "want", "ulps"), [r[1:] for r in DOCUMENTED], ids=[r[0] for r in DOCUMENTED]
)
def test_documented_numbers(draw: Any, want: Any, ulps: int) -> None:
    got, want = one(draw()), np.asarray(want)
    if ulps == 0 and got.dtype.kind != "complex":
        same(got, want)
        return
    array = got.to_numpy()
    assert array.shape == want.shape
    for part in (np.real, np.imag):
        near = np.abs(part(array) - part(want)) <= ulps * np.spacing(np.abs(part(want)))
        assert near.all(), (got, want)


def test_documented_statistics() -> None:
    values, _ = random.normal(key(1337), 10, 5, shape=1000)
    assert abs(float(dn.mean(values)) - 9.700222) < 1e-5
    assert abs(float(dn.standard_deviation(values)) - 5.0514164) < 1e-5


@pytest.mark.parametrize(
    ("seed", "number"),
    [(0, 0), (-1, 2**64 - 1), (2**63, 2**63), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1)],
)
def test_seeds(seed: int, number: int) -> None:
    want = [number >> 32, number & 0xFFFFFFFF]
    assert key(seed).to_list() == want
    dtype = np.int64 if seed < 2**63 else np.uint64
    assert random.key(dn.tensor(np.array(seed, dtype))).to_list() == want
    assert random.key(dtype(seed)).to_list() == want
    assert dn.jit(random.key)(dn.tensor(np.array(seed, dtype))).to_list() == want
    assert random.key(seed).dtype == "u32"


COUNTS = [0, 1, 2, 3, 31, 32, 33, 1023, 1024, 1025, 20001]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_bits(dtype: str, count: int) -> None:
    k = key(1701)
    want = bits(k.to_numpy(), count, dn.dtype(dtype).bits)
    got = random.bits_split(k, shape=count, dtype=dtype)
    assert got.dtype == dtype
    same(got, want)


MANTISSA = {"f8_e5m2": 2, "f8_e4m3fn": 3, "bf16": 7, "f16": 10, "f32": 23, "f64": 52}


@pytest.mark.parametrize("count", [0, 1, 1025])
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_is_bits_in_the_fraction(dtype: str, count: int) -> None:
    k = key(7)
    width, mantissa = dn.dtype(dtype).bits, MANTISSA[dtype]
    steps = bits(k.to_numpy(), count, width) >> np.uint64(width - mantissa)
    got = random.uniform_split(k, shape=count, dtype=dtype)
    assert got.dtype == dtype
    same(got, steps.astype(np.float64) * 2.0**-mantissa)


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_stays_between_its_bounds(dtype: str) -> None:
    for low, high in [(-3.0, 5.0), (1.0, 1.25), (-1.0, -0.5)]:
        got = random.uniform_split(key(3), low, high, shape=2000, dtype=dtype).to_numpy()
        got = got.astype(np.float64)
        # In the narrower formats a sum can round up to the upper bound.
        assert (got >= low).all()
        assert (got < high).all() if dtype in ("f32", "f64") else (got <= high).all()


def randints(k: np.ndarray, low: int, high: int, count: int, width: int) -> list[int]:
    high_words, low_words = bits(k, 2 * count, width).reshape(2, -1).tolist()
    span = (high - low) % 2**width
    multiplier = (2 ** (width // 2) % span) ** 2 % 2**64 % span
    return [
        low + ((h % span * multiplier) % 2**64 + t % span) % 2**64 % span
        for h, t in zip(high_words, low_words, strict=True)
    ]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_randint(dtype: str) -> None:
    least, greatest = limits(dtype)
    bounds = [(0, 1), (least, greatest), (max(least, -3), min(greatest, 100)), (0, greatest)]
    for low, high in bounds:
        k = key(low)
        want = randints(k.to_numpy(), low, high, 101, dn.dtype(dtype).bits)
        got = random.randint_split(k, low, high, shape=101, dtype=dtype)
        assert got.dtype == dtype
        assert got.to_list() == want
        array = np.array([low, high], dtype=object).astype(NUMPY[dtype])
        tensors = [dn.tensor(bound) for bound in array]
        assert random.randint_split(k, *tensors, shape=101).to_list() == want


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if dtype != "u64"])
def test_randint_of_every_value(dtype: str) -> None:
    """The upper bound is too large for the dtype; the offsets are the lower words."""
    least, greatest = limits(dtype)
    width = dn.dtype(dtype).bits
    offsets = bits(key(5).to_numpy(), 202, width)[101:].tolist()
    got = random.randint_split(key(5), least, greatest + 1, shape=101, dtype=dtype)
    assert got.to_list() == [least + offset for offset in offsets]


def test_randint_without_an_integer_between_its_bounds() -> None:
    for high in (5, 4, -7):
        values = random.randint_split(key(0), dn.tensor(5), dn.tensor(high), shape=20)
        assert values.to_list() == [5] * 20
        traced = dn.jit(lambda k, a, b: random.randint_split(k, a, b, shape=20))
        assert traced(key(0), 5, high).to_list() == [5] * 20


def test_randint_of_bounds_that_are_tensors() -> None:
    low, high = dn.tensor([[0], [10]], names=["x", None]), dn.tensor([1, 5, 20])
    values = random.randint_split(key(9), low, high, shape=(2, 3), names=["a", "b"])
    assert values.names == ("a", "b")
    low, high = np.broadcast_arrays(low.to_numpy(), high.to_numpy())
    array = values.to_numpy()
    assert ((array >= low) & (array < np.maximum(high, low + 1))).all()


def test_the_next_key_is_the_first_part() -> None:
    k = key(1701)
    following, used = random.split(k)
    for name, arguments, options in [
        ("bits", (), {"shape": 5}),
        ("uniform", (-1.0, 2.0), {"shape": (2, 2)}),
        ("normal", (1.0, 2.0), {"shape": (2, 2)}),
        ("randint", (0, 9), {"shape": 4}),
        ("gumbel", (), {"shape": 3}),
    ]:
        value, after = getattr(random, name)(k, *arguments, **options)
        same(after, following)
        alone = getattr(random, name + "_split")(used, *arguments, **options)
        assert value.to_numpy().tobytes() == alone.to_numpy().tobytes()


DRAWS = [
    (name, arguments, dtypes)
    for name, arguments, dtypes in [
        ("bits", (), UNSIGNED),
        ("uniform", (), FLOATS + COMPLEX),
        ("uniform", (-1.0, 1.0), FLOATS + COMPLEX),
        ("normal", (), FLOATS + COMPLEX),
        ("normal", (0.5, 2), FLOATS + COMPLEX),
        ("randint", (0, 1), INTEGERS),
        ("gumbel", (), FLOATS),
    ]
]


@pytest.mark.parametrize(("name", "arguments", "dtypes"), DRAWS, ids=lambda v: str(v)[:20])
def test_every_dtype_and_shape_eager_and_compiled(
    name: str, arguments: tuple[float, ...], dtypes: tuple[str, ...]
) -> None:
    function = getattr(random, name)
    shapes = [(), (3,), (2, 0, 3), (1, 2) * 5]
    for dtype in ALL:
        if dtype not in dtypes:
            with pytest.raises(dn.OptionError, match=f"^{name}: the dtype is {dtype}"):
                function(key(0), *arguments, dtype=dtype)
            continue
        traced = dn.jit(
            lambda k, d=dtype: [function(k, *arguments, shape=s, dtype=d) for s in shapes]
        )
        for shape, (compiled, next_key) in zip(shapes, traced(key(4)), strict=True):
            value, after = function(key(4), *arguments, shape=shape, dtype=dtype)
            assert (value.dtype, value.shape, value.names) == (dtype, shape, (None,) * len(shape))
            assert_alike(compiled, value)
            same(next_key, after.to_numpy())
    named, _ = function(key(0), *arguments, shape=(2, 3), names=["x", None])
    assert named.names == ("x", None)


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_parameters_broadcast(name: str) -> None:
    function = getattr(random, name + "_split")
    low, high = dn.tensor([[0.0], [10.0]]), dn.tensor([1.0, 2.0, 3.0])
    whole = function(key(2), low, high, shape=(2, 3)).to_numpy()
    for row, first in enumerate([0.0, 10.0]):
        single = function(key(2), first, high, shape=(2, 3)).to_numpy()
        assert (whole[row] == single[row]).all()
    assert function(key(2), dn.tensor(np.float64(0)), 1.0).dtype == "f64"
    assert function(key(2), 0, 1).dtype == "f32"
    parts = function(key(2), low, high, shape=(2, 3), dtype="c64").to_numpy()
    for row, first in enumerate([0.0, 10.0]):
        single = function(key(2), first, high, shape=(2, 3), dtype="c64").to_numpy()
        assert (parts[row] == single[row]).all()


def test_no_gradient_flows() -> None:
    k = key(0)
    for name in ("uniform_split", "normal_split"):
        draw = getattr(random, name)
        gradient = dn.grad(lambda a, b, draw=draw: dn.sum(draw(k, a, b, shape=3) * a), argnums=0)
        sample = draw(k, 1.0, 2.0, shape=3)
        assert gradient(1.0, 2.0).item() == dn.sum(sample).item()


def test_keys_may_be_arrays() -> None:
    array = np.array([0, 12], np.uint32)
    assert random.uniform(array)[0].item() == random.uniform(key(12))[0].item()


def test_moments() -> None:
    """A hundred thousand of each: means and deviations are within five standard errors."""
    count = 100_000
    margin = 5 / math.sqrt(count)
    uniform = random.uniform_split(key(1), 0, 1, shape=count).to_numpy()
    assert abs(uniform.mean() - 0.5) < margin * math.sqrt(1 / 12)
    normal = random.normal_split(key(2), shape=count).to_numpy()
    assert abs(normal.mean()) < margin
    assert abs(normal.std() - 1) < margin
    gumbel = random.gumbel_split(key(3), shape=count).to_numpy()
    assert abs(gumbel.mean() - np.euler_gamma) < margin * math.pi / math.sqrt(6)
    integers = random.randint_split(key(4), 0, 10, shape=count).to_numpy()
    assert abs(np.bincount(integers) / count - 0.1).max() < margin * 0.3


def rows() -> dn.Tensor:
    return dn.iota((4, 3))


ORDERS: list[tuple[str, Any, Any]] = [
    (
        "shuffle",
        lambda: random.shuffle(key(42), dn.iota((3, 4), axis=0)),
        [[2] * 4, [0] * 4, [1] * 4],
    ),
    (
        "shuffle independently",
        lambda: random.shuffle(key(10), dn.iota((3, 4), axis=1), axis=1, independent=True),
        [[2, 1, 3, 0], [3, 0, 1, 2], [2, 3, 0, 1]],
    ),
    (
        "choice of rows",
        lambda: random.choice(key(1), rows(), samples=4, axis=0),
        [[6, 7, 8], [9, 10, 11], [6, 7, 8], [0, 1, 2]],
    ),
    (
        "choice of rows, each once",
        lambda: random.choice(key(1), rows(), samples=4, axis=0, replace=False),
        [[3, 4, 5], [9, 10, 11], [6, 7, 8], [0, 1, 2]],
    ),
    ("choice", lambda: random.choice(key(2), dn.iota((3, 2))), [4]),
    (
        "choice, each once",
        lambda: random.choice(key(2), dn.iota((3, 2)), samples=6, replace=False),
        [2, 0, 4, 5, 1, 3],
    ),
    (
        "choice of columns by chance",
        lambda: random.choice(key(1), rows(), dn.tensor([0.1, 0.7, 0.2]), samples=3, axis=1),
        [[1, 0, 1], [4, 3, 4], [7, 6, 7], [10, 9, 10]],
    ),
    ("choice by chance", lambda: random.choice(key(2), dn.iota((2, 3)), CHANCES), [3]),
    (
        "six choices by chance",
        lambda: random.choice(key(2), dn.iota((2, 3)), CHANCES, samples=6),
        [3, 3, 3, 0, 3, 3],
    ),
    (
        "choice of columns by chance, each once",
        lambda: random.choice(
            key(1), rows(), dn.tensor([0.1, 0.7, 0.2]), samples=3, axis=1, replace=False
        ),
        [[1, 2, 0], [4, 5, 3], [7, 8, 6], [10, 11, 9]],
    ),
    (
        "choice by chance, each once",
        lambda: random.choice(key(2), dn.iota((2, 3)), CHANCES, samples=6, replace=False),
        [3, 1, 2, 5, 4, 0],
    ),
]

CHANCES = dn.tensor([0.01, 0.1, 0.19, 0.6, 0.05, 0.05])


@pytest.mark.parametrize(("draw", "want"), [r[1:] for r in ORDERS], ids=[r[0] for r in ORDERS])
def test_documented_orders(draw: Any, want: Any) -> None:
    same(one(draw()), want)
    compiled, after = dn.jit(lambda: draw())()
    same(compiled, want)
    assert after.shape == (2,)


@pytest.mark.parametrize("size", [0, 1, 2, 100, 5000])
def test_shuffle_is_a_permutation(size: int) -> None:
    """More than about 1,600 elements are sorted twice, by the random words of two keys."""
    k = key(size)
    value, after = random.shuffle(k, dn.iota(size))
    same(random.shuffle_split(k, dn.iota(size)), value.to_numpy())
    assert sorted(value.to_list()) == list(range(size))
    order, want = np.arange(size), k
    for _ in range(math.ceil(3 * math.log(size) / math.log(2**32 - 1)) if size > 1 else 0):
        following, used = random.split(want)
        order = order[np.argsort(words(used.to_numpy(), size), kind="stable")]
        want = following
    same(value, order)
    same(after, want.to_numpy())


def test_shuffle_of_an_axis() -> None:
    array = np.arange(24).reshape(2, 4, 3)
    x = dn.tensor(array, names=["a", "b", "c"])
    whole = random.shuffle_split(key(3), x, axis="b")
    assert whole.names == ("a", "b", "c")
    order = whole.to_numpy()[0, :, 0] // 3
    assert (whole.to_numpy() == array[:, order]).all()
    each = random.shuffle_split(key(3), x, axis=1, independent=True).to_numpy()
    assert (np.sort(each, axis=1) == array).all()
    assert len({tuple(line) for line in (each // 3 % 4).transpose(0, 2, 1).reshape(-1, 4)}) > 1


def test_choice_keeps_names_and_dtypes() -> None:
    x = dn.tensor(np.eye(3, 4, dtype=np.float16), names=["a", "b"])
    for replace in (True, False):
        value, _ = random.choice(key(0), x, samples=2, axis="b", replace=replace)
        assert (value.dtype, value.shape, value.names) == ("f16", (3, 2), ("a", "b"))
        flat, _ = random.choice(key(0), x, samples=2, replace=replace)
        assert (flat.shape, flat.names) == ((2,), (None,))
    following, used = random.split(key(5))
    value, after = random.choice(key(5), x, samples=9)
    same(after, following)
    same(random.choice_split(used, x, samples=9), value.to_numpy())
    # Without replacement, choice shuffles; the next key is that of the last round.
    value, after = random.choice(key(5), x, samples=9, replace=False)
    same(random.choice_split(key(5), x, samples=9, replace=False), value.to_numpy())
    same(after, following)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100])
def test_choice_by_chance(size: int) -> None:
    """Inverts the cumulative sum at uniform points; an element of chance 0 is never chosen."""
    chances = (np.arange(size) % 3).astype(np.float32)
    if size == 1:
        chances[:] = 0.5
    picked = random.choice_split(key(8), dn.iota(size), dn.tensor(chances), samples=4000)
    sums = np.cumsum(chances)
    shares = random.uniform_split(key(8), shape=4000).to_numpy()
    want = np.searchsorted(sums, sums[-1] * (1 - shares))
    same(picked, want)
    assert (chances[picked.to_numpy()] > 0).all()
    some = int((chances > 0).sum())
    once = random.choice_split(
        key(8), dn.iota(size), dn.tensor(chances), samples=some, replace=False
    )
    assert sorted(once.to_list()) == np.flatnonzero(chances).tolist()


def test_no_gradient_flows_through_a_choice() -> None:
    x = dn.tensor([1.0, 2.0, 3.0])
    for draw in (random.shuffle_split, random.choice_split):
        gradient = dn.grad(lambda v, draw=draw: dn.sum(draw(key(0), v) * 2.0 + dn.sum(v)))
        assert len(set(gradient(x).to_list())) == 1


def test_vectorized_keys() -> None:
    """Each key draws what it draws alone; the definition, not the kernel, gives the bits."""
    keys = random.split(key(6), parts=3)
    many = dn.vectorize(keys, "key")

    def draws(k: dn.Tensor) -> list[dn.Tensor]:
        return [
            random.bits_split(k, shape=5, dtype="u64"),
            random.uniform_split(k, -1.0, 1.0, shape=(2, 3)),
            random.normal_split(k, shape=3, dtype="f64"),
            random.randint_split(k, 0, 1000, shape=4),
            random.fold_in(k, 7),
            random.split(k),
            random.shuffle_split(k, dn.iota(9)),
            random.choice_split(k, dn.iota(9), samples=4),
        ]

    together = [dn.devectorize(value).to_numpy() for value in draws(many)]
    for at in range(3):
        for whole, alone in zip(together, draws(keys[at]), strict=True):
            assert whole[at].tobytes() == alone.to_numpy().tobytes()


def test_against_jax() -> None:
    """Runs if JAX is installed: `./dev bench peers` needs it, and `./dev test` does not."""
    import jax

    with jax.threefry_partitionable(False), jax.enable_x64(True):
        for seed in (0, 12, 2**32 - 1):
            theirs, ours = jax.random.PRNGKey(seed), random.key(seed)
            same(ours, theirs)
            same(random.split(ours), jax.random.split(theirs))
            same(random.fold_in(ours, 2**31 - 1), jax.random.fold_in(theirs, 2**31 - 1))
        theirs, ours = jax.random.PRNGKey(1701), random.key(1701)
        same(random.split(ours, parts=3), jax.random.split(theirs, 3))
        for dtype in map(np.dtype, ("uint32", "uint64")):
            same(
                random.bits_split(ours, shape=1001, dtype=dtype),
                jax.random.bits(theirs, (1001,), dtype),
            )
        for dtype in map(np.dtype, ("float32", "float64")):
            values = jax.random.uniform(theirs, (3, 5), dtype)
            same(random.uniform_split(ours, shape=(3, 5), dtype=dtype), values)
            values = np.asarray(jax.random.normal(theirs, (3, 5), dtype))
            got = random.normal_split(ours, shape=(3, 5), dtype=dtype).to_numpy()
            # JAX's inverse error function is wrong by up to a thousand units of the last place.
            assert (np.abs(got - values) <= 1000 * np.spacing(np.abs(values))).all()
