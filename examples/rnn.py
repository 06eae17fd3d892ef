"""A recurrent network that learns to continue a sine: a ``for`` over a sequence, differentiated.

python examples/rnn.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import defn as dn


@dataclass
class Cell:
    """Weights of ``h`` hidden values: inputs {h}, hidden {h, h}, bias {h}, output {h}."""

    inputs: dn.Tensor
    hidden: dn.Tensor
    bias: dn.Tensor
    output: dn.Tensor


@dn.defn
def loss(cell, sequence):
    """The mean squared error of predicting each value of a sequence {n} from the earlier ones."""
    state = cell.bias * 0.0
    total = dn.sum(state)
    before = sequence[0]
    for value in sequence[1:]:
        state = dn.tanh(cell.inputs * before + dn.dot(cell.hidden, state) + cell.bias)
        error = dn.dot(cell.output, state) - value
        total = total + error * error
        before = value
    return total / (sequence.shape[0] - 1)


@dn.defn
def step(cell, sequence, rate):
    """The loss before, and the weights after one step of gradient descent."""
    value, slope = dn.value_and_grad(loss)(cell, sequence)
    return value, Cell(
        cell.inputs - rate * slope.inputs,
        cell.hidden - rate * slope.hidden,
        cell.bias - rate * slope.bias,
        cell.output - rate * slope.output,
    )


def loss_numpy(inputs, hidden, bias, output, sequence):
    """The loss in NumPy."""
    state, total, before = np.zeros_like(bias), 0.0, sequence[0]
    for value in sequence[1:]:
        state = np.tanh(inputs * before + hidden @ state + bias)
        total += (output @ state - value) ** 2
        before = value
    return total / (len(sequence) - 1)


def weights(size: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Initial weights: inputs {size}, hidden {size, size}, bias {size}, output {size}."""
    random = np.random.default_rng(seed)
    return (
        random.normal(0, 0.5, size),
        random.normal(0, 0.5 / np.sqrt(size), (size, size)),
        np.zeros(size),
        random.normal(0, 0.5, size),
    )


def main() -> None:
    sequence = np.sin(np.linspace(0, 12, 60))
    cell = Cell(*map(dn.tensor, weights(16)))
    for epoch in range(301):
        value, cell = step(cell, sequence, 0.05)
        if epoch % 100 == 0:
            print(f"step {epoch:3}: loss {value:.5f}")


if __name__ == "__main__":
    main()
