"""The generator that keeps its key."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import defn as dn
from defn import random

CALLS = {
    "random": ((), {}),
    "uniform": ((1.0, 2.0), {}),
    "integers": ((1, 9), {}),
    "normal": ((1.0, 2.0), {}),
    "standard_normal": ((), {}),
    "exponential": ((2.0,), {}),
    "standard_exponential": ((), {}),
    "laplace": ((1.0, 2.0), {}),
    "logistic": ((1.0, 2.0), {}),
    "gumbel": ((1.0, 2.0), {}),
    "gamma": ((2.0, 3.0), {}),
    "standard_gamma": ((2.0,), {}),
    "beta": ((2.0, 3.0), {}),
    "chisquare": ((2.0,), {}),
    "standard_t": ((2.0,), {}),
    "poisson": ((3.0,), {}),
    "binomial": ((9, 0.5), {}),
    "lognormal": ((1.0, 2.0), {}),
    "multivariate_normal": (([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]]), {"method": "eigh"}),
    "choice": ((5,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_methods_have_numpys_names_and_shapes(name: str) -> None:
    arguments, options = CALLS[name]
    ours, theirs = random.Generator(3), np.random.default_rng(3)
    for size in (None, 4, (2, 3), ()):
        got = getattr(ours, name)(*arguments, size=size, **options)
        want = getattr(theirs, name)(*arguments, size=size, **options)
        assert got.shape == np.shape(want)
    again = random.Generator(3)
    first = getattr(again, name)(*arguments, size=4)
    assert first.to_list() != getattr(again, name)(*arguments, size=4).to_list() or name == "choice"


def test_the_same_seed_draws_the_same_numbers() -> None:
    rng, other = random.Generator(3), random.Generator(random.key(3))
    assert [rng.normal().item() for _ in range(3)] == [other.normal().item() for _ in range(3)]
    following, used = random.split(random.key(3))
    rng = random.Generator(3)
    assert rng.normal(size=2).to_list() == random.normal_split(used, shape=2).to_list()
    assert rng.key.to_list() == following.to_list()


def test_shapes_of_parameters_broadcast() -> None:
    rng = random.Generator(1)
    assert rng.normal([0.0, 1.0], np.ones((3, 1))).shape == (3, 2)
    assert rng.gamma(dn.tensor([1.0, 2.0]), 3.0).shape == (2,)
    assert rng.dirichlet([1.0, 2.0, 3.0], size=4).shape == (4, 3)
    assert rng.integers(4, size=50).to_numpy().max() == 3
    assert rng.integers(1, 2, size=50, endpoint=True).to_numpy().max() == 2
    x = dn.iota((4, 3), axis=0)
    assert rng.choice(x, size=(2, 2), axis=1).shape == (4, 2, 2)
    assert sorted(rng.choice(6, size=6, replace=False).to_list()) == list(range(6))
    assert sorted(rng.permutation(6).to_list()) == list(range(6))
    assert sorted(rng.shuffle(x).to_numpy()[:, 0].tolist()) == list(range(4))


def test_distributions_that_numpy_lacks() -> None:
    rng = random.Generator(5)
    following, key = random.split(random.key(5))
    logits = dn.tensor([[0.0, 5.0], [5.0, 0.0], [0.0, 0.0]])
    want = random.categorical_split(key, logits, axis=0, shape=(4,))
    assert rng.categorical(logits, size=4, axis=0).to_list() == want.to_list()
    assert rng.key.to_list() == following.to_list()
    assert rng.bernoulli([0.0, 1.0], size=(3, 2)).to_list() == [[False, True]] * 3
    assert set(rng.rademacher(50).to_list()) == {-1, 1}
    assert rng.truncated_normal([-1.0, 2.0], [1.0, 2.5]).shape == (2,)
    drawn = rng.truncated_normal(2.0, 2.5, size=50).to_numpy()
    assert 2.0 <= drawn.min() <= drawn.max() <= 2.5
    q = rng.orthogonal(3, size=2, dtype="f64")
    assert q.shape == (2, 3, 3)
    assert dn.all_close(q @ q.transpose(axes=[0, 2, 1]), dn.eye(3))
    points = rng.ball(3, [1.0, 2.0], size=(40, 2))
    assert points.shape == (40, 2, 3)
    assert dn.reduce_max(dn.sum(points**2, axes=[-1])).item() <= 1.0


def test_moments_of_composed_distributions() -> None:
    rng = random.Generator(5)
    drawn = np.log(rng.lognormal(1.0, 0.5, size=20_000, dtype="f64"))
    assert abs(drawn.mean() - 1.0) < 0.02
    assert abs(drawn.std() - 0.5) < 0.02
    covariance = np.array([[2.0, 1.0], [1.0, 2.0]])
    drawn = rng.multivariate_normal([0.0, 1.0], covariance, size=20_000).to_numpy()
    np.testing.assert_allclose(drawn.mean(0), [0.0, 1.0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1)


def test_copies_go_on_from_the_state() -> None:
    rng = random.Generator(7)
    rng.random()
    copies = [pickle.loads(pickle.dumps(rng)), copy.copy(rng), copy.deepcopy(rng)]
    want = rng.random(size=3).to_list()
    assert all(one.random(size=3).to_list() == want for one in copies)
    assert repr(random.Generator(random.key(7))) == "Generator(key=[0, 7])"


def test_children_and_threads_draw_different_numbers() -> None:
    rng = random.Generator(7)
    children = rng.spawn(3)
    assert len({child.random().item() for child in [rng, *children]}) == 4
    drawn: list[float] = []

    def work() -> None:
        drawn.extend(rng.random().item() for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = random.Generator(7)
    alone.spawn(3), alone.random()
    assert sorted(drawn) == sorted(alone.random().item() for _ in range(80))


def test_a_trace_refuses_it() -> None:
    rng = random.Generator(7)
    before = rng.key.to_list()
    with pytest.raises(dn.TraceError, match=r"^Generator: .*dn\.random\.normal\(key\)"):
        dn.jit(lambda x: x + rng.normal())(1.0)
    with pytest.raises(dn.TraceError, match=r"^Generator: "):
        dn.grad(lambda x: x * random.Generator(1).normal())(1.0)
    assert rng.key.to_list() == before
    with pytest.raises(dn.DTypeError, match=r"^(split|key): "):
        random.Generator(dn.tensor([1.0, 2.0]))
