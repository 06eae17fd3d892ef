"""Calls out of a program: to a backend's kernel for a block, and to a Python function."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from defn import _core
from defn._names import option_error
from defn._public import forwards, public

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any

__all__ = ["block", "optional", "runtime_call"]


def _text(tag: Any, args: Sequence[Any]) -> tuple[str, str]:
    """The name of a tag, and the text of its attributes and of the options in the arguments."""
    options = []
    for arg in reversed(args) if isinstance(args, (list, tuple)) else ():
        if not isinstance(arg, dict):
            break
        plain = {name: value for name, value in arg.items() if not _has_tensors(value)}
        options[:0] = [f"{name}={value!r}" for name, value in plain.items()]
    if isinstance(tag, str):
        return tag, ", ".join(options)
    name = type(tag).__name__
    if dataclasses.is_dataclass(tag):
        fields = [field.name for field in dataclasses.fields(tag) if field.repr]
    elif (attributes := getattr(tag, "__attrs_attrs__", None)) is not None:
        fields = [attribute.name for attribute in attributes if attribute.repr]
    else:
        return name, ", ".join([repr(tag), *options])
    return name, ", ".join([*(f"{field}={getattr(tag, field)!r}" for field in fields), *options])


def _has_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensors, value))
    if isinstance(value, dict):
        return any(map(_has_tensors, value.values()))
    return hasattr(value, "__array__")


@public
def block(tag: Hashable, args: Sequence[Any], output: Any, fun: Callable[..., Any]) -> Any:
    """Compute ``fun(tag, *args)``; a backend that knows the tag may run its own kernel instead.

    The tag identifies the computation: a frozen dataclass whose fields are the options, or any
    other hashable value. ``output`` is a template of the result, or a container of templates. Dicts
    at the end of ``args`` are options: numbers and lists of numbers in them are passed unchanged to
    ``fun`` and to the backend. In the graph the block is one node with the tag's name and
    attributes. Its default is ``fun``, traced once. A backend written in Python receives the tag in
    its callback ``block``; other backends run the default, and so do gradients and vectorized axes.
    A default that contains a hook or calls a Python function is always run.

    Shapes: of the output.
    Dtypes: any; of the output.
    Grad: of the default.
    Raises: ``ContainerError`` if the result of the default differs from the output in structure,
        dtype, shape or names, ``OptionError`` for a tag that cannot be hashed.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Scale:
    ...     factor: float
    >>> def scale(tag, x):
    ...     return x * tag.factor
    >>> x = dn.tensor([1.0, 2.0])
    >>> dn.block(Scale(3.0), [x], x, scale).to_list()
    [3.0, 6.0]
    >>> dn.debug_expr(lambda x: dn.block(Scale(3.0), [x], x, scale))(x)
    Tensor<
      f32[2]
    <BLANKLINE>
      parameter a:0                    f32[2]
      b = block Scale a, factor=3.0    f32[2]
    >
    """
    return _core.block(_hashable("block", tag), _text(tag, args), args, output, fun, True)


@public
def optional(name: str, args: Sequence[Any], fun: Callable[..., Any]) -> Any:
    """Compute ``fun(*args)``; a backend with a callback of this name runs the callback instead.

    This is a block whose tag is a name. A backend written in Python that has a method of the name
    receives ``(out, *args)``, where ``out`` is a template of the result of ``fun``. A backend that
    has only the callback ``block`` receives the name as the tag. Other backends run ``fun``. Dicts
    at the end of ``args`` are options, whose numbers are passed unchanged.

    Shapes: of the result of ``fun``.
    Dtypes: any; of the result of ``fun``.
    Grad: of ``fun``.
    Raises: ``OptionError`` unless the name is a str.

    >>> dn.optional("double", [dn.tensor([1, 2])], lambda x: x + x).to_list()
    [2, 4]
    >>> def total(x, options):
    ...     return dn.sum(x, axes=options["axes"])
    >>> dn.optional("total", [dn.iota((2, 2)), {"axes": [0]}], total).to_list()
    [2, 4]
    """
    if not isinstance(name, str):
        kind = type(name).__name__
        raise option_error(f"optional: the name is of type {kind}, it must be a str")
    return _core.block(name, _text(name, args), args, None, fun, False)


def _hashable(function: str, tag: Any) -> Any:
    try:
        hash(tag)
    except TypeError:
        raise option_error(
            f"{function}: the tag {tag!r} cannot be hashed, it must be hashable; "
            "use a frozen dataclass of hashable fields"
        ) from None
    return tag


@forwards(_core.runtime_call)
def runtime_call(output: Any, value: Any, fun: Callable[[Any], Any]) -> Any:
    """Call a Python function on a value whenever the program runs, and use its result.

    ``fun`` receives the value, which may be a container. It returns tensors, arrays or numbers as
    the template ``output`` describes, or a container of them with its structure. Calls happen in
    the order of the program: once for each iteration of a loop, in a branch only if it is taken,
    and whether or not the result is used. An error in ``fun`` stops the program. A gradient through
    a program with a call, for example in a loop, may call ``fun`` again, so it should return the
    same result for the same value.

    Shapes: of the output.
    Dtypes: any; of the output, to which plain numbers are converted.
    Grad: none; define one with ``custom_grad``, or exclude the value with ``stop_grad``.
    Raises: ``ContainerError`` if the function returns another structure, or a tensor of another
        dtype, shape or names, ``ShapeError`` for a vectorized value, and the errors of ``fun``.

    >>> import numpy as np
    >>> @dn.defn
    ... def ordered(x):
    ...     return dn.runtime_call(x, x, lambda v: np.sort(v)[::-1].copy()) * 2
    >>> ordered(dn.tensor([1, 3, 2])).to_list()
    [6, 4, 2]
    """
    ...
