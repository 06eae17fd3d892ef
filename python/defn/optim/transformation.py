"""What a transformation of gradients is, and chains of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from defn import _core
from defn._names import caller, option_error
from defn._public import public
from defn._tree_paths import Field, each, path_text, paths
from defn.errors import ContainerError

__all__ = [
    "GradientTransformation",
    "apply_updates",
    "chain",
    "identity",
    "masked",
]


class GradientTransformation(NamedTuple):
    """Two functions that make updates of gradients.

    ``init(params)`` makes the state. ``update(updates, state, params)`` returns the transformed
    updates and the next state; its second argument is never changed.

    A transformation of one's own is a pair of functions:

    >>> def init(params):
    ...     return ()
    >>> def update(updates, state, params):
    ...     return dn.tree.map(dn.sign, updates), state
    >>> signs = dn.optim.GradientTransformation(init, update)
    >>> optimizer = dn.optim.chain(signs, dn.optim.scale(-0.5))
    >>> gradients = dn.tensor([3.0, -0.5])
    >>> optimizer.update(gradients, optimizer.init(gradients), None)[0].to_list()
    [-0.5, 0.5]
    """

    init: Callable[[Any], Any]
    """Makes the state for parameters."""

    update: Callable[[Any, Any, Any], tuple[Any, Any]]
    """Returns updates and the next state."""


@public
def apply_updates(params: Any, updates: Any, /) -> Any:
    """The sums of parameters and updates, in the dtypes of the parameters.

    Shapes: corresponding leaves broadcast together.
    Dtypes: those of the parameters.
    Grad: ``g`` to both.
    Raises: ``ContainerError`` if the structures differ, ``ShapeError`` if leaves do not broadcast;
        errors name the first leaf that does not fit.

    >>> params, updates = {"w": dn.tensor([1.0, 2.0])}, {"w": dn.tensor([0.5, -0.5])}
    >>> dn.optim.apply_updates(params, updates)["w"].to_list()
    [1.5, 1.5]
    """

    def added(param: Any, update: Any) -> Any:
        param = _core.to_tensor(param)
        return _core.as_type(_core.add(param, update), param.dtype)

    return each("apply_updates", ("params", "updates"), added, params, updates)


@public
def identity() -> GradientTransformation:
    """The transformation that changes nothing.

    >>> dn.optim.identity().update(dn.tensor(2.0), (), None)
    (Tensor(2.0, f32), ())
    """
    return GradientTransformation(lambda _: (), lambda updates, state, _=None: (updates, state))


@public
def chain(*transformations: GradientTransformation) -> GradientTransformation:
    """Transformations one after another: each receives the updates of the one before.

    The state is the tuple of their states.

    Raises: ``OptionError`` for what is no transformation. When it is called, ``ContainerError`` for
        a state of another chain.

    >>> clipped = dn.optim.chain(dn.optim.clip(1.0), dn.optim.scale(-0.5))
    >>> gradients = dn.tensor([3.0, 0.5])
    >>> clipped.update(gradients, clipped.init(gradients), None)[0].to_list()
    [-0.5, -0.25]
    """
    for each_one in transformations:
        require_transformation("chain", "an argument", each_one)

    def init(params: Any) -> tuple[Any, ...]:
        return tuple(one.init(params) for one in transformations)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, tuple[Any, ...]]:
        if not isinstance(state, tuple) or len(state) != len(transformations):
            raise ContainerError(
                f"chain: the state is {described(state)}, it must be a tuple with a state for each "
                f"of {len(transformations)} transformations; make one with init" + caller()
            )
        states: list[Any] = []
        for one, own in zip(transformations, state, strict=True):
            updates, own = one.update(updates, own, params)
            states.append(own)
        return updates, tuple(states)

    return GradientTransformation(init, update)


@public
def masked(
    inner: GradientTransformation, mask: Any | Callable[[Any], Any], /
) -> GradientTransformation:
    """A transformation of selected leaves; the others pass unchanged.

    ``mask`` is a container of bools like the parameters, or a function of the parameters that
    returns one. A bool in place of a container counts for all leaves in it. The inner state has no
    memory for leaves that are not selected: there it has ``None``.

    Raises: ``ContainerError`` for a mask without a bool for a leaf, whose path it names.

    >>> params = {"w": dn.tensor([1.0, 2.0]), "b": dn.tensor(3.0)}
    >>> decay = dn.optim.masked(dn.optim.add_decayed_weights(0.1), {"w": True, "b": False})
    >>> updates, state = decay.update(params, decay.init(params), params)
    >>> dn.round(updates["w"] * 10).to_list(), float(updates["b"])
    ([11.0, 22.0], 3.0)
    """
    require_transformation("masked", "inner", inner)

    def init(params: Any) -> Any:
        return inner.init(_selected(params, mask)[0])

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        chosen, rows, structure, flags = _selected(updates, mask, params)
        own = None if params is None else _selected(params, mask)[0]
        changed, state = inner.update(chosen, state, own)
        rest = iter(_core.corresponding_leaves("masked", ("the inner updates",), changed)[0])
        leaves = [next(rest)[0] if flag else row[0] for row, flag in zip(rows, flags, strict=True)]
        return _core.unflatten_container(structure, leaves), state

    return GradientTransformation(init, update)


def _selected(tree: Any, mask: Any, params: Any = None) -> tuple[Any, Any, Any, list[bool]]:
    """The container with ``None`` for leaves that are not selected, its parts, and the bools."""
    given = mask(tree if params is None else params) if callable(mask) else mask
    rows, structure = _core.corresponding_leaves("masked", ("the updates",), tree)
    flags = [_flag(given, path) for path in paths(structure)]
    leaves = [row[0] if flag else None for row, flag in zip(rows, flags, strict=True)]
    return _core.unflatten_container(structure, leaves), rows, structure, flags


def _flag(mask: Any, path: tuple[Any, ...]) -> bool:
    at = mask
    for depth, part in enumerate(path):
        if isinstance(at, bool):
            return at
        try:
            at = getattr(at, part) if isinstance(part, Field) else at[part]
        except (AttributeError, IndexError, KeyError, TypeError):
            at = None
            path = path[: depth + 1]
            break
    if isinstance(at, bool):
        return at
    where = path_text(path) or "the whole"
    raise ContainerError(
        f"masked: the mask has {described(at)} at {where}, it must have a bool for each leaf, or "
        "for a container of leaves" + caller()
    )


def described(value: Any) -> str:
    """The value as messages name what should be a container."""
    if isinstance(value, tuple):
        return f"a tuple of length {len(value)}"
    return "None" if value is None else f"of the type {type(value).__name__}"


def require_transformation(op: str, name: str, value: Any) -> None:
    """Raise for what is no transformation."""
    if not (callable(getattr(value, "init", None)) and callable(getattr(value, "update", None))):
        raise option_error(
            f"{op}: {name} is {described(value)}, it must be a transformation, with the functions "
            "init and update"
        )
