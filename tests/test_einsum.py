"""Equations of sums of products: their values, gradients, names, order of work and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn

EQUATIONS = [
    ("i->", (3,)),
    ("i->i", (3,)),
    ("ij->ji", (2, 3)),
    ("ij", (2, 3)),
    ("ba", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iii->i", (2, 2, 2)),
    ("iijj->ij", (2, 2, 3, 3)),
    ("ijij->ji", (2, 3, 2, 3)),
    ("jiji", (2, 3, 2, 3)),
    ("ii->i", (1, 1)),
    ("ii->i", (0, 0)),
    ("...->...", (2, 3)),
    ("...ij->...ji", (2, 3, 4)),
    ("i...->...", (2, 3, 4)),
    ("i...j->j...i", (2, 3, 4)),
    ("...ii->...i", (2, 3, 3)),
    ("a...a", (3, 2, 3)),
    (" i j , j k -> i k ", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("bij,bjk->ikb", (5, 2, 3), (5, 3, 4)),
    ("bij,bjk->bik", (1, 2, 3), (5, 3, 4)),
    ("ij,j->i", (2, 3), (1,)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,ij->ij", (2, 3), (1, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,j->ji", (2,), (3,)),
    ("i,i", (3,), (3,)),
    ("i,", (3,), ()),
    (",", (), ()),
    (",->", (), ()),
    ("ij,k->k", (2, 3), (4,)),
    ("iij,jk->k", (2, 2, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
    ("ij,jk->ik", (0, 3), (3, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...ij,...jk", (3, 4), (5, 4, 2)),
    ("...,...->...", (2, 3), (3,)),
    ("...i,...i", (2, 3), (3,)),
    ("i...,j...->...", (2, 3), (4, 1)),
    ("ab,bc,cd", (2, 3), (3, 4), (4, 2)),
    ("ab,bc,ca->", (2, 3), (3, 4), (4, 2)),
    ("ab,ab,ab->ab", (2, 3), (2, 3), (2, 1)),
    ("i,j,k->kji", (2,), (3,), (4,)),
    ("ab,ac,ad,ae->bcde", (2, 3), (2, 2), (2, 4), (2, 3)),
    ("ab,bc,cd,de,ef->af", (2, 3), (3, 4), (4, 2), (2, 3), (3, 2)),
    ("ab,bc,cd,de,ef,fg,gh->ah", (2, 3), (3, 4), (4, 2), (2, 3), (3, 2), (2, 2), (2, 3)),
    ("a,b,c,d,e,f,g->", (2,), (3,), (2,), (3,), (2,), (3,), (2,)),
    ("A,a->aA", (2,), (3,)),
    ("bA,ab", (2, 3), (4, 2)),
]


def whole(shapes: Any, seed: int = 0) -> list[np.ndarray]:
    """Whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, size=shape).astype(np.float32) for shape in shapes]


def check(equation: str, arrays: list[np.ndarray]) -> None:
    want = np.einsum(equation, *arrays)
    tensors = [dn.tensor(array) for array in arrays]
    for function in (dn.einsum, dn.jit(dn.einsum)):
        got = function(equation, *tensors).to_numpy()
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("equation", "shapes"), [(row[0], row[1:]) for row in EQUATIONS])
def test_values_are_numpys(equation: str, shapes: Any) -> None:
    check(equation, whole(shapes))


@st.composite
def problems(draw: Any) -> tuple[str, list[tuple[int, ...]]]:
    """A random equation and the shapes of its operands; some axes have size 1 instead."""
    letters = "abcdE"[: draw(st.integers(1, 5))]
    sizes = {letter: draw(st.integers(1, 3)) for letter in letters}
    spread = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 7))):
        term = draw(st.lists(st.sampled_from(letters), max_size=3))
        # Equal letters of one operand have equal sizes.
        narrow = {letter for letter in term if draw(st.integers(0, 5)) == 0}
        shape = [1 if letter in narrow else sizes[letter] for letter in term]
        if draw(st.booleans()):
            at = draw(st.integers(0, len(term)))
            own = spread[draw(st.integers(0, len(spread))) :]
            own = tuple(1 if draw(st.integers(0, 5)) == 0 else size for size in own)
            shape[at:at] = own
            term.insert(at, "...")
        terms.append("".join(term))
        shapes.append(tuple(shape))
    equation = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({letter for term in terms for letter in term if letter != "."})
        output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        output.insert(draw(st.integers(0, len(output))), "...")
        equation += "->" + "".join(output)
    return equation, shapes


