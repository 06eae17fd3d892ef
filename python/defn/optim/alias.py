"""Optimizers: chains that end with a learning rate, under the names of their authors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from defn._public import public
from defn.optim.scaling import (
    add_decayed_weights,
    scale_by_adam,
    scale_by_learning_rate,
    scale_by_lion,
    scale_by_rms,
    trace,
)
from defn.optim.transformation import GradientTransformation, chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn.optim.scaling import Schedule
    from defn.typing import DTypeLike, TensorLike

__all__ = ["adam", "adamw", "lion", "rmsprop", "sgd"]


@public
def sgd(
    learning_rate: TensorLike | Schedule,
    /,
    *,
    momentum: float | None = None,
    nesterov: bool = False,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    """Gradient descent, with momentum where it is given; see :func:`trace`.

    The learning rate is a number, a tensor, or a schedule: a function of the number of steps done.

    Raises: ``OptionError`` for a momentum that is not in ``[0, 1)``.

    >>> optimizer = dn.optim.sgd(0.1, momentum=0.9)
    >>> params = dn.tensor([1.0, -2.0])
    >>> state = optimizer.init(params)
    >>> for _ in range(100):
    ...     gradients = dn.grad(lambda x: dn.sum((x - 3.0) ** 2))(params)
    ...     updates, state = optimizer.update(gradients, state, params)
    ...     params = dn.optim.apply_updates(params, updates)
    >>> [round(x, 1) for x in params.to_list()]
    [3.0, 3.0]
    """
    rate = scale_by_learning_rate(learning_rate)
    if momentum is None:
        return chain(rate)
    return chain(trace(momentum, nesterov=nesterov, accumulator_dtype=accumulator_dtype), rate)


@public
def adam(
    learning_rate: TensorLike | Schedule,
    /,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    mu_dtype: DTypeLike | None = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam; the options are those of :func:`scale_by_adam`.

    Raises: as :func:`scale_by_adam`.

    >>> optimizer = dn.optim.adam(0.1)
    >>> state = optimizer.init(dn.tensor([0.0, 0.0]))
    >>> updates, state = optimizer.update(dn.tensor([3.0, -0.01]), state, None)
    >>> [round(x, 6) for x in updates.to_list()]
    [-0.1, 0.1]
    """
    directions = scale_by_adam(
        b1=b1, b2=b2, eps=eps, eps_root=eps_root, mu_dtype=mu_dtype, nesterov=nesterov
    )
    return chain(directions, scale_by_learning_rate(learning_rate))


@public
def adamw(
    learning_rate: TensorLike | Schedule,
    /,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: float = 1e-4,
    mask: Any | Callable[[Any], Any] = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam with decay of the weights that a mask selects; see :func:`add_decayed_weights`.

    The decay is multiplied by the learning rate. Loshchilov & Hutter, "Decoupled weight decay
    regularization" (2017).

    Raises: as :func:`scale_by_adam` and :func:`add_decayed_weights`.

    >>> params = {"w": dn.tensor([[1.0]]), "b": dn.tensor([1.0])}
    >>> matrices = lambda params: dn.tree.map(lambda x: x.ndim > 1, params)
    >>> optimizer = dn.optim.adamw(0.1, weight_decay=0.5, mask=matrices)
    >>> zeros = dn.tree.zeros_like(params)
    >>> updates, state = optimizer.update(zeros, optimizer.init(params), params)
    >>> round(updates["w"].item(), 6), updates["b"].item()
    (-0.05, -0.0)
    """
    directions = scale_by_adam(
        b1=b1, b2=b2, eps=eps, eps_root=eps_root, mu_dtype=mu_dtype, nesterov=nesterov
    )
    decay = add_decayed_weights(weight_decay, mask=mask)
    return chain(directions, decay, scale_by_learning_rate(learning_rate))


@public
def lion(
    learning_rate: TensorLike | Schedule,
    /,
    *,
    b1: float = 0.9,
    b2: float = 0.99,
    mu_dtype: DTypeLike | None = None,
    weight_decay: float = 1e-3,
    mask: Any | Callable[[Any], Any] = None,
) -> GradientTransformation:
    """Lion: steps of one length, with decay of weights; see :func:`scale_by_lion`.

    Raises: as :func:`scale_by_lion` and :func:`add_decayed_weights`.

    >>> optimizer = dn.optim.lion(0.5, weight_decay=0.0)
    >>> params = dn.tensor([0.0, 0.0])
    >>> optimizer.update(dn.tensor([3.0, -0.01]), optimizer.init(params), params)[0].to_list()
    [-0.5, 0.5]
    """
    signs = scale_by_lion(b1=b1, b2=b2, mu_dtype=mu_dtype)
    decay = add_decayed_weights(weight_decay, mask=mask)
    return chain(signs, decay, scale_by_learning_rate(learning_rate))


@public
def rmsprop(
    learning_rate: TensorLike | Schedule,
    /,
    *,
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    eps_in_sqrt: bool = True,
    momentum: float | None = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """RMSProp, with momentum where it is given; see :func:`scale_by_rms` and :func:`trace`.

    PyTorch's has ``eps_in_sqrt=False``.

    Raises: as :func:`scale_by_rms` and :func:`trace`.

    >>> optimizer = dn.optim.rmsprop(0.5, decay=0.75, eps=0.0)
    >>> optimizer.update(dn.tensor([3.0]), optimizer.init(dn.tensor([0.0])), None)[0].to_list()
    [-1.0]
    """
    scaled = scale_by_rms(
        decay=decay, eps=eps, initial_scale=initial_scale, eps_in_sqrt=eps_in_sqrt
    )
    rate = scale_by_learning_rate(learning_rate)
    if momentum is None:
        return chain(scaled, rate)
    return chain(scaled, rate, trace(momentum, nesterov=nesterov))
