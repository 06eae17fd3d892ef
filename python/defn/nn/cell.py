"""Cells of recurrent networks, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._names import caller
from defn._public import forwards, public
from defn.errors import ContainerError

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import DTypeLike, TensorLike

__all__ = [
    "gru_cell",
    "gru_parameters",
    "gru_parameters_split",
    "lstm_cell",
    "lstm_parameters",
    "lstm_parameters_split",
]


@public
def lstm_cell(
    x: TensorLike,
    state: tuple[TensorLike, TensorLike],
    kernel: TensorLike,
    recurrent_kernel: TensorLike,
    bias: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """A step of an LSTM: the next state, which is the output and the state of the cells.

    With ``z = x @ kernel + hidden @ recurrent_kernel + bias``, cut into the gates ``i``, ``f``,
    ``g`` and ``o``, the next cell is ``sigmoid(f) * cell + sigmoid(i) * tanh(g)``, and the next
    output ``sigmoid(o) * tanh(cell)``. Layout and gates are those of Keras. PyTorch's weights are
    transposed and its two offsets added; Flax has each gate on its own, in the same order. Nothing
    is added to the gate of forgetting: its offsets of :func:`lstm_parameters` are 1. Hochreiter &
    Schmidhuber, "Long short-term memory" (1997); Gers, Schmidhuber & Cummins, "Learning to forget"
    (2000).

    Shapes: ``x`` is (..., inputs), both states (..., units), ``kernel`` (inputs, 4 * units),
        ``recurrent_kernel`` (units, 4 * units), ``bias`` (4 * units), the results (..., units).
    Dtypes: real; promoted, integers to f32. Gates of floats of 8 and 16 bits are computed in f32.
    Grad: to all operands.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for scalars, ``ShapeError`` for
        parameters without the shapes of the gates, ``ContainerError`` for a state that is not a
        pair.

    >>> params, key = dn.nn.lstm_parameters(dn.random.key(1), 2, 3)
    >>> state = dn.broadcast(0.0, (3,)), dn.broadcast(0.0, (3,))
    >>> hidden, cell = dn.nn.lstm_cell(dn.tensor([1.0, 2.0]), state, **params)
    >>> hidden.shape, cell.shape
    ((3,), (3,))
    """
    hidden, cell = _pair(state)
    return _core.lstm_step(x, hidden, cell, kernel, recurrent_kernel, bias)


def _pair(state: object) -> tuple[TensorLike, TensorLike]:
    """The output and the state of the cells."""
    if isinstance(state, (tuple, list)) and len(state) == 2:
        return state[0], state[1]
    kind = type(state).__name__
    raise ContainerError(
        f"lstm_cell: the state is a value of type {kind}, "
        f"it must be a pair (hidden, cell){caller()}"
    )


@forwards(_core.gru_cell)
def gru_cell(
    x: TensorLike,
    hidden: TensorLike,
    kernel: TensorLike,
    recurrent_kernel: TensorLike,
    bias: TensorLike | None = None,
    recurrent_bias: TensorLike | None = None,
) -> Tensor:
    """A step of a GRU: the next state, which is also the output.

    With ``u = x @ kernel + bias`` and ``v = hidden @ recurrent_kernel + recurrent_bias``, cut into
    the gates ``r``, ``z`` and ``n``, the candidate is ``c = tanh(u_n + sigmoid(u_r + v_r) * v_n)``,
    and the result ``c + sigmoid(u_z + v_z) * (hidden - c)``. The gates have the order of PyTorch
    and Flax, where Keras has ``z`` first; PyTorch's weights are transposed. Cho et al., "Learning
    phrase representations using RNN encoder-decoder for statistical machine translation" (2014),
    with the reset gate after the product, as in cuDNN.

    Shapes: ``x`` is (..., inputs), ``hidden`` (..., units), ``kernel`` (inputs, 3 * units),
        ``recurrent_kernel`` (units, 3 * units), both offsets (3 * units), the result (..., units).
    Dtypes: real; promoted, integers to f32. Gates of floats of 8 and 16 bits are computed in f32.
    Grad: to all operands.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for scalars, ``ShapeError`` for
        parameters without the shapes of the gates.

    >>> params, key = dn.nn.gru_parameters(dn.random.key(1), 2, 3)
    >>> dn.nn.gru_cell(dn.tensor([1.0, 2.0]), dn.broadcast(0.0, (3,)), **params).shape
    (3,)
    """
    ...


@public
def lstm_parameters(
    key: TensorLike, inputs: int, units: int, *, dtype: DTypeLike = "f32"
) -> tuple[dict[str, Tensor], Tensor]:
    """Parameters of :func:`lstm_cell`, and the next key.

    A dict with ``"kernel"``, uniform weights as of :func:`glorot`, ``"recurrent_kernel"``,
    orthogonal matrices, each drawn for every gate, and ``"bias"``, which is 0, but 1 for the gate
    of forgetting. Jozefowicz, Zaremba & Sutskever, "An empirical exploration of recurrent network
    architectures" (2015).

    Shapes: those of :func:`lstm_cell`.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for negative numbers and for a dtype
        that is not a float.

    >>> params, key = dn.nn.lstm_parameters(dn.random.key(1), 3, 1)
    >>> params["kernel"].shape, params["bias"].to_list()
    ((3, 4), [0.0, 1.0, 0.0, 0.0])
    """
    *values, after = _core.lstm_values(key, inputs, units, dtype)
    return _named(values), after


@public
def lstm_parameters_split(
    key: TensorLike, inputs: int, units: int, *, dtype: DTypeLike = "f32"
) -> dict[str, Tensor]:
    """Like :func:`lstm_parameters`, but draws from ``key`` itself and returns only the parameters.

    Shapes: those of :func:`lstm_cell`.
    Dtypes: floats.
    Grad: none.
    Raises: as :func:`lstm_parameters`.

    >>> sorted(dn.nn.lstm_parameters_split(dn.random.key(1), 3, 2))
    ['bias', 'kernel', 'recurrent_kernel']
    """
    return _named(_core.lstm_values_split(key, inputs, units, dtype))


@public
def gru_parameters(
    key: TensorLike, inputs: int, units: int, *, dtype: DTypeLike = "f32"
) -> tuple[dict[str, Tensor], Tensor]:
    """Parameters of :func:`gru_cell`, and the next key.

    A dict with ``"kernel"``, uniform weights as of :func:`glorot`, ``"recurrent_kernel"``,
    orthogonal matrices, each drawn for every gate, and ``"bias"``, which is 0.

    Shapes: those of :func:`gru_cell`.
    Dtypes: floats.
    Grad: none.
    Raises: as :func:`lstm_parameters`.

    >>> params, key = dn.nn.gru_parameters(dn.random.key(1), 3, 2, dtype="bf16")
    >>> params["recurrent_kernel"].shape, params["bias"].dtype
    ((2, 6), bf16)
    """
    *values, after = _core.gru_values(key, inputs, units, dtype)
    return _named(values), after


@public
def gru_parameters_split(
    key: TensorLike, inputs: int, units: int, *, dtype: DTypeLike = "f32"
) -> dict[str, Tensor]:
    """Like :func:`gru_parameters`, but draws from ``key`` itself and returns only the parameters.

    Shapes: those of :func:`gru_cell`.
    Dtypes: floats.
    Grad: none.
    Raises: as :func:`lstm_parameters`.

    >>> dn.nn.gru_parameters_split(dn.random.key(1), 3, 2)["kernel"].shape
    (3, 6)
    """
    return _named(_core.gru_values_split(key, inputs, units, dtype))


def _named(values: list[Tensor]) -> dict[str, Tensor]:
    return dict(zip(("kernel", "recurrent_kernel", "bias"), values, strict=True))
