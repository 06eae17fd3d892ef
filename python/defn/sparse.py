"""Sparse Jacobians: their patterns, and their values from few passes."""

from __future__ import annotations

import functools
import operator
import warnings
from typing import TYPE_CHECKING, Any, ParamSpec

import defn as dn
from defn import _core
from defn._names import option_error
from defn._public import public
from defn.jit import jit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scipy.sparse import csr_array

    from defn._core import SparsityPattern, Tensor

__all__ = ["sparsity"]

P = ParamSpec("P")

# The bytes of seeds, tangents and values of one pass; with more, colors are computed in several.
_PASS_BYTES = 1 << 28

# A Jacobian with fewer columns or rows is not worth a warning that it is dense.
_SMALL = 16

# The name of the vectorized axis along which there is a seed for each color.
_LANE = "jacobian_color"


def _scipy(op: str) -> Any:
    try:
        import scipy.sparse
    except ImportError as error:
        raise option_error(
            f"{op}: SciPy is not installed, it is required for sparse matrices; install scipy"
        ) from error
    return scipy.sparse


def _numbers(buffer: bytearray, dtype: str) -> Any:
    import numpy as np

    return np.frombuffer(buffer, dtype)


def _one_argument(op: str, argnums: int | Sequence[int]) -> int:
    """The only argument by which a sparse Jacobian is taken."""
    try:
        return operator.index(argnums)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise option_error(
            f"{op}: argnums is {argnums!r}, a sparse matrix has one argument's elements as columns:"
            " it must be an int; join the arguments into one vector"
        ) from None


