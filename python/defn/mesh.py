"""Several devices: functions that all devices of a mesh run together, each on its own blocks.

``dn.Mesh({"data": 4})`` names devices in a grid, ``dn.shard`` makes a function that they run as one
program, and ``dn.all_reduce`` and its like are what they exchange on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._core import Mesh, Sharded
from defn._names import refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from defn._core import ShardedFunction, Tensor

__all__ = [
    "Mesh",
    "Sharded",
    "all_gather",
    "all_reduce",
    "collective_permute",
    "mesh_index",
    "mesh_size",
    "reduce_scatter",
    "shard",
]


def shard(
    fun: Callable[..., Any],
    mesh: Mesh,
    in_specs: Sequence[Any],
    out_specs: Any,
    *,
    static: str | Sequence[str] = (),
    donate: int | str | Sequence[int | str] = (),
    max_compiles: int | None = None,
    **compiler_options: Any,
) -> ShardedFunction:
    """Make a function that the devices of a mesh run together, each on its blocks of the arguments.

    ``in_specs`` has one spec for each positional argument. A spec is a tuple that names for each
    axis of a tensor the axis of the mesh that it is laid over, several in a tuple, or None for an
    axis that is whole on every device; axes at the end may be left out, so that ``()``, or None in
    place of a spec, is a tensor of which every device has all. One spec serves all tensors of a
    container; a list of specs gives each entry of a tuple or list its own, a dict each entry of a
    dict. ``out_specs`` says in the same way how the blocks that the devices return make up the
    results. Where it names no axis for a result, every device has to return the same, as after
    ``all_reduce``: this is not looked at, and ``to_tensor`` gives what the first device has.

    Results are ``dn.Sharded``: their blocks stay on the devices, and move nowhere when they are
    passed to a function that wants them laid the same way. ``to_tensor()`` and ``to_numpy()`` put
    them together on the host. Arguments may be tensors, arrays and numbers anywhere, which are cut
    up and copied to the devices at each call, or ``Sharded``. What the function closes over, and
    what is given by name, every device has whole.

    The function is traced and compiled for the types of its arguments as by ``dn.jit``, whose
    ``static``, ``donate`` and ``max_compiles`` these are; other options go to the compiler
    ``"pjrt"``. A ``Sharded`` argument that is donated is gone after the call. The result has
    ``cache_info()``, ``cache_clear()`` and ``explain()``; ``text(*args)`` is the graph of a call,
    ``stablehlo(*args)`` the program that XLA compiles of it.

    A gradient inside is that of the sum of what all devices differentiate: ``grad`` of a device's
    own loss is the device's share of the gradient, and ``all_reduce`` of it that of the sum of the
    losses.

    Raises: ``OptionError`` for what is no spec or no mesh, ``AxisError`` for a name that the mesh
        does not have, ``ShapeError`` for a spec with more entries than a tensor has axes, and for
        a size that the devices do not divide, ``ContainerError`` for as many specs as there are no
        arguments, ``CompileError`` for an exchange in a branch, or in a loop that ends by what a
        device has, since devices that do not come to it would keep the others waiting for ever,
        and ``TraceError`` where it is called while another definition is traced.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> def normalize(x):
    ...     return x / dn.all_reduce(dn.sum(x), "data")
    >>> shares = dn.shard(normalize, mesh, in_specs=[("data",)], out_specs=("data",))
    >>> shares(dn.tensor([1.0, 2.0, 3.0, 4.0])).to_tensor().to_list()
    [0.10000000149011612, 0.20000000298023224, 0.30000001192092896, 0.4000000059604645]
    """
    return _core.ShardedFunction(
        fun,
        mesh,
        in_specs,
        out_specs,
        static=static,
        donate=donate,
        max_compiles=max_compiles,
        options=compiler_options or None,
    )


def all_reduce(
    tensor: Any,
    over: str | Sequence[str] | None = None,
    *,
    op: Literal["sum", "max", "min"] = "sum",
    **unknown: Never,
) -> Tensor:
    """Fold what the devices have in the same place; each of them has the result.

    ``over`` names the axis or the axes of the mesh whose devices work together, None all of them.

    Shapes: any; kept.
    Dtypes: any, real for ``"max"`` and ``"min"``; kept, so that integers wrap in their own width.
        A NaN is the greatest and the least.
    Grad: of the sum over the devices: what they have of the result's is added up, and goes to every
        device, or in equal shares to those whose element is the extreme one.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh
        does not have.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> total = dn.shard(lambda x: dn.all_reduce(dn.sum(x), "data"), mesh, [("data",)], ())
    >>> float(total(np.arange(8.0)).to_tensor())
    28.0
    """
    if unknown:
        refuse_options("all_reduce", unknown)
    return _core.all_reduce(tensor, over, op)


def all_gather(
    tensor: Any, over: str | Sequence[str] | None = None, *, axis: int | str = 0, **unknown: Never
) -> Tensor:
    """The blocks of all devices, one after the other along an axis, on each of them.

    Shapes: the size of the axis is multiplied by the number of devices.
    Dtypes: any; kept.
    Grad: ``reduce_scatter``.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh or
        the tensor does not have.

    >>> mesh = dn.Mesh({"data": 2}, client="host")
    >>> f = dn.shard(lambda x: x + dn.sum(dn.all_gather(x, "data")), mesh, [("data",)], ("data",))
    >>> f(dn.tensor([1, 2, 3, 4])).to_tensor().to_list()
    [11, 12, 13, 14]
    """
    if unknown:
        refuse_options("all_gather", unknown)
    return _core.all_gather(tensor, over, axis)


def reduce_scatter(
    tensor: Any, over: str | Sequence[str] | None = None, *, axis: int | str = 0, **unknown: Never
) -> Tensor:
    """The sum of what the devices have, of which each device has its part along an axis.

    Shapes: the size of the axis is divided by the number of devices.
    Dtypes: any; kept.
    Grad: ``all_gather``.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh or
        the tensor does not have, ``ShapeError`` for one whose size the devices do not divide.

    >>> mesh = dn.Mesh({"data": 2}, client="host")
    >>> f = dn.shard(lambda x: dn.reduce_scatter(x, "data"), mesh, [()], ("data",))
    >>> f(dn.tensor([1, 2, 3, 4])).to_tensor().to_list()
    [2, 4, 6, 8]
    """
    if unknown:
        refuse_options("reduce_scatter", unknown)
    return _core.reduce_scatter(tensor, over, axis)


def collective_permute(
    tensor: Any,
    over: str | Sequence[str] | None = None,
    *,
    pairs: Sequence[tuple[int, int]] = (),
    **unknown: Never,
) -> Tensor:
    """What another device has: for each pair, that of the first device goes to the second.

    ``pairs`` are positions along the axis. A device to which none goes has zeros.

    Shapes: any; kept.
    Dtypes: any; kept.
    Grad: the way back.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh
        does not have, ``OptionError`` for a position that is out of range, and for two pairs from
        one device or to one.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> ring = [(i, (i + 1) % 4) for i in range(4)]
    >>> turn = lambda x: dn.collective_permute(x, "data", pairs=ring)
    >>> dn.shard(turn, mesh, [("data",)], ("data",))(dn.tensor([1, 2, 3, 4])).to_tensor().to_list()
    [4, 1, 2, 3]
    """
    if unknown:
        refuse_options("collective_permute", unknown)
    return _core.collective_permute(tensor, over, pairs)


def mesh_index(over: str | Sequence[str] | None = None, **unknown: Never) -> Tensor:
    """Where the device that runs the function stands along an axis of the mesh, from 0 on.

    Along several axes the last is the fastest.

    Shapes: a scalar.
    Dtypes: s32.
    Grad: none.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh
        does not have.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> f = dn.shard(lambda x: x * dn.mesh_index("data"), mesh, [("data",)], ("data",))
    >>> f(dn.tensor([1, 1, 1, 1])).to_tensor().to_list()
    [0, 1, 2, 3]
    """
    if unknown:
        refuse_options("mesh_index", unknown)
    return _core.mesh_index(over)


def mesh_size(over: str | Sequence[str] | None = None, **unknown: Never) -> int:
    """How many devices there are along an axis of the mesh: a Python number.

    Shapes: none.
    Dtypes: none.
    Grad: none.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh
        does not have.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> mean = lambda x: dn.all_reduce(x, "data") / dn.mesh_size("data")
    >>> dn.shard(mean, mesh, [("data",)], ())(dn.tensor([1.0, 2.0, 3.0, 6.0])).to_tensor().to_list()
    [3.0]
    """
    if unknown:
        refuse_options("mesh_size", unknown)
    return _core.mesh_size(over)
