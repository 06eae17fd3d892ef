"""The exception classes; each docstring says how to fix the error.

Every class derives from :class:`Error`, and also from the natural built-in exception if there is
one, so that ``except ValueError`` catches a :class:`ShapeError`. A message has the form
``<function>: <what was given>, <what is required>; <what to do>``. Its last line is the file and
line of the caller. Before that line, an error about shapes, axes or dtypes in a traced function
lists the type of each operand and where it was created.
"""

__all__ = [
    "AxisError",
    "BackendError",
    "BoundsError",
    "CompileError",
    "ContainerError",
    "ConvergenceError",
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
    """The base of every error that ``defn`` itself raises.

    An exception raised inside a user's function passes through unchanged.
    """

    __module__ = "defn"


class ShapeError(Error, ValueError):
    """Sizes do not match.

    Typical causes: operands that do not broadcast (sizes must be equal or 1, aligned at the last
    axis), a ``reshape`` to another number of elements, a call of a compiled function with other
    shapes than those it was compiled for, a scalar where an axis is needed or the reverse.

    To fix it: print both types (``x.shape``, ``x.names``), add axes with ``new_axis``, or name the
    target shape with ``broadcast``. For several shapes, create the function with ``jit``, not with
    ``compile``.
    """

    __module__ = "defn"


class AxisError(Error, ValueError):
    """An axis or an axis name does not exist, occurs twice, or conflicts with another one.

    Typical causes: an axis number outside ``-rank <= axis < rank``, a name that no axis has,
    merging two axes with different names, ``names=`` whose length is not the rank.

    To fix it: ``x.names`` shows the names, ``rename`` changes or clears them.
    """

    __module__ = "defn"


class DTypeError(Error, TypeError):
    """A function does not support the dtype.

    Typical causes: a complex operand where an order is needed (``max``, ``less``, ``floor``), a
    float where bits are needed (``bitwise_and``), an integer that fits into no dtype.

    To fix it: convert with ``as_type``, or take ``real``, ``imag`` or ``abs`` of a complex tensor.
    """

    __module__ = "defn"


class RangeError(DTypeError, OverflowError):
    """An integer does not fit into the dtype of the tensor that it is combined with.

    Typical causes: ``u8_tensor + 300``, an integer of more than 32 bits in ``tensor`` without a
    ``dtype=``. Comparisons and the bounds of ``clip`` take any integer. In a float tensor, a number
    that is too large becomes an infinity.

    To fix it: convert the tensor to a wider dtype with ``as_type``.
    """

    __module__ = "defn"


class OptionError(Error, TypeError):
    """An option or a name is unknown, or an option does not take the value.

    Functions of Nx have Nx's names here; ``flip``, ``fmod``, ``maximum`` and ``minimum`` are
    further names of ``reverse``, ``remainder``, ``max`` and ``min``. Other names from NumPy, JAX or
    PyTorch are refused with the name to use here: ``axis=`` of a reduction is ``axes=``,
    ``keepdims=`` is ``keep_axes=``, ``where`` is ``select``, ``astype`` is ``as_type``.
    """

    __module__ = "defn"


class UnknownNameError(OptionError, AttributeError):
    """The package or its tensors do not have this name, which is most often another library's.

    It is an ``AttributeError`` too, so that ``hasattr`` works. The message contains the name to use
    here.
    """

    __module__ = "defn"


class DivisionError(Error, ZeroDivisionError):
    """An integer is divided by zero.

    Eager operations on the host raise it. Compiled programs return -1 as the quotient and the
    dividend as the remainder, unless ``dn.checks("index")`` turns the error on. Floats divide by
    zero according to IEEE 754.

    To fix it: replace zero divisors, as in ``dn.select(b == 0, 1, b)``.
    """

    __module__ = "defn"


class NonFiniteError(Error, ArithmeticError):
    """A result is NaN or infinite under ``dn.checks("nan")`` or ``dn.checks("inf")``.

    The message names the operation and its line.
    """

    __module__ = "defn"


class ConvergenceError(Error, ArithmeticError):
    """The ``check`` of a solution of ``odeint`` or ``dn.optimize`` that stopped before its result.

    The message says where, and why. Typical causes: a stiff problem, a start that is far from every
    solution, a function without a zero or without a minimum, a function or a derivative that is NaN
    or infinite on the way, a tolerance that is smaller than the rounding errors of the function.

    To fix it: begin nearer to a solution, allow more steps or iterations, raise the tolerance, or
    compute in f64.
    """

    __module__ = "defn"


class ContainerError(Error, TypeError):
    """The structures of containers differ, or an entry of a container cannot be a tensor.

    Typical causes: branches of ``cond`` that return different structures, a loop's body that
    returns a state of another structure or type than its argument (most often: starting from an
    integer tensor and adding floats), an argument of a class that is not registered, iterating over
    the rows of a scalar.

    To fix it: the message names the first place that differs. Start a loop from a number, which
    takes the type that the body returns. Declare a class with ``register_container``.
    """

    __module__ = "defn"


class BoundsError(Error, IndexError):
    """An index is out of range."""

    __module__ = "defn"


class TraceError(Error, RuntimeError):
    """A traced tensor is used as if it had values, or outside the definition that created it.

    While a definition is traced, its tensors have a type and no values. Python's ``if``, ``while``,
    ``float()`` or ``bool()`` need values, and so do ``print`` of elements and NumPy functions.

    To fix it: ``cond`` or ``if_`` runs one of two branches, ``select`` chooses elements, and
    ``while_`` repeats. A number that is constant in a compiled function is an option: a
    keyword-only parameter, or one listed in ``static=``. To read a tensor outside the definition,
    return it.
    """

    __module__ = "defn"


class CompileError(Error, RuntimeError):
    """A compiler is unknown, refuses a program, or has compiled one function too many times."""

    __module__ = "defn"


class BackendError(Error, RuntimeError):
    """A backend is unknown, refuses an operation, or a tensor's memory was freed.

    Typical causes: a tensor is used after ``backend_deallocate`` or after it was donated, or
    operands are on two backends, neither of which is the default.

    ``lacking`` names the callback that a Python backend does not implement, if that is the reason.
    """

    __module__ = "defn"
    lacking: str | None = None


class FormatError(Error, ValueError):
    """A file or bytes do not have the expected content.

    Typical causes: a file that was truncated or changed in transfer, a file of another format, data
    that a newer version wrote.

    To fix it: write the file again. All contents are checked before they are used, so a damaged
    file wastes neither memory nor time.
    """

    __module__ = "defn"


class StreamError(Error, RuntimeError):
    """A stream is used after it has ended, or fails while it runs."""

    __module__ = "defn"


class OutOfMemoryError(Error, MemoryError):
    """A tensor needs more memory than is available.

    The memory is checked before it is allocated, so nothing is lost: every tensor that was valid
    before the error is still valid.

    To fix it: use smaller shapes, or free tensors that are no longer used.
    """

    __module__ = "defn"


class RecompileWarning(RuntimeWarning):
    """A function is compiled again and again for one reason.

    Each version costs tracing and compiling. The message says which part of the signature keeps
    changing, and what to do; ``explain()`` of the definition lists all versions. Each function is
    reported once. If many versions are intended, silence the warning with
    ``warnings.simplefilter("ignore", dn.RecompileWarning)``.
    """

    __module__ = "defn"
