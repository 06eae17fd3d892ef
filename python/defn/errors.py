"""What can go wrong, as classes whose docstrings say how to put it right.

Every class derives from :class:`Error` and, where Python has a natural base for it, from that one
too, so that ``except ValueError`` catches a :class:`ShapeError`. A message reads ``<function>:
<what was given>, <what is required>; <what to do>``; its last line is the file and line of the
caller. Between them, an error about shapes, axes or element types in a traced function says of each
operand its type and where it was made.
"""

__all__ = [
    "AxisError",
    "BackendError",
    "BoundsError",
    "CompileError",
    "ContainerError",
    "DTypeError",
    "DivisionError",
    "Error",
    "FormatError",
    "NonFiniteError",
    "OptionError",
    "OutOfMemoryError",
    "RangeError",
    "RecompileWarning",
    "ShapeError",
    "StreamError",
    "TraceError",
    "UnknownNameError",
]


class Error(Exception):
    """The base of every error that ``defn`` raises itself.

    An exception that is raised inside a function of the user's passes through unchanged.
    """

    __module__ = "defn"


class ShapeError(Error, ValueError):
    """Sizes do not fit.

    Typical causes: operands that do not broadcast (sizes must be equal or 1, aligned at the last
    axis), a ``reshape`` to another number of elements, a compiled function that is called with
    other shapes than those it was compiled for, a scalar where an axis is needed or the other way
    round.

    What helps: print both types (``x.shape``, ``x.names``), add axes with ``new_axis``, or say the
    target with ``broadcast``. A function that must take several shapes is made by ``jit``, not by
    ``compile``.
    """

    __module__ = "defn"


class AxisError(Error, ValueError):
    """An axis or an axis name is not there, is there twice, or names disagree.

    Typical causes: an axis number outside ``-rank <= axis < rank``, a name that no axis has,
    merging two axes that have different names, ``names=`` with another length than the rank.

    What helps: ``x.names`` shows the names, ``rename`` changes or clears them.
    """

    __module__ = "defn"


class DTypeError(Error, TypeError):
    """An element type that a function does not take.

    Typical causes: a complex operand where an order is needed (``max``, ``less``, ``floor``), a
    float where bits are meant (``bitwise_and``), an integer that fits no element type.

    What helps: convert with ``as_type``, or take ``real``, ``imag`` or ``abs`` of a complex tensor.
    """

    __module__ = "defn"


class RangeError(DTypeError, OverflowError):
    """An integer that the element type it meets does not hold.

    Typical causes: ``u8_tensor + 300``, an integer beyond 32 bits in ``tensor`` without a
    ``dtype=``. Comparisons take any integer, bounds of ``clip`` too, and a float tensor makes an
    infinity of what is too large.

    What helps: convert the tensor to a wider element type with ``as_type``.
    """

    __module__ = "defn"


class OptionError(Error, TypeError):
    """An option or a name that is unknown, or a value that an option does not take.

    ``defn`` keeps Nx's names; ``flip``, ``maximum`` and ``minimum`` are the only others. A name
    from NumPy, JAX or PyTorch is refused with what to write here: ``axis=`` of a reduction is
    ``axes=``, ``keepdims=`` is ``keep_axes=``, ``where`` is ``select``, ``astype`` is ``as_type``.
    """

    __module__ = "defn"


class UnknownNameError(OptionError, AttributeError):
    """A name that the package or its tensors do not have, most often another library's.

    It is an ``AttributeError`` too, so that ``hasattr`` works. The message says the name that is
    used here.
    """

    __module__ = "defn"


class DivisionError(Error, ZeroDivisionError):
    """An integer divided by zero.

    What runs at once on the host raises; compiled programs give -1 as the quotient and the dividend
    as the remainder, unless ``dn.checks("index")`` asks for the error. Floats divide by zero as
    IEEE 754 says.

    What helps: put another divisor where it is zero, ``dn.select(b == 0, 1, b)``.
    """

    __module__ = "defn"


class NonFiniteError(Error, ArithmeticError):
    """A NaN or an infinity under ``dn.checks("nan")`` or ``dn.checks("inf")``.

    The message names the operation that made it, and its line.
    """

    __module__ = "defn"


class ContainerError(Error, TypeError):
    """Structures of containers differ, or something in a container cannot be a tensor.

    Typical causes: branches of ``cond`` that return different structures, a loop's body that
    returns a state of another structure or type than it took (most often: starting from an integer
    tensor and adding floats), an argument of a definition of a class that is not registered, a
    scalar whose rows are asked for.

    What helps: the message names the first place that differs. Start a loop from a number,
    which takes on the type that the body makes of it; tell ``defn`` about a class with
    ``register_container``.
    """

    __module__ = "defn"


class BoundsError(Error, IndexError):
    """An index is out of range."""

    __module__ = "defn"


class TraceError(Error, RuntimeError):
    """A traced tensor is used as if it had values, or outside the definition that made it.

    While a definition is traced, its tensors have a type and no values. Python's ``if``, ``while``,
    ``float()`` or ``bool()`` need values, and so do ``print`` of elements and NumPy functions.

    What helps: ``cond`` or ``if_`` runs one of two branches, ``select`` chooses element by element,
    ``while_`` repeats. A number that is fixed for a compiled function is an option: a keyword-only
    parameter, or one listed in ``static=``. Return a tensor from the definition to read it outside.
    """

    __module__ = "defn"


class CompileError(Error, RuntimeError):
    """A compiler is unknown, refuses a program, or has compiled one function too often."""

    __module__ = "defn"


class BackendError(Error, RuntimeError):
    """A backend is unknown, refuses an operation, or a tensor's memory is gone.

    Typical causes: using a tensor after ``backend_deallocate`` or after it was donated, operands on
    two backends neither of which is the default.

    ``lacking`` names the callback that a backend written in Python has not, if that is the reason.
    """

    __module__ = "defn"
    lacking: str | None = None


class FormatError(Error, ValueError):
    """A file or bytes that are not what they should be.

    Typical causes: a file that was cut short or changed on the way, a file of another format, data
    that a newer version has written.

    What helps: write the file again. Nothing that a file says is believed before it is checked, so
    that a damaged one costs neither memory nor time.
    """

    __module__ = "defn"


class StreamError(Error, RuntimeError):
    """A stream is used after it has ended, or fails while it runs."""

    __module__ = "defn"


class OutOfMemoryError(Error, MemoryError):
    """A tensor needs more memory than there is.

    The memory is checked before it is taken, so nothing is lost: every tensor that was valid before
    the error is valid after it. What helps: smaller shapes, or freeing tensors that are no longer
    used.
    """

    __module__ = "defn"


class RecompileWarning(RuntimeWarning):
    """A function is compiled again and again for one reason.

    Each version costs tracing and compiling. The message says what of the signature keeps changing,
    and what helps; ``explain()`` of the definition lists all versions. A function is reported once.
    Where many versions are meant, ``warnings.simplefilter("ignore", dn.RecompileWarning)`` says so.
    """

    __module__ = "defn"