@public
def sparsity(fun: Callable[..., Any], /, *args: Any, argnums: int = 0) -> csr_array[Any, Any]:
    """The pattern of the Jacobian: which elements of the value depend on which of an argument.

    ``fun`` is traced at arguments of these types, and no derivative is computed. The pattern holds
    for all values of the arguments: it may have entries that are zero, and lacks none that is not.
    Reads and writes at positions that are computed from constants and captured tensors are exact.
    Where a derivative is zero by rule, as for ``floor`` and comparisons, there is no entry. The
    result is a ``scipy.sparse.csr_array`` of bools; it needs SciPy.

    Shapes: a row for each element of the value, a column for each of the argument, in row-major
        order. The value and the argument are one tensor each.
    Dtypes: any; the pattern is bool.
    Grad: none; the pattern is a constant.
    Raises: ``OptionError`` unless the argument and the value are one tensor each, if ``argnums`` is
        no int, and where SciPy is missing.

    >>> differences = dn.sparsity(lambda x: x[1:] - x[:-1], dn.iota(4, dtype="f32"))
    >>> differences.toarray().astype(int).tolist()
    [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    import numpy as np

    sparse, argnum = _scipy("sparsity"), _one_argument("sparsity", argnums)
    pattern, _ = _core.sparsity(fun, argnum, args)
    indices, starts = _index_arrays(pattern)
    ones = np.ones(len(indices), bool)
    return sparse.csr_array((ones, indices, starts), shape=pattern.shape)


def _index_arrays(pattern: SparsityPattern) -> tuple[Any, Any]:
    """The columns of the entries, and where each row begins among them."""
    import numpy as np

    starts, indices = _numbers(pattern.starts(), "i8"), _numbers(pattern.indices(), "i4")
    return indices, starts.astype(np.int32) if len(indices) < 2**31 else starts


def _given_pattern(op: str, given: Any) -> SparsityPattern:
    """The pattern of a sparse matrix, or of a dense one of bools."""
    import numpy as np

    sparse = _scipy(op)
    if not sparse.issparse(given):
        given = np.asarray(given)
        if given.dtype != bool or given.ndim != 2:
            raise option_error(
                f"{op}: sparse is an array of {given.dtype} with {given.ndim} axes, it must be"
                " True, a sparse matrix, or a matrix of bools"
            )
    rows = sparse.csr_array(given)
    rows.sum_duplicates()
    starts, indices = np.asarray(rows.indptr, np.int64), np.asarray(rows.indices, np.int64)
    return _core.SparsityPattern(rows.shape[1], starts, indices)


class _Plan:
    """How a Jacobian is computed: its pattern, and the colors of its columns or rows.

    It is the part of a compiled version's result that is known when the version is traced.
    """

    def __init__(
        self, pattern: SparsityPattern, mode: str | None, read: tuple[Any, ...] = ()
    ) -> None:
        self.pattern = pattern
        # The elements of the captured tensors that decided positions.
        self.read = read
        by_columns = None if mode == "reverse" else pattern.coloring(False)
        by_rows = None if mode == "forward" else pattern.coloring(True)
        self.is_forward = by_rows is None or (
            by_columns is not None and by_columns[1] <= by_rows[1]
        )
        colors, self.count = by_columns if self.is_forward else by_rows  # pyright: ignore[reportGeneralTypeIssues]
        self.colors = _numbers(colors, "i4")
        self._places: tuple[Any, Any, Any] | None = None
        self._is_checked = False

    def warning(self, op: str) -> str | None:
        """What to say once of a pattern that is too dense to be worth it."""
        rows, columns = self.pattern.shape
        size, what = (columns, "columns") if self.is_forward else (rows, "rows")
        if self._is_checked or size < _SMALL or 10 * self.count < 9 * size:
            return None
        self._is_checked = True
        return (
            f"{op}: the pattern needs {self.count} colors for {size} {what}, so that a sparse"
            " Jacobian takes about as many passes as a dense one; leave sparse out, or compute"
            " products with dn.jvp and dn.vjp"
        )

    def matrix(self, compressed: Any) -> Any:
        """The sparse matrix of the derivatives of each color."""
        import numpy as np

        if self._places is None:
            indices, starts = _index_arrays(self.pattern)
            rows = np.repeat(np.arange(self.pattern.shape[0], dtype=np.int32), np.diff(starts))
            colored, along = (indices, rows) if self.is_forward else (rows, indices)
            length = self.pattern.shape[0 if self.is_forward else 1]
            place = np.int32 if max(self.count, 1) * length < 2**31 else np.int64
            places = self.colors[colored].astype(place) * place(length) + along
            self._places = places, indices, starts
        places, indices, starts = self._places
        values = compressed.reshape(-1)[places]
        # Some methods of a sparse matrix change its index arrays in place.
        parts = (values, indices.copy(), starts.copy())
        return _scipy("jacobian").csr_array(parts, shape=self.pattern.shape)


# A plan holds no tensors of the run.
dn.register_container(_Plan, lambda plan: ([], plan), lambda plan, _: plan)


class _Compressed:
    """The function of the sums of the columns, or the rows, of each color.

    It runs while a version is traced. It also returns the captured tensors whose values decided
    positions in the pattern, and the plan. It is an object, because versions are shared by all
    functions of one code.
    """

    def __init__(
        self,
        op: str,
        fun: Callable[..., Any],
        argnum: int,
        mode: str | None,
        given: SparsityPattern | None,
    ) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.op, self.fun, self.argnum, self.mode, self.given = op, fun, argnum, mode, given

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, tuple[Tensor, ...], _Plan]:
        if self.given is None:
            pattern, read = _core.sparsity(self.fun, self.argnum, args, kwargs)
        else:
            pattern, read = self.given, []
        plan = _Plan(pattern, self.mode, tuple(tensor.to_numpy() for tensor in read))

        def at(x: Any) -> Any:
            inner = list(args)
            inner[self.argnum] = x
            return self.fun(*inner, **kwargs)

        try:
            values = _passes(self.op, plan, at, args[self.argnum])
        except dn.TraceError:
            # As without sparse: a user's rule for gradients may have no forward mode.
            if self.mode is not None or not plan.is_forward:
                raise
            plan = _Plan(pattern, "reverse", plan.read)
            values = _passes(self.op, plan, at, args[self.argnum])
        return values, tuple(read), plan


class SparseJacobian:
    """The function that ``jacobian(fun, sparse=...)`` returns."""

    def __init__(
        self,
        op: str,
        fun: Callable[..., Any],
        argnums: int | Sequence[int],
        mode: str | None,
        sparse: Any,
        jit_options: dict[str, Any],
    ) -> None:
        _scipy(op)
        given = None if sparse is True else _given_pattern(op, sparse)
        self._op = op
        self._recipe = (op, fun, _one_argument(op, argnums), mode, given)
        self._jit_options = jit_options
        self._compile()
        functools.update_wrapper(self, fun, updated=())

    def _compile(self) -> None:
        self._compressed = jit(_Compressed(*self._recipe), **self._jit_options)

    def __call__(self, *args: Any, **kwargs: Any) -> csr_array[Any, Any]:
        import numpy as np

        if _core.is_tracing():
            raise option_error(
                f"{self._op}: a sparse matrix cannot be part of a traced function; call it outside,"
                " or leave sparse out"
            )
        while True:
            compressed, read, plan = self._compressed(*args, **kwargs)
            pairs = zip(read, plan.read, strict=True)
            if all(np.array_equal(now.to_numpy(), then) for now, then in pairs):
                break
            # Captured positions have other values now.
            self._compile()
        if warning := plan.warning(self._op):
            warnings.warn(warning, stacklevel=2)
        return plan.matrix(compressed.to_numpy())

    def __repr__(self) -> str:
        return f"<{self._op} of {self._recipe[1]!r}, sparse>"


def _passes(op: str, plan: _Plan, at: Callable[[Any], Any], x: Tensor) -> Tensor:
    """For each color, the sum of the columns, or of the rows, that have it."""
    _require_size(op, plan, 1, "the argument", x)
    if plan.is_forward:

        def push(seeds: Tensor) -> Tensor:
            tangents = dn.vectorize(seeds.reshape(-1, *x.shape), _LANE)
            value, pushed = dn.jvp(at, (x,), (tangents,))
            _require_size(op, plan, 0, "the value", value)
            return pushed

        return _each_color(plan, x, push)
    value, back = dn.vjp(at, x)
    _require_size(op, plan, 0, "the value", value)

    def pull(seeds: Tensor) -> Tensor:
        return back(dn.vectorize(seeds.reshape(-1, *value.shape), _LANE))[0]

    return _each_color(plan, value, pull)


def _each_color(plan: _Plan, seeded: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
    """The results of passes whose seeds are 1 where an element has the color of the pass."""
    rows, columns = plan.pattern.shape
    length = rows if plan.is_forward else columns
    if plan.count == 0:
        return dn.broadcast(dn.tensor(0, dtype=_at_least_f32(seeded)), (0, length))
    colors = dn.tensor(plan.colors)
    in_pass = max(1, _PASS_BYTES // ((rows + columns) * seeded.dtype.bits // 8))
    in_pass = min(plan.count, in_pass)

    def one(first: Any) -> Tensor:
        each = first + dn.iota((in_pass, 1), axis=0)
        results = run(dn.equal(colors, each).as_type(seeded.dtype))
        results = dn.devectorize(results, keep_names=False)
        return results.reshape(in_pass, length).as_type(_at_least_f32(seeded))

    if in_pass == plan.count:
        return one(0)
    first = dn.iota(-(-plan.count // in_pass)) * in_pass
    _, passes = dn.scan(0, first, lambda state, first: (state, one(first)))
    return passes.reshape(-1, length)


def _at_least_f32(x: Tensor) -> Any:
    """The dtype of the sparse matrix: SciPy has no floats below f32."""
    return x.dtype if x.dtype.bits >= 32 else "f32"


def _shown(what: str, value: Any) -> str:
    if isinstance(value, dn.Tensor):
        sizes = "".join(f"[{size}]" for size in value.shape)
        return f"{what} is {value.dtype}{sizes}"
    return f"{what} is of type {type(value).__name__}"


def _require_float(op: str, what: str, value: Any) -> None:
    is_float = isinstance(value, dn.Tensor) and value.dtype.kind == "float"
    if not is_float:
        raise option_error(f"{op}: {_shown(what, value)}, one tensor of floats is required")


def _require_size(op: str, plan: _Plan, axis: int, what: str, value: Any) -> None:
    """Refuses a given pattern of another shape than the Jacobian."""
    _require_float(op, what, value)
    if value.size != plan.pattern.shape[axis]:
        line = "column" if axis else "row"
        raise option_error(
            f"{op}: the pattern has the shape {plan.pattern.shape} and {_shown(what, value)}, a"
            f" {line} for each of its {value.size} elements is required"
        )
