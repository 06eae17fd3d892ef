"""Definitions: functions that are traced once and compiled, and the options of doing so."""

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
"""The type of a parameter or field that is kept as it is, and is part of a compiled version's key.

A parameter ``n: Static[int]`` of a definition stays a Python number, and so may be a size or an
axis. Each value that it takes is compiled apart. """


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
        hooks=options.pop("hooks", None),
        donate=options.pop("donate", None),
        options=options or None,
        convert=convert,
    )
    # What else `functools.update_wrapper` copies, a definition answers itself: an object that the
    # garbage collector sees through must not refer to the function from its `__dict__`.
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
    """Make a function a numerical definition; a decorator, bare or with options.

    Called from Python, a definition is traced once for each signature (the types of its tensors,
    the values of its options), compiled and run. Called while another definition is traced, it is
    inlined.

    Positional parameters are inputs: tensors, numbers and containers of them. Keyword-only
    parameters are options, whose values are part of the signature; ``static`` names further ones.
    Python's ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, conditional expressions and
    chained comparisons work on tensors: the function's source, and that of functions inside it, is
    rewritten so that conditions on tensors become branches and loops of the graph. On plain values
    they do what they always do. ``convert=False`` leaves the function as it is. Other options are
    those of ``jit``.

    Raises: ``OptionError`` for unknown options, ``TraceError`` for what cannot be rewritten, such
        as ``break`` under a condition on a tensor, and what the traced function raises.

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
    """Declare a function to be Python that runs while a definition is traced, on its traced
    tensors.

    The function is returned as it is: any function that a definition calls is run so. The
    declaration says that this is meant, also where a definition's source is rewritten.

    Raises: ``OptionError`` unless a function is given.

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
    **compiler_options: Any,
) -> Any:
    """Compile a function at its first call with each signature; a decorator, bare or with options.

    ``compiler`` is the default one unless given. ``hooks`` gives functions to named hooks, over
    those that they have. ``on_conflict`` says what a call does while another definition is traced:
    ``"raise"``, which it does unless told otherwise, run apart (``"force"``), or trace into that
    definition (``"reuse"``). ``static`` names parameters that are kept as they are. ``donate``
    gives names or positions of parameters whose memory a run reuses for its results: their tensors
    are gone after it, and a compiler that cannot promise it refuses. A function that compiles more
    than ``max_compiles`` times raises. Other options go to the compiler. What is not
    given is as the default options say.

    A number that the function is given takes on the dtype of what it meets, as one in its body
    does; its value is no part of the signature.

    The result has ``explain()``, which says in one sentence for each version why it was compiled:
    what differs from the nearest signature that was compiled before. ``dn.options(
    log_compiles=True)``, or ``DEFN_LOG=compiles`` in the environment, says it when it happens,
    through the logger ``defn`` of Python's ``logging`` at the level INFO, or on standard error
    where no logging is configured. One field that makes more than 8 versions warns once, with a
    ``RecompileWarning``. ``cache_info()`` counts ``hits`` and ``misses`` of this definition, and
    the ``seconds`` that it spent on compiling; the ``size`` of the cache, which all definitions of
    one code share, stays within a ``limit`` of 256 versions for each of them: the version that was
    not used for the longest time goes. ``cache_clear()`` empties it. Arguments are not kept alive
    by it, nor is the object of a method. ``profile(*args)`` calls it once and says what each step
    of the run took. ``memory(*args)`` tells the bytes that a call will allocate, before it runs.

    Raises: ``OptionError`` for unknown options, ``CompileError`` for an unknown compiler, and what
        the traced function raises.

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
        "donate": donate,
        **compiler_options,
    }
    if fun is None:
        return functools.partial(jit, static=static, **given)
    return _jitted(fun, False, static, given)


def _listed(op: str, args: Any) -> tuple[Any, ...]:
    """The arguments of a call, which are given as one list or tuple."""
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

    Functions with one code object share what was compiled, so that nothing is compiled twice.

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
    **compiler_options: Any,
) -> Compiled:
    """Compile a function now, for one signature.

    ``args`` are templates, or tensors whose types serve as such. Static values among them, of
    parameters that are ``Static`` or named in ``static``, and ``kwargs`` are built in. The result
    takes the inputs alone, and no other types than those. Where a number is given it takes numbers
    only, which take on the dtype of what they meet.
    ``donate`` is as in ``jit``. ``run_each`` of the result takes a list of argument lists and gives
    a list of results: ``"pjrt"`` runs them side by side on the devices of a client. What ``"pjrt"``
    compiled has ``save`` and ``serialize`` too, for ``dn.pjrt.load`` in another process; with
    ``target="h200"`` it is compiled for that device, which need not be there.

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
    return _core.compile(fun, given, kwargs, compiler, options, hooks, donate, static)


