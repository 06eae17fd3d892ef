"""Definitions: functions that are traced once and compiled, and their options."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar, overload

from defn import _core
from defn._names import option_error, unknown_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Literal, Self

    from defn._core import Compiled, Jitted
    from defn.typing import BackendLike, CompilerLike

__all__ = [
    "Static",
    "checks",
    "compile",
    "debug_expr",
    "debug_expr_apply",
    "default_options",
    "defn",
    "deftransform",
    "global_default_options",
    "jit",
    "jit_apply",
    "keyword",
    "options",
    "to_backend",
]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Static = Annotated[T, _core.static_marker()]
"""The type of a parameter or field that keeps its Python value, which is part of the cache key.

A parameter ``n: Static[int]`` of a definition stays a Python number, so it may be a size or an
axis. Each of its values is compiled separately."""


def _jitted(
    fun: Callable[..., Any],
    inline: bool,
    static: str | Sequence[str],
    options: dict[str, Any],
    convert: bool = False,
) -> Jitted[..., Any]:
    if not callable(fun):
        raise option_error(
            f"{'defn' if inline else 'jit'}: the argument is of type {type(fun).__name__}, "
            "a function is required"
        )
    if options.get("on_conflict") == "reuse" and options.get("compiler") is not None:
        warnings.warn(
            f"jit: on_conflict is 'reuse', so that the compiler {options['compiler']!r} is not "
            "used while another definition is traced",
            stacklevel=3,
        )
    jitted = _core.Jitted(
        fun,
        inline=inline,
        static=static,
        on_conflict=options.pop("on_conflict", None),
        compiler=options.pop("compiler", None),
        max_compiles=options.pop("max_compiles", None),
        compile=options.pop("compile", None),
        hooks=options.pop("hooks", None),
        donate=options.pop("donate", None),
        options=options or None,
        convert=convert,
    )
    # A definition looks up the other attributes that `functools.update_wrapper` copies itself: the
    # `__dict__` of an object that the garbage collector traverses must not refer to the function.
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(fun, name):
            setattr(jitted, name, getattr(fun, name))
    return jitted


@overload
def defn(
    fun: Callable[P, R],
    /,
    *,
    convert: bool = True,
    static: str | Sequence[str] = (),
    **jit_options: Any,
) -> Jitted[P, R]: ...
@overload
def defn(
    fun: None = None,
    /,
    *,
    convert: bool = True,
    static: str | Sequence[str] = (),
    **jit_options: Any,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def defn(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    convert: bool = True,
    static: str | Sequence[str] = (),
    **jit_options: Any,
) -> Any:
    """Turn a function into a numerical definition; a decorator, with or without options.

    A definition that is called from Python is traced once for each signature (the types of its
    tensors and the values of its options), compiled and run. A definition that is called while
    another one is traced is inlined.

    Positional parameters are inputs: tensors, numbers and containers of them. Keyword-only
    parameters are options, whose values are part of the signature; ``static`` names further
    options. Python's ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, conditional expressions
    and chained comparisons work on tensors: the source of the function, and of functions inside
    it, is rewritten so that conditions on tensors become branches and loops of the graph. On plain
    values they behave as usual. ``convert=False`` turns the rewriting off. Other options are those
    of ``jit``.

    Raises: ``OptionError`` for unknown options, ``TraceError`` for code that cannot be rewritten,
        such as ``break`` under a condition on a tensor, and the errors of the traced function.

    >>> @dn.defn
    ... def collatz(n):
    ...     steps = 0
    ...     while n != 1:
    ...         if n % 2 == 0:
    ...             n = n // 2
    ...         else:
    ...             n = 3 * n + 1
    ...         steps = steps + 1
    ...     return steps
    >>> int(collatz(27))
    111

    >>> @dn.defn
    ... def softmax(x):
    ...     e = dn.exp(x - dn.reduce_max(x))
    ...     return e / dn.sum(e)
    >>> softmax(dn.tensor([1.0, 1.0])).to_list()
    [0.5, 0.5]
    """
    if fun is None:
        return functools.partial(defn, convert=convert, static=static, **jit_options)
    if not isinstance(convert, bool):
        raise option_error(f"defn: convert is {convert!r}, it must be True or False")
    if isinstance(fun, staticmethod | classmethod):
        return type(fun)(defn(fun.__func__, convert=convert, static=static, **jit_options))
    return _jitted(fun, True, static, jit_options, convert)


def deftransform(fun: Callable[P, R], /) -> Callable[P, R]:
    """Mark a function as Python code that runs on traced tensors while a definition is traced.

    The function is returned unchanged: a definition runs every function that it calls in this way.
    The mark documents the intention, and it keeps a function in a definition from being rewritten.

    Raises: ``OptionError`` unless the argument is a function.

    >>> @dn.deftransform
    ... def rank_of(x):
    ...     return x.rank
    >>> dn.jit(lambda x: x + rank_of(x))(dn.tensor([1, 2])).to_list()
    [2, 3]
    """
    if not callable(fun):
        raise option_error(
            f"deftransform: the argument is of type {type(fun).__name__}, a function is required"
        )
    return fun


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    compiler: CompilerLike | None = None,
    hooks: dict[str, Callable[[Any], Any]] | None = None,
    on_conflict: Literal["raise", "force", "reuse"] | None = None,
    static: str | Sequence[str] = (),
    donate: int | str | Sequence[int | str] = (),
    max_compiles: int | None = None,
    compile: Literal["now", "background"] | None = None,
    **compiler_options: Any,
) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = None,
    /,
    *,
    compiler: CompilerLike | None = None,
    hooks: dict[str, Callable[[Any], Any]] | None = None,
    on_conflict: Literal["raise", "force", "reuse"] | None = None,
    static: str | Sequence[str] = (),
    donate: int | str | Sequence[int | str] = (),
    max_compiles: int | None = None,
    compile: Literal["now", "background"] | None = None,
    **compiler_options: Any,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    compiler: CompilerLike | None = None,
    hooks: dict[str, Callable[[Any], Any]] | None = None,
    on_conflict: Literal["raise", "force", "reuse"] | None = None,
    static: str | Sequence[str] = (),
    donate: int | str | Sequence[int | str] = (),
    max_compiles: int | None = None,
    compile: Literal["now", "background"] | None = None,
    **compiler_options: Any,
) -> Any:
    """Compile a function at its first call with each signature; a decorator, bare or with options.

    ``compiler`` defaults to the default compiler. ``hooks`` maps names of hooks to functions, which
    override the hooks' own. ``on_conflict`` selects the behaviour of a call while another
    definition is traced: ``"raise"`` (the default), ``"force"`` (run separately), or ``"reuse"``
    (trace into that definition). ``static`` names parameters that keep their Python values.
    ``donate`` lists names or positions of parameters whose memory a run reuses for its results:
    their tensors are freed by the run, and compilers that do not support donation refuse it. A
    function that compiles more than ``max_compiles`` times raises. With ``compile="background"``
    a thread compiles, and the evaluator runs the calls until the program is there; the default is
    ``"now"``. Other options go to the compiler. An option that is not given has the value that
    ``default_options`` sets.

    A Python number among the arguments takes the dtype of the tensors that it is combined with, as
    a number in the body does. Its value is not part of the signature.

    The result has these methods. ``explain()`` says in one sentence for each version why it was
    compiled: how its signature differs from the nearest one compiled before. ``dn.options(
    log_compiles=True)``, or ``DEFN_LOG=compiles`` in the environment, logs this at each compilation
    through Python's logger ``defn`` at the level INFO, or to standard error where no logging is
    configured. If one field causes more than 8 versions, a ``RecompileWarning`` says so once.
    ``cache_info()`` returns the ``hits`` and ``misses`` of this definition, the ``seconds`` that it
    spent on compiling, and the ``size`` and ``limit`` of the cache. Definitions with the same code
    object share a cache of up to 256 versions for each of them, from which the least recently used
    version is removed; the cache keeps neither arguments nor the object of a method alive.
    ``cache_clear()`` empties it. ``profile(*args)`` calls the function once and measures each step
    of the run. ``memory(*args)`` computes how many bytes a call will allocate, without running it.
    If programs are compiled in the background, ``compiling`` of ``cache_info()`` is the number of
    those that are not ready, and ``wait()`` waits for them and raises the error of one that failed;
    a call only logs it, once.

    Raises: ``OptionError`` for unknown options, ``CompileError`` for an unknown compiler, and the
        errors of the traced function.

    >>> double = dn.jit(lambda x: x + x)
    >>> double(dn.tensor([1, 2])).to_list()
    [2, 4]
    >>> double.cache_info()["misses"]
    1
    >>> double(2.0)
    Tensor(4.0, f32)
    >>> double.explain()
    ['nothing was compiled before', 'x changed from s32[2] to a number (f32)']
    """
    given: dict[str, Any] = {
        "compiler": compiler,
        "hooks": hooks,
        "on_conflict": on_conflict,
        "max_compiles": max_compiles,
        "compile": compile,
        "donate": donate,
        **compiler_options,
    }
    if fun is None:
        return functools.partial(jit, static=static, **given)
    return _jitted(fun, False, static, given)


def _listed(op: str, args: Any) -> tuple[Any, ...]:
    """The arguments of a call, given as one list or tuple."""
    if not isinstance(args, list | tuple):
        kind = type(args).__name__
        raise option_error(f"{op}: args is of type {kind}, it must be a list or tuple of arguments")
    return tuple(args)


def jit_apply(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    /,
    **jit_options: Any,
) -> Any:
    """Compile a function and call it: ``jit(fun, **jit_options)(*args, **kwargs)``.

    Functions with the same code object share compiled versions, so that nothing is compiled twice.

    Raises: as ``jit``.

    >>> float(dn.jit_apply(lambda x, y: x * y, (2.0, 3.0)))
    6.0
    """
    return jit(fun, **jit_options)(*_listed("jit_apply", args), **(kwargs or {}))


def compile(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    /,
    *,
    compiler: CompilerLike | None = None,
    hooks: dict[str, Callable[[Any], Any]] | None = None,
    static: str | Sequence[str] = (),
    donate: int | str | Sequence[int | str] = (),
    compile: Literal["now", "background"] | None = None,
    **compiler_options: Any,
) -> Compiled:
    """Compile a function now, for one signature.

    ``args`` are templates, or tensors whose types are used. Static values (of parameters that are
    ``Static`` or named in ``static``) and ``kwargs`` become part of the program. The result takes
    only the inputs, with exactly these types. In place of a number it takes only numbers, which
    take the dtype of the tensors that they are combined with. ``donate`` is as in ``jit``. So is
    ``compile="background"``: the result then has its program later, ``ready()`` tells whether, and
    ``wait()`` waits for it.

    ``run_each`` of the result takes a list of argument lists and returns a list of results;
    ``"pjrt"`` runs them in parallel on the devices of a client. Functions that ``"pjrt"`` compiled
    also have ``save`` and ``serialize``, for ``dn.pjrt.load`` in another process. With
    ``target="h200"`` the function is compiled for that device, which need not be present.

    Raises: ``ShapeError`` when called with other types, ``TraceError`` when called while a
        definition is traced, ``CompileError`` for an unknown compiler.

    >>> add = dn.compile(dn.add, [dn.template((2,), "f32"), dn.template((), "f32")])
    >>> add(dn.tensor([1.0, 2.0]), 10.0).to_list()
    [11.0, 12.0]
    >>> sums = add.run_each([(dn.tensor([1.0, 2.0]), n) for n in (1.0, 2.0)])
    >>> [sum.to_list() for sum in sums]
    [[2.0, 3.0], [3.0, 4.0]]
    """
    given = _listed("compile", args)
    options = compiler_options or None
    return _core.compile(fun, given, kwargs, compiler, options, hooks, donate, static, compile)


def debug_expr(fun: Callable[P, R], /, **jit_options: Any) -> Callable[P, R]:
    """Return a function that traces ``fun`` and returns its results as traced tensors, which print
    as graphs.

    Raises: ``OptionError`` for unknown options, and the errors of the traced function.

    >>> dn.debug_expr(lambda x: dn.sin(-x))(dn.tensor([1.0, 2.0]))
    Tensor<
      f32[2]
    <BLANKLINE>
      parameter a:0   f32[2]
      b = negate a    f32[2]
      c = sin b       f32[2]
    >
    """
    known = ("compiler", "hooks", "on_conflict", "max_compiles", "compile", "static")
    unknown = [name for name in jit_options if name not in known]
    if unknown:
        raise unknown_options("debug_expr", unknown, known)

    @functools.wraps(fun)
    def traced(*args: Any, **kwargs: Any) -> Any:
        options = jit_options.get("compiler"), jit_options.get("static")
        return _core.debug_expr(fun, args, kwargs, *options)

    return traced


def debug_expr_apply(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    /,
    **jit_options: Any,
) -> Any:
    """Trace a function and return its results as traced tensors. See ``debug_expr``.

    Raises: as ``debug_expr``.

    >>> dn.debug_expr_apply(lambda x: dn.sin(-x), (1.0,))
    Tensor<
      f32
    <BLANKLINE>
      parameter a:0   f32
      b = negate a    f32
      c = sin b       f32
    >
    """
    return debug_expr(fun, **jit_options)(*_listed("debug_expr_apply", args), **(kwargs or {}))


def keyword(options: dict[str, Any], /, **defaults: Any) -> dict[str, Any]:
    """Add the defaults of options that a function takes as ``**options``, and refuse unknown ones.

    Raises: ``OptionError`` for an option without a default; the message lists the known ones.

    >>> dn.keyword({"rate": 0.1}, rate=1.0, steps=10)
    {'rate': 0.1, 'steps': 10}
    """
    unknown = [name for name in options if name not in defaults]
    if unknown:
        raise unknown_options("keyword", unknown, defaults)
    return {**defaults, **options}


def default_options(options: dict[str, Any] | None = None, /, **changes: Any) -> dict[str, Any]:
    """Read or set the options that every ``jit`` starts from, in this context.

    Without arguments, returns the current options. Otherwise replaces the options of the context
    and returns the previous ones; ``{}`` clears them. They apply in the current thread and in
    contexts copied from it, and take precedence over the global ones. ``compiler``,
    ``on_conflict``, ``max_compiles``, ``compile`` and ``log_compiles`` are described in ``jit``.
    ``backend`` is the backend of new tensors. ``threads`` is the number of CPU threads that share
    the work of a call; ``None`` stands for that of ``set_threads``. ``print_limit`` is the number
    of elements that are printed: of a larger tensor, those at the ends of its axes.
    ``print_place=False`` omits the device from printed tensors. ``default_float``, ``"f64"`` or
    ``"f32"``, is the data type of Python floats in ``defn.array_api``; in ``dn`` itself they take
    that of the tensor beside them, and are f32 alone. Options of the compiler, such as ``client``
    and ``device_id``, go to the default compiler, not to one that a definition names. They are
    checked now if there is a default compiler, else when they are used.

    Raises: ``OptionError`` for unknown options, ``CompileError`` for an unknown compiler.

    >>> before = dn.default_options(compiler="evaluator")
    >>> dn.default_options()["compiler"]
    'evaluator'
    >>> _ = dn.default_options(before)
    """
    if options is None and not changes:
        return _core.default_options()
    return _core.default_options({**(options or {}), **changes})


def global_default_options(
    options: dict[str, Any] | None = None, /, **changes: Any
) -> dict[str, Any]:
    """Read or set the options that every ``jit`` starts from, in the whole process.

    Without arguments, returns the current options. Otherwise replaces them and returns the previous
    ones; ``{}`` clears them. The initial values come from the environment variables
    ``DEFN_COMPILER``, ``DEFN_BACKEND`` and ``DEFN_LOG``, which may be ``compiles``.

    Raises: ``OptionError`` for unknown options, ``CompileError`` for an unknown compiler.

    >>> before = dn.global_default_options(compiler="evaluator")
    >>> dn.global_default_options()["compiler"]
    'evaluator'
    >>> _ = dn.global_default_options(before)
    """
    if options is None and not changes:
        return _core.global_default_options()
    return _core.global_default_options({**(options or {}), **changes})


def to_backend(**jit_options: Any) -> BackendLike:
    """Return the backend that holds the results of definitions compiled with these options.

    ``compiler`` defaults to the default compiler; other options go to it. Results of ``"pjrt"`` are
    on a device. Those of other compilers are where the arguments are, or on the default backend if
    there are no arguments.

    Raises: ``OptionError`` for options that the compiler does not take, ``CompileError`` for an
    unknown compiler, or one without ``to_backend``.

    >>> dn.to_backend()
    'cpu'
    """
    compiler, place = _core.find_compiler(jit_options.pop("compiler", None), jit_options or None)
    if place is not None:
        return place
    callback = getattr(compiler, "to_backend", None)
    if callback is None:
        from defn.compilers import _missing

        raise _missing("to_backend", compiler)
    return callback(jit_options)


class options:  # noqa: N801 - used as a function is.
    """Options that apply inside a ``with`` block and take precedence over those outside it.

    Raises: ``OptionError`` for unknown options, ``CompileError`` for an unknown compiler.

    >>> with dn.options(compiler="evaluator"):
    ...     float(dn.jit(dn.sin)(0.0))
    0.0
    """

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        before = outside = _core.default_options()
        if "compiler" in self._changes:
            # Options of the compiler outside do not apply to this one.
            known = _core.option_names()
            outside = {name: value for name, value in before.items() if name in known}
        _core.default_options({**outside, **self._changes})
        self._before.append(before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _core.default_options(self._before.pop())


class checks:  # noqa: N801 - used as a function is.
    """Checks that compiled programs make inside a ``with`` block.

    ``"index"``: compiled programs raise for an index out of range in ``x[i]``, ``slice``,
    ``slice_along_axis``, ``put_slice``, ``take``, ``gather`` and similar functions, as eager
    operations on the host do. Without the check a read takes the nearest element, ``indexed_add``
    and ``indexed_put`` drop the update, and ``slice``, ``slice_along_axis`` and ``put_slice`` move
    the window so that it fits; ``slice`` moves it even when it is eager. With the check they also
    raise for an integer divisor of zero, and for a negative exponent or shift of integers; without
    it the quotient is -1 and the remainder the dividend.
    ``"nan"``: an operation raises if its result has a NaN. ``"inf"``: an operation raises if its
    result has an infinity and no operand has one. The error names the operation and its line.
    Programs are compiled separately for each combination of checks.

    Raises: ``OptionError`` for an unknown check; inside, ``BoundsError``, ``DivisionError``,
        ``NonFiniteError`` and, for a negative exponent or shift, ``OptionError``.

    >>> take = dn.jit(lambda i: dn.take(dn.tensor([10, 20, 30]), i))
    >>> take(dn.tensor([0, 3])).to_list()
    [10, 30]
    >>> with dn.checks("index"):
    ...     take(dn.tensor([0, 2])).to_list()
    [10, 30]
    """

    def __init__(self, *kinds: Literal["index", "inf", "nan"]) -> None:
        self._kinds = kinds
        self._before: list[tuple[bool, bool, bool]] = []

    def __enter__(self) -> Self:
        self._before.append(_core.add_checks(list(self._kinds)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _core.restore_checks(self._before.pop())
