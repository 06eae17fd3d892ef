"""Logistic regression by Hamiltonian Monte Carlo: many chains from the code of one.

python examples/hmc.py

``dn.vmap`` runs the chains in parallel; the log density is differentiated inside the loop.
"""

from __future__ import annotations

import numpy as np

import defn as dn


def log_density(w: dn.Tensor, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
    """For weights {d}, rows {n, d} and 0/1 labels {n}, up to a constant; the prior has scale 1."""
    score = x @ w
    likelihood = y * score - dn.logsumexp(dn.stack([score, score * 0.0]), 0)
    return dn.sum(likelihood) - 0.5 * dn.sum(w * w)


@dn.defn
def chain(
    key: dn.Tensor, x: dn.Tensor, y: dn.Tensor, size: float, *, draws: int = 400, leaps: int = 5
) -> tuple[dn.Tensor, dn.Tensor]:
    """Draws {draws, d} of one chain, and the accepted fraction (Neal, "MCMC using Hamiltonian
    dynamics", 2011).
    """
    slope = dn.grad(lambda w: log_density(w, x, y))

    def draw(state, _):
        w, key, accepted = state
        momentum, key = dn.random.normal(key, shape=w.shape, dtype=w.dtype)
        noise, key = dn.random.uniform(key, dtype=w.dtype)
        new, p = w, momentum + 0.5 * size * slope(w)
        for _ in dn.range(leaps):
            new = new + size * p
            p = p + size * slope(new)
        p = p - 0.5 * size * slope(new)
        before = log_density(w, x, y) - 0.5 * dn.sum(momentum * momentum)
        after = log_density(new, x, y) - 0.5 * dn.sum(p * p)
        if dn.log(noise) < after - before:
            w, accepted = new, accepted + 1
        return (w, key, accepted), w

    start, key = dn.random.normal(key, shape=(x.shape[1],), dtype=x.dtype)
    (_, _, accepted), found = dn.scan((start, key, 0), dn.iota(draws), draw)
    return found, accepted / draws


def spread(draws: np.ndarray) -> np.ndarray:
    """The spread between chains {chains, draws, d}; 1 if they agree (Gelman and Rubin, 1992)."""
    count = draws.shape[1]
    within, between = draws.var(1, ddof=1).mean(0), draws.mean(1).var(0, ddof=1)
    return np.sqrt(((count - 1) / count * within + between) / within)


def main(chains: int = 8) -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([np.ones(200), random.normal(size=(200, 2))])
    true = np.array([0.5, -1.0, 2.0])
    y = (random.uniform(size=200) < 1 / (1 + np.exp(-x @ true))).astype(np.float64)

    keys = dn.random.split(dn.random.key(1), parts=chains)
    run = dn.jit(dn.vmap(chain, in_axes=(0, None, None, None)))
    draws, accepted = run(keys, dn.tensor(x), dn.tensor(y), 0.1)
    kept = np.asarray(draws)[:, 100:]
    print(f"{chains} chains, {accepted.mean():.0%} accepted, spread {spread(kept).max():.3f}")
    for name, values, truth in zip(
        ("bias", "first", "second"), kept.reshape(-1, 3).T, true, strict=True
    ):
        print(f"{name:6}: {values.mean():6.3f} +- {values.std():.3f}, made with {truth}")


if __name__ == "__main__":
    main()
