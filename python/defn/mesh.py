"""Several devices: functions that all devices of a mesh run together, each on its own blocks.

``dn.Mesh({"data": 4})`` arranges devices in a named grid. ``dn.shard`` creates a function that the
devices run as one program. Collectives such as ``dn.all_reduce`` exchange data between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import Mesh, Sharded
from defn._public import forwards

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
    """Create a function that the devices of a mesh run together, each on its own blocks.

    ``in_specs`` has one spec for each positional argument. A spec is a tuple with an entry for each
    axis of a tensor: the axis of the mesh that it is sharded over, a tuple of several such axes, or
    None for an axis that every device holds whole. Axes at the end may be left out, so ``()``, or
    None in place of a spec, is a tensor that is replicated on every device. One spec applies to all
    tensors of a container; a list of specs has one for each entry of a tuple or list, a dict one
    for each entry of a dict. ``out_specs`` describes in the same way how the blocks that the
    devices return form the results. If it names no axis for a result, every device must return the
    same value, as after ``all_reduce``: this is not checked, and ``to_tensor`` returns the value of
    the first device.

    Results are ``dn.Sharded``. Their blocks stay on the devices, and are not moved when they are
    passed to a function that takes them with the same spec. ``to_tensor()`` and ``to_numpy()``
    assemble them on the host. Arguments may be ``Sharded``, or tensors, arrays and numbers on any
    backend, which are split and copied to the devices at each call. Captured tensors and keyword
    arguments are replicated.

    The function is traced and compiled for the types of its arguments as by ``dn.jit``; ``static``,
    ``donate`` and ``max_compiles`` are as there. Other options go to the compiler ``"pjrt"``. A
    donated ``Sharded`` argument is freed by the call. The result has ``cache_info()``,
    ``cache_clear()`` and ``explain()``; ``text(*args)`` is the graph of a call, and
    ``stablehlo(*args)`` the program that XLA compiles for it.

    A gradient inside the function is that of the sum over all devices: ``grad`` of a device's loss
    is the device's part of the gradient, and ``all_reduce`` of these parts is the gradient of the
    sum of the losses.

    Raises: ``OptionError`` for an invalid spec or mesh, ``AxisError`` for a name that the mesh does
        not have, ``ShapeError`` for a spec with more entries than a tensor has axes, and for a size
        that the number of devices does not divide, ``ContainerError`` if the numbers of specs and
        arguments differ, ``CompileError`` for a collective in a branch, or in a loop whose length
        depends on a device's data, because devices that do not reach it would block the others
        for ever, and ``TraceError`` for a call while another definition is traced.

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


@forwards(_core.all_reduce)
def all_reduce(
    tensor: Any,
    over: str | Sequence[str] | None = None,
    *,
    op: Literal["sum", "max", "min"] = "sum",
) -> Tensor:
    """Reduce the elements at the same position on all devices; each device gets the result.

    ``over`` names the axes of the mesh whose devices take part; None stands for all axes.

    Shapes: any; kept.
    Dtypes: any, real for ``"max"`` and ``"min"``; kept, so integers wrap in their own width.
        A NaN is both the greatest and the least element.
    Grad: of the sum over the devices: the devices' cotangents of the result are added up, and the
        sum goes to every device, or in equal shares to the devices with the extreme element.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh
        does not have.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> total = dn.shard(lambda x: dn.all_reduce(dn.sum(x), "data"), mesh, [("data",)], ())
    >>> float(total(np.arange(8.0)).to_tensor())
    28.0
    """
    ...


@forwards(_core.all_gather)
def all_gather(
    tensor: Any, over: str | Sequence[str] | None = None, *, axis: int | str = 0
) -> Tensor:
    """Concatenate the blocks of all devices along an axis; each device gets the result.

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
    ...


@forwards(_core.reduce_scatter)
def reduce_scatter(
    tensor: Any, over: str | Sequence[str] | None = None, *, axis: int | str = 0
) -> Tensor:
    """Sum the tensors of all devices; each device gets its part of the sum along an axis.

    Shapes: the size of the axis is divided by the number of devices.
    Dtypes: any; kept.
    Grad: ``all_gather``.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh or
        the tensor does not have, ``ShapeError`` for a size that the number of devices does not
        divide.

    >>> mesh = dn.Mesh({"data": 2}, client="host")
    >>> f = dn.shard(lambda x: dn.reduce_scatter(x, "data"), mesh, [()], ("data",))
    >>> f(dn.tensor([1, 2, 3, 4])).to_tensor().to_list()
    [2, 4, 6, 8]
    """
    ...


@forwards(_core.collective_permute)
def collective_permute(
    tensor: Any,
    over: str | Sequence[str] | None = None,
    *,
    pairs: Sequence[tuple[int, int]] = (),
) -> Tensor:
    """Send tensors between devices: for each pair, from the first device to the second.

    ``pairs`` are positions along the axis. A device that receives nothing gets zeros.

    Shapes: any; kept.
    Dtypes: any; kept.
    Grad: the reverse permutation.
    Raises: ``TraceError`` outside of a sharded function, ``AxisError`` for an axis that the mesh
        does not have, ``OptionError`` for a position out of range, and for two pairs with the same
        source or the same target.

    >>> mesh = dn.Mesh({"data": 4}, client="host")
    >>> ring = [(i, (i + 1) % 4) for i in range(4)]
    >>> turn = lambda x: dn.collective_permute(x, "data", pairs=ring)
    >>> dn.shard(turn, mesh, [("data",)], ("data",))(dn.tensor([1, 2, 3, 4])).to_tensor().to_list()
    [4, 1, 2, 3]
    """
    ...


@forwards(_core.mesh_index)
def mesh_index(over: str | Sequence[str] | None = None) -> Tensor:
    """The position along an axis of the mesh of the device that runs the function, from 0.

    For several axes, the positions are numbered with the last axis fastest.

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
    ...


@forwards(_core.mesh_size)
def mesh_size(over: str | Sequence[str] | None = None) -> int:
    """The number of devices along an axis of the mesh, as a Python number.

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
    ...