def debug_expr(fun: Callable[P, R], /, **jit_options: Any) -> Callable[P, R]:
    """A function that traces ``fun`` and returns what it returns, with traced tensors, which print
    as graphs.

    Raises: ``OptionError`` for unknown options, and what the traced function raises.

    >>> dn.debug_expr(lambda x: dn.sin(-x))(dn.tensor([1.0, 2.0]))
    Tensor<
      f32[2]
    <BLANKLINE>
      parameter a:0   f32[2]
      b = negate a    f32[2]
      c = sin b       f32[2]
    >
    """
    known = ("compiler", "hooks", "on_conflict", "max_compiles", "static")
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
    """Trace a function and return what it returns, with traced tensors. See ``debug_expr``.

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
    """Fill in the defaults of options that a function takes as ``**options``, and refuse unknown
    ones.

    Raises: ``OptionError`` for an option without a default; the message lists those that there are.

    >>> dn.keyword({"rate": 0.1}, rate=1.0, steps=10)
    {'rate': 0.1, 'steps': 10}
    """
    unknown = [name for name in options if name not in defaults]
    if unknown:
        raise unknown_options("keyword", unknown, defaults)
    return {**defaults, **options}


def default_options(options: dict[str, Any] | None = None, /, **changes: Any) -> dict[str, Any]:
    """Read or set the options that every ``jit`` starts from, in this context.

    Without arguments, the options that hold. Otherwise they are set, and those before are returned;
    ``{}`` clears them. They hold in the current thread and in contexts made from it, over the
    global ones. ``compiler``, ``on_conflict``, ``max_compiles`` and ``log_compiles`` are as
    ``jit`` says, ``backend`` is where tensors are made, ``threads`` how many of the CPU share the
    work of a call (``None``: as many as ``set_threads`` says), ``print_limit`` how many elements
    are printed: of a tensor with more those at the ends of its axes. Options of the compiler, such
    as ``client`` and ``device_id``, go to the default compiler, not to one that a definition names.
    They are checked as soon as it is known: now if there is a default one, else where it is used.

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

    Without arguments, the options that hold. Otherwise they are set, and those before are returned;
    ``{}`` clears them. The first values come from ``DEFN_COMPILER``, ``DEFN_BACKEND`` and
    ``DEFN_LOG``, which may be ``compiles``.

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
    """Where the results of definitions are that are compiled with these options.

    ``compiler`` is the default one unless given; other options go to it. ``"pjrt"`` runs on a
    device, the others where the arguments are, and on the default backend without any.

    Raises: ``OptionError`` for options that the compiler does not take, ``CompileError`` for an
    unknown compiler, or one that does not say.

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
    """Options that hold inside a ``with`` block, over those outside.

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
            # What the compiler outside takes is not for this one.
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
    """What is looked for inside a ``with`` block, beside what is always an error.

    ``"index"``: compiled programs raise for a position out of range, of ``x[i]``, ``slice``,
    ``slice_along_axis``, ``put_slice``, ``take``, ``gather`` and the others, as functions that run
    at once on the host do, where they would move a read to the nearest element and drop a write;
    and for an integer divisor of zero, where a quotient would be -1 and a remainder the dividend.
    ``slice`` moves its window unless it is looked at, at once too. ``"nan"``:
    an operation raises if its result has a NaN. ``"inf"``: an operation raises if its result has an
    infinity and no operand has one. The error names the operation and its line.
    Programs are compiled apart for each combination of checks.

    Raises: ``OptionError`` for another kind; inside, ``BoundsError``, ``DivisionError`` and
        ``NonFiniteError``.

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