@settings(max_examples=200, deadline=None)
@given(problems(), st.integers(0, 1000))
def test_random_equations(problem: tuple[str, list[tuple[int, ...]]], seed: int) -> None:
    equation, shapes = problem
    arrays = whole(shapes, seed)
    tensors = [dn.tensor(array) for array in arrays]
    want = np.einsum(equation, *[array.astype(np.float64) for array in arrays])
    np.testing.assert_allclose(dn.einsum(equation, *tensors).to_numpy(), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [(row[0], row[1:]) for row in EQUATIONS if all(0 not in shape for shape in row[1:])],
)
def test_gradients_are_those_of_finite_differences(equation: str, shapes: Any) -> None:
    """The function is linear in each operand, so that a difference is exact but for rounding."""
    arrays = [array.astype(np.float64) for array in whole(shapes)]
    shape = np.einsum(equation, *arrays).shape
    weights = np.random.default_rng(1).integers(-2, 3, size=shape).astype(np.float64)

    def scalar(*operands: dn.Tensor) -> dn.Tensor:
        return dn.sum(dn.einsum(equation, *operands) * dn.tensor(weights))

    every = tuple(range(len(arrays)))
    gradients = dn.grad(lambda operands: scalar(*operands))(tuple(map(dn.tensor, arrays)))
    for at in every:
        want = np.zeros(arrays[at].shape)
        for position in np.ndindex(arrays[at].shape):
            unit = np.zeros(arrays[at].shape)
            unit[position] = 1.0
            operands = [*arrays[:at], unit, *arrays[at + 1 :]]
            want[position] = np.sum(np.einsum(equation, *operands) * weights)
        np.testing.assert_allclose(gradients[at].to_numpy(), want, rtol=1e-12, atol=1e-12)


def test_gradients_of_complex_operands() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)) for _ in range(2))
    by_letters = dn.grad(lambda x: dn.sum(dn.real(dn.einsum("ij,jk->ik", x, dn.tensor(b)))))
    by_product = dn.grad(lambda x: dn.sum(dn.real(x @ dn.tensor(b))))
    np.testing.assert_allclose(
        by_letters(dn.tensor(a)).to_numpy(), by_product(dn.tensor(a)).to_numpy(), rtol=1e-12
    )


def test_vmap_maps_every_operand() -> None:
    a, b, c = whole([(5, 2, 3), (3, 4), (4, 5, 4)])
    function = dn.vmap(lambda x, y, z: dn.einsum("ij,jk,kk->i", x, y, z), in_axes=(0, None, 1))
    got = function(dn.tensor(a), dn.tensor(b), dn.tensor(c))
    np.testing.assert_array_equal(got.to_numpy(), np.einsum("vij,jk,kvk->vi", a, b, c))


def test_vectorized_axes_stay_in_front() -> None:
    a, b = whole([(5, 2, 3), (4, 3)])
    x = dn.vectorize(dn.tensor(a), "v")
    got = dn.einsum("ij,kj->ki", x, dn.tensor(b))
    np.testing.assert_array_equal(dn.devectorize(got).to_numpy(), np.einsum("vij,kj->vki", a, b))


def test_integers_wrap_and_bools_are_counted() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 256, size=(3, 3)).astype(np.uint8) for _ in range(2))
    for equation in ("ij,jk->ik", "ij,ij->i", "ij,kj->"):
        got = dn.einsum(equation, dn.tensor(a), dn.tensor(b))
        assert got.dtype == dn.u8
        np.testing.assert_array_equal(got.to_numpy(), np.einsum(equation, a, b))
    assert dn.einsum("ij->j", dn.tensor(a)).dtype == dn.u8
    np.testing.assert_array_equal(dn.einsum("ij->", dn.tensor(a)).to_numpy(), np.einsum("ij->", a))
    truth = dn.tensor([[True, True], [False, True]])
    assert dn.einsum("ij,jk->ik", truth, truth).to_list() == [[1, 2], [0, 1]]
    assert dn.einsum("ij->i", truth).to_list() == [2, 1]
    assert dn.einsum("ij,j,i->", truth, truth[0], truth[1]).dtype == dn.s32


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8_e5m2", "f8_e4m3fn"])
def test_narrow_floats_are_rounded_once(dtype: str) -> None:
    rng = np.random.default_rng(4)
    arrays = [rng.uniform(0.5, 1.5, size=shape) for shape in ((3, 4), (4, 5), (5, 2))]
    tensors = [dn.tensor(array, dtype=dtype) for array in arrays]
    exact = [dn.as_type(tensor, "f64").to_numpy() for tensor in tensors]
    want = dn.as_type(dn.tensor(np.einsum("ij,jk,kl->il", *exact), dtype="f32"), dtype)
    got = dn.einsum("ij,jk,kl->il", *tensors)
    assert str(got.dtype) == dtype
    assert got.to_list() == want.to_list()


