"""Attention: means of values, weighted by how well queries and keys match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "attention",
]


@forwards(_core.attention)
def attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    /,
    *,
    mask: TensorLike | None = None,
    bias: TensorLike | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Means of values, weighted by the softmax of the products of queries with keys.

    The weights are ``softmax(scale * query @ key + bias)`` of each head, over the keys that
    ``mask`` selects. ``scale`` is by default 1 over the square root of the size of a head. Vaswani
    et al., "Attention is all you need" (2017).

    With ``causal=True`` a query sees no keys after its own place. The last query is at the place of
    the last key, so that fewer queries than keys are the last ones, as with a cache of keys. A
    query that sees no key has zeros, without NaN in gradients.

    There may be fewer heads of keys and values than of queries: each serves as many neighbouring
    heads of queries as there are for it (Ainslie et al., "GQA: training generalized multi-query
    transformer models from multi-head checkpoints", 2023).

    Shapes: ``[..., queries, heads, size]``, ``[..., keys, heads, size]`` and
        ``[..., keys, heads, size of values]`` to ``[..., queries, heads, size of values]`` with the
        names of the query; mask and bias broadcast to ``[..., heads, queries, keys]``.
    Dtypes: real; promoted, integers to f32. Scores and weights are computed in f32, for f64 in f64.
    Grad: to all but the mask.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for sizes that do not fit.

    >>> x = dn.broadcast(1.0, (3, 1, 4))
    >>> values = dn.tensor([[[1.0]], [[2.0]], [[6.0]]])
    >>> dn.nn.attention(x, x, values).flatten().to_list()
    [3.0, 3.0, 3.0]
    >>> dn.nn.attention(x, x, values, causal=True).flatten().to_list()
    [1.0, 1.5, 3.0]
    """
    ...
