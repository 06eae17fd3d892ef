"""A Metropolis sampler: a chain with accepted and rejected steps, inside one compiled loop.

python examples/metropolis.py
"""

from __future__ import annotations

import numpy as np

import defn as dn


def log_density(x):
    """Two peaks, at -2 and 2; the right one is twice as high. Not normalised."""
    return dn.log(dn.exp(-0.5 * (x + 2.0) ** 2) + 2.0 * dn.exp(-0.5 * (x - 2.0) ** 2))


@dn.defn
def sample(start, proposals, chances):
    """The chain {n} for a start, steps {n} and random numbers {n}, and how many were accepted."""
    count = proposals.shape[0]
    chain = proposals * 0.0
    x = start
    accepted = 0
    for i in dn.range(count):
        candidate = x + proposals[i]
        if dn.log(chances[i]) < log_density(candidate) - log_density(x):
            x = candidate
            accepted = accepted + 1
        chain = dn.put_slice(chain, [i], dn.new_axis(x, 0))
    return chain, accepted


def sample_numpy(start, proposals, chances):
    """The same in NumPy."""

    def density(x):
        return np.log(np.exp(-0.5 * (x + 2) ** 2) + 2 * np.exp(-0.5 * (x - 2) ** 2))

    chain, x, accepted = np.zeros_like(proposals), start, 0
    for i, proposal in enumerate(proposals):
        candidate = x + proposal
        if np.log(chances[i]) < density(candidate) - density(x):
            x = candidate
            accepted += 1
        chain[i] = x
    return chain, accepted


def draws(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Steps and random numbers in [0, 1), f64, from a key."""
    key = dn.random.key(seed)
    steps, key = dn.random.normal(key, 0.0, 2.5, shape=(count,), dtype="f64")
    chances, _ = dn.random.uniform(key, shape=(count,), dtype="f64")
    return steps.to_numpy(), chances.to_numpy()


def main() -> None:
    count = 20_000
    chain, accepted = sample(np.float64(0.0), *draws(count))
    right = float(dn.mean(chain > 0))
    print(f"accepted {int(accepted) / count:.1%}, right of 0: {right:.1%} (exactly: 65.8%)")


if __name__ == "__main__":
    main()