def test_numbers_are_weak() -> None:
    x = dn.tensor([1.0, 2.0], dtype="bf16")
    got = dn.einsum("i,->i", x, 2)
    assert (got.dtype, got.to_list()) == (dn.bf16, [2.0, 4.0])
    assert dn.einsum(",", 2, 3).item() == 6


def test_names_merge() -> None:
    x = dn.iota((2, 3), names=["row", "column"])
    assert dn.einsum("ij,jk->ik", x, dn.iota((3, 4), names=["other", None])).names == ("row", None)
    assert dn.einsum("ij,ij->j", x, dn.iota((2, 3))).names == ("column",)
    assert dn.einsum("i...->...i", x).names == ("column", "row")
    with pytest.raises(dn.AxisError, match="einsum"):
        dn.einsum("ij,ij->ij", x, x.rename(["row", "place"]))
    with pytest.raises(dn.AxisError, match="einsum"):
        dn.einsum("ij,kj->ik", x, x)


def products(equation: str, *shapes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of the products that the program of an equation has, in order."""
    expr = dn.debug_expr(lambda *operands: dn.einsum(equation, *operands))(
        *[dn.template(shape, "f32") for shape in shapes]
    )
    return [node.shape for node in dn.compilers.program(expr).walk() if node.op == "dot"]


def test_a_pair_is_one_product() -> None:
    assert products("bhid,bhjd->bhij", (2, 4, 5, 3), (2, 4, 6, 3)) == [(2, 4, 5, 6)]
    assert products("ij,jk->ik", (2, 3), (3, 4)) == [(2, 4)]


def test_the_order_of_contraction_is_the_cheapest() -> None:
    # From the left the matrices would be multiplied first.
    assert products("ij,jk,k->i", (30, 30), (30, 30), (30,)) == [(30,), (30,)]
    # A matrix of the outer product would have 10_000 elements.
    assert products("i,j,j->i", (100,), (100,), (100,)) == [()]
    many = ["ab", "bc", "cd", "de", "ef", "fg", "gh", "h"]
    shapes = products(",".join(many) + "->a", *[(9,) * len(term) for term in many])
    assert shapes == [(9,)] * 7


REFUSED = [
    ("ij,jk->iz", 2, 'none has "z"'),
    ("ij,jk->ii", 2, '"i" stands there twice'),
    ("ij->ij", 2, "it is for 1"),
    ("ij,jk,kl", 2, "it is for 3"),
    ("i,jk", 2, "operand 0, f32"),
    ("ijk,jk", 2, "operand 0, f32"),
    ("i...j...,jk", 2, "at most one"),
    ("ij,j1", 2, "'1'"),
    ("ij,jk->ik->i", 2, "'-'"),
    ("i..j,jk", 2, "'.'"),
    ("ij,...->i", 2, 'result has "..."'),
    ("éj,jk", 2, "'é'"),
]


@pytest.mark.parametrize(("equation", "count", "text"), REFUSED)
def test_equations_that_are_refused(equation: str, count: int, text: str) -> None:
    with pytest.raises(dn.OptionError) as raised:
        dn.einsum(equation, *[dn.iota((3, 3), dtype="f32")] * count)
    assert text in str(raised.value)
    assert equation in str(raised.value)


def test_operands_that_are_refused() -> None:
    with pytest.raises(dn.ShapeError, match="no tensors"):
        dn.einsum("")
    with pytest.raises(dn.ShapeError, match="sizes 3 and 4"):
        dn.einsum("ij,jk->ik", dn.iota((2, 3)), dn.iota((4, 5)))
    with pytest.raises(dn.ShapeError, match="sizes 2 and 3"):
        dn.einsum("ii", dn.iota((2, 3)))
    with pytest.raises(dn.ShapeError, match="sizes 1 and 3"):
        dn.einsum("ii,i", dn.iota((1, 3)), dn.iota((3,)))
    with pytest.raises(dn.ShapeError, match="sizes 3 and 2"):
        dn.einsum("i,i,i", dn.iota((3,)), dn.iota((1,)), dn.iota((2,)))
    with pytest.raises(dn.OptionError, match="the equation"):
        dn.einsum(dn.iota((2, 3)), dn.iota((3,)))


def test_permutations_of_operands_agree() -> None:
    arrays = whole([(2, 3), (3, 4), (4, 2), (2, 5)])
    terms = ["ab", "bc", "cd", "de"]
    want = np.einsum("ab,bc,cd,de->ea", *arrays)
    for order in itertools.permutations(range(4)):
        equation = ",".join(terms[i] for i in order) + "->ea"
        got = dn.einsum(equation, *[dn.tensor(arrays[i]) for i in order])
        np.testing.assert_array_equal(got.to_numpy(), want)
