"""Backends written in Python: the arguments of their callbacks, and the use of the results."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import defn as dn


class Few(dn.Backend):
    """A backend with few callbacks, which records the callbacks that are called."""

    def __init__(self, **options):
        super().__init__(**options)
        self.calls = []

    def from_binary(self, out, data):
        self.calls.append("from_binary")
        return np.frombuffer(data, out.dtype.to_numpy()).reshape(out.shape)

    def to_binary(self, x, limit):
        return x.data.reshape(-1)[:limit].tobytes()

    def _compute(self, function, out, *operands):
        self.calls.append(function.__name__)
        kind = out.dtype.to_numpy()
        return np.asarray(function(*[x.data.astype(kind) for x in operands]))

    def add(self, out, a, b):
        return self._compute(np.add, out, a, b)

    def multiply(self, out, a, b):
        return self._compute(np.multiply, out, a, b)

    def less(self, out, a, b):
        self.calls.append("less")
        return a.data < b.data

    def equal(self, out, a, b):
        return a.data == b.data

    def reshape(self, out, x):
        return x.data.reshape(out.shape)

    def concatenate(self, out, tensors, axis):
        return np.concatenate([x.data for x in tensors], axis)

    def broadcast(self, out, x, shape, axes):
        sizes = [1] * len(shape)
        for axis, size in zip(axes, x.shape, strict=True):
            sizes[axis] = size
        return np.broadcast_to(x.data.reshape(sizes), shape)

    def sum(self, out, x, *, axes, keep_axes):
        return np.asarray(x.data.sum(axes, out.dtype.to_numpy(), keepdims=keep_axes))


def test_data_is_what_the_callback_returned() -> None:
    backend = Few()
    x = dn.tensor([[1.0, 2.0]], names=["row", None], backend=backend)
    assert x.backend is backend
    assert isinstance(x.data, np.ndarray)
    assert (x.shape, x.names, x.dtype) == ((1, 2), ("row", None), "f32")
    y = x + x
    assert y.backend is backend
    assert y.data.tolist() == [[2.0, 4.0]]
    assert y.names == ("row", None)
    assert x.to_list() == [[1.0, 2.0]]


@pytest.mark.usefixtures("no_options")
def test_data_of_the_cpu_is_a_view_that_is_read_only() -> None:
    x = dn.tensor([1.0, 2.0])
    assert x.backend == "cpu"
    assert x.data.tolist() == [1.0, 2.0]
    assert not x.data.flags.writeable


@pytest.mark.parametrize("value", [1, 1.5, True, [1, 2], np.arange(3.0), np.float64(1)])
def test_values_are_placed(value: object) -> None:
    x = dn.tensor(value, backend=Few())
    assert x.backend == Few()
    assert (x.to_numpy() == np.asarray(value)).all()
    assert x.dtype == dn.tensor(value).dtype


def test_creation_is_placed() -> None:
    for x in (dn.iota((2, 2), backend=Few()), dn.eye(2, backend=Few())):
        assert x.backend == Few()
    assert dn.iota((2, 2), axis=0, backend=Few()).to_list() == [[0, 0], [1, 1]]
    assert dn.eye(2, backend=Few()).to_list() == [[1, 0], [0, 1]]


def test_the_default_backend_gives_way() -> None:
    x = dn.tensor([1.0, 2.0], backend=Few())
    for y in (x + dn.tensor([1.0, 1.0]), dn.tensor([1.0, 1.0]) + x, x + 1, x + np.float32(1)):
        assert y.backend == Few()
        assert y.to_list() == [2.0, 3.0]
    assert dn.concatenate([x, dn.tensor([3.0])]).backend == Few()


def test_backends_are_told_apart_by_class_and_options() -> None:
    class Device(Few):
        def __init__(self, *, device=0, **options):
            super().__init__(**options)
            self.device = device

    assert Few() == Few()
    assert Device(device=1) == Device(device=1)
    assert Device(device=1) != Device(device=2)
    assert Device() != Few()
    assert repr(Device(device=1)) == "Device(device=1)"
    x, y = (dn.tensor(1.0, backend=Device(device=i)) for i in (1, 2))
    with pytest.raises(dn.BackendError, match=r"Device\(device=1\) and Device\(device=2\)"):
        x + y


def test_defaults_of_callbacks() -> None:
    x = dn.tensor([[1.0, 2.0]], backend=Few())
    assert dn.squeeze(x).to_list() == [1.0, 2.0]
    assert dn.stack([x, x], axis=1).to_list() == [[[1.0, 2.0], [1.0, 2.0]]]
    assert (x > 1.0).to_list() == [[0, 1]]
    nan = dn.tensor([float("nan"), 0.0, 1.0], backend=Few())
    for name in ("not_equal", "greater", "greater_equal", "less_equal"):
        want = getattr(dn, name)(dn.tensor([float("nan"), 0.0, 1.0]), 0.0).to_list()
        assert getattr(dn, name)(nan, 0.0).to_list() == want, name
    for name in ("logical_and", "logical_or", "logical_xor"):
        for other in (0.0, 2.0):
            want = getattr(dn, name)(dn.tensor([float("nan"), 0.0, 1.0]), other).to_list()
            assert getattr(dn, name)(nan, other).to_list() == want, name
    assert dn.logical_not(x).backend == Few()


@pytest.mark.usefixtures("no_options")
def test_definitions_run_on_the_arguments_backend() -> None:
    backend = Few()
    x = dn.tensor([1.0, 2.0], backend=backend)
    f = dn.jit(lambda x, y: x * y + 1.0)
    assert f(x, 3.0).backend == backend
    assert f(x, 3.0).to_list() == [4.0, 7.0]
    assert f(dn.tensor([1.0, 2.0]), 3.0).backend == "cpu"
    assert f(x, 3.0).to_list() == [4.0, 7.0]
    captured = dn.jit(lambda y: x + y)
    assert captured(1.0).backend == backend


@pytest.mark.usefixtures("no_options")
def test_gradients_loops_and_branches() -> None:
    x = dn.tensor([1.0, 2.0], backend=Few())
    g = dn.grad(lambda x: dn.sum(x * x))(x)
    assert g.backend == Few()
    assert g.to_list() == [2.0, 4.0]
    i = dn.tensor(0, backend=Few())
    assert dn.while_(i, lambda i: i < 3, lambda i: i + 1).to_numpy() == 3
    assert dn.jit(lambda i: dn.while_(i, lambda i: i < 3, lambda i: i + 1))(i).backend == Few()
    chosen = dn.cond([(i < 1, lambda: x + 1.0)], lambda: x * 2.0)
    assert chosen.to_list() == [2.0, 3.0]
    assert chosen.backend == Few()


@pytest.mark.usefixtures("no_options")
def test_exceptions_pass_through_unchanged() -> None:
    raised = KeyError("mine")

    class Raises(Few):
        def add(self, out, a, b):
            raise raised

    x = dn.tensor([1.0], backend=Raises())
    for run in (lambda: x + x, lambda: dn.jit(lambda x: x + x)(x)):
        with pytest.raises(KeyError) as error:
            run()
        assert error.value is raised
    assert x.to_list() == [1.0]


@pytest.mark.usefixtures("no_options")
def test_callbacks_may_compute_with_tensors() -> None:
    class Doubles(Few):
        def multiply(self, out, a, b):
            return a + a

        def negate(self, out, x):
            return dn.jit(lambda x: x * 2.0)(x)

    x = dn.tensor([3.0], backend=Doubles())
    assert (x * 5.0).to_list() == [6.0]
    assert (-x).to_list() == [6.0]
    assert dn.jit(lambda x: -x)(x).to_list() == [6.0]


def test_values_are_placed_while_a_definition_is_traced() -> None:
    class Computes(Few):
        def from_binary(self, out, data):
            data = super().from_binary(out, data)
            assert (dn.tensor([1.0]) + 1.0).to_list() == [2.0]
            return data

    f = dn.jit(lambda x: x + dn.tensor([1.0], backend=Computes()))
    assert f(dn.tensor([1.0])).to_list() == [2.0]


@pytest.mark.usefixtures("no_options")
def test_blocks_are_run_natively_or_by_their_default() -> None:
    seen = []

    class Native(Few):
        def block(self, tag, out, args, fun):
            seen.append((tag, out.dtype, len(args)))
            if isinstance(tag, dn.blocks.LogicalNot):
                return args[0].data == 0
            return fun(tag, *args)

    x = dn.tensor([0.0, 1.0], backend=Native())
    assert dn.logical_not(x).to_list() == [1, 0]
    assert dn.jit(dn.logical_not)(x).to_list() == [1, 0]
    assert seen == [(dn.blocks.LogicalNot(), "bool", 1)] * 2
    assert dn.logical_not(dn.tensor([0.0], backend=Few())).to_list() == [1]


def test_narrow_integers_are_packed() -> None:
    class Packed(dn.Backend):
        def from_binary(self, out, data):
            return data

        def to_binary(self, x, limit):
            return x.data[: (limit * x.dtype.bits + 7) // 8]

    x = dn.tensor([1, -2, 3], dtype="s4", backend=Packed())
    assert x.data == bytes([0x1E, 0x30])
    assert x.to_list() == [1, -2, 3]


def test_data_is_let_go_with_its_tensor() -> None:
    class Thing:
        pass

    class Things(dn.Backend):
        def from_binary(self, out, data):
            return Thing()

    x = dn.tensor(1.0, backend=Things())
    thing = weakref.ref(x.data)
    gc.collect()
    assert thing() is not None
    del x
    assert thing() is None


def test_a_backend_that_holds_its_own_tensors_is_collected() -> None:
    backend = Few()
    backend.kept = dn.tensor([1.0], backend=backend)
    alive = weakref.ref(backend)
    gc.collect()
    assert alive() is not None
    del backend
    gc.collect()
    assert alive() is None


def test_threads() -> None:
    x = dn.tensor(np.ones(200_000, np.float32), backend=Few())
    results = []
    f = dn.jit(lambda x: dn.sum(x + x))

    def work():
        results.extend(float(f(x)) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [400_000.0] * 20


def test_tensors_move_between_backends() -> None:
    x = dn.tensor([[1, 2], [3, 4]], names=["row", None])
    there = dn.backend_copy(x, Few())
    assert (there.backend, there.names) == (Few(), ("row", None))
    assert there.data.tolist() == [[1, 2], [3, 4]]
    back = dn.backend_copy(there)
    assert (back.backend, back.to_list()) == ("cpu", [[1, 2], [3, 4]])
    moved = dn.backend_transfer(there, dn.backends.NumPyBackend())
    assert moved.to_list() == [[1, 2], [3, 4]]
    with pytest.raises(dn.BackendError, match="freed"):
        there + 1


def test_freeing_is_told_to_the_backend_once() -> None:
    freed = []

    class Frees(Few):
        def backend_deallocate(self, x):
            freed.append(x.data.tolist())

    x = dn.tensor([1.0], backend=Frees())
    assert dn.backend_deallocate(x) == "ok"
    assert dn.backend_deallocate(x) == "already_deallocated"
    assert freed == [[1.0]]
    with pytest.raises(dn.BackendError, match="freed"):
        x.data  # noqa: B018 - reading it raises.


def test_a_backend_may_have_its_own_way_elsewhere() -> None:
    class Sends(Few):
        def backend_copy(self, x, backend):
            self.calls.append("copy")
            return dn.tensor(x.data.copy(), backend=backend)

    backend = Sends()
    x = dn.tensor([1.0, 2.0], names=["x"], backend=backend)
    y = dn.backend_copy(x)
    assert (y.backend, y.names, y.to_list()) == ("cpu", ("x",), [1.0, 2.0])
    z = dn.backend_transfer(x, Few())
    assert z.backend == Few()
    assert backend.calls == ["from_binary", "copy", "copy"]
    with pytest.raises(dn.BackendError, match="freed"):
        x.to_list()

    class Loses(Few):
        def backend_copy(self, x, backend):
            return x

    with pytest.raises(dn.BackendError, match=r"backend_copy: the backend Loses gave .* on cpu"):
        dn.backend_copy(dn.tensor([1.0], backend=Loses()))


def test_a_backend_may_print_its_data() -> None:
    class Prints(Few):
        def inspect(self, x, limit):
            return f"{x.data.size} numbers, {limit} at most"

    x = dn.tensor([1.0, 2.0], backend=Prints())
    assert repr(x) == "Tensor<\n  f32[2]\n  2 numbers, 50 at most\n>"
    assert dn.inspect(x, limit=None).splitlines()[2] == "  2 numbers, None at most"
    plain = dn.tensor([1.0, 2.0], backend=Few())
    assert plain.backend.inspect(plain, 1) == "[1.0, ...]"
    assert repr(plain) == "Tensor<\n  f32[2]\n  [1.0, 2.0]\n>"


def test_printing_reads_no_more_than_is_shown() -> None:
    read = []

    class Counts(Few):
        def to_binary(self, x, limit):
            read.append(limit)
            return super().to_binary(x, limit)

    x = dn.tensor(np.zeros(1000), backend=Counts())
    repr(x)
    assert read == [50]


@pytest.mark.parametrize("leftover", ["repeat", "discard"])
def test_batches(leftover: str) -> None:
    class Slices(Few):
        def slice(self, out, x, starts, lengths, strides):
            return x.data[starts[0] : starts[0] + lengths[0]]

    class Batches(Slices):
        def to_batched(self, out, x, *, leftover):
            self.calls.append("to_batched")
            return super().to_batched(out, x, leftover=leftover)

    want = [batch.to_list() for batch in dn.to_batched(dn.iota((5,)), 2, leftover=leftover)]
    for backend in (Slices(), Batches()):
        x = dn.tensor(np.arange(5, dtype=np.int32), names=["x"], backend=backend)
        batches = dn.to_batched(x, 2, leftover=leftover)
        assert [batch.to_list() for batch in batches] == want
        assert [(batch.backend, batch.names) for batch in batches] == [(backend, ("x",))] * len(
            want
        )
        assert ("to_batched" in backend.calls) == isinstance(backend, Batches)


@pytest.mark.usefixtures("no_options")
def test_the_default_backend_may_be_a_users() -> None:
    def work():
        x = dn.tensor([1.0, 2.0])
        return x, dn.jit(lambda x: dn.sum(x * 3.0))(x), dn.iota((2,)), x * np.ones(2, np.float32)

    tensors = dn.with_default_backend(Few(), work)
    assert [tensor.backend for tensor in tensors] == [Few()] * 4
    assert float(tensors[1]) == 9.0


def test_reductions_by_a_users_function() -> None:
    calls = []

    class Folds(Few):
        def reduce(self, out, x, acc, fun, *, axes, keep_axes):
            calls.append((axes, keep_axes))
            folding = acc
            for element in x.data.reshape(-1):
                folding = fun(dn.tensor(element, backend=self), folding)
            return folding

    x = dn.tensor([1.0, 2.0, 3.0], backend=Folds())
    scale = dn.tensor(2.0)
    total = dn.reduce(x, 0.0, lambda element, acc: acc + element * scale)
    assert float(total) == 12.0
    assert total.backend == Folds()
    assert calls == [((0,), False)]


def test_numpy_has_every_callback() -> None:
    """It inherits only defaults, which need no callback of their own."""
    numpy = dn.backends.NumPyBackend
    own = {name for name in dir(numpy) if not name.startswith("_")}
    inherited = {
        name
        for name in own
        if callable(getattr(dn.Backend, name, None))
        and getattr(numpy, name) is getattr(dn.Backend, name)
    }
    assert inherited == {
        "backend_copy",
        "backend_deallocate",
        "backend_transfer",
        "inspect",
        "to_batched",
    }


def test_pointers() -> None:
    backend = dn.backends.NumPyBackend()
    x = dn.tensor([1.0, 2.0], backend=backend)
    shared = dn.from_pointer(dn.to_pointer(x), "f32", (2,), names=["x"], backend=backend)
    assert (shared.to_list(), shared.names, shared.backend) == ([1.0, 2.0], ("x",), backend)
    assert np.shares_memory(shared.data, x.data)
    with pytest.raises(BufferError, match="gaps"):
        dn.to_pointer(dn.broadcast(dn.tensor(1.0, backend=backend), (2, 2)))
    few = dn.tensor([1.0], backend=Few())
    with pytest.raises(dn.BackendError, match="to_pointer: the backend Few has no such callback"):
        dn.to_pointer(few)
    with pytest.raises(dn.BackendError, match="from_pointer: the backend Few has no such callback"):
        dn.from_pointer(dn.to_pointer(x), "f32", (2,), backend=Few())


class Host(Few):
    """A backend that runs missing callbacks on the host."""

    fallback = "host"


def test_what_a_backend_lacks_runs_on_the_host() -> None:
    for backend in (Host(), Few(fallback="host")):
        x = dn.tensor([[1.0, 4.0], [9.0, 16.0]], backend=backend)
        with pytest.warns(RuntimeWarning, match=r"^sqrt: the backend .* the host computes it"):
            roots = dn.sqrt(x)
        assert roots.to_list() == [[1.0, 2.0], [3.0, 4.0]]
        assert roots.backend == backend
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert dn.sqrt(x).to_list() == [[1.0, 2.0], [3.0, 4.0]], "it is announced once"
            assert (x + x).to_list() == [[2.0, 8.0], [18.0, 32.0]], "what is there runs there"
        with pytest.warns(RuntimeWarning):
            values, vectors = dn.linalg.eigh(x + dn.transpose(x))
        f = dn.jit(
            lambda x: dn.argmax(dn.cumulative_sum(dn.sort(x, axis=1), axis=1), axis=1),
            compiler="cpu",
        )
        with pytest.warns(RuntimeWarning) as announced:
            result = f(x)
        assert "sort" in {str(warning.message).partition(":")[0] for warning in announced}
        assert result.to_list() == f(dn.backend_copy(x)).to_list()
        assert values.backend == vectors.backend == backend


def test_without_fallback_what_is_missing_is_an_error() -> None:
    x = dn.tensor([1.0, 4.0], backend=Few())
    with pytest.raises(dn.BackendError, match=r'sqrt: .* no such callback.*fallback="host"'):
        dn.sqrt(x)
    with pytest.raises(dn.OptionError, match="fallback is"):
        Few(fallback="device")

    class Wrong(Few):
        fallback = True

    with pytest.raises(dn.OptionError, match="fallback"):
        dn.sqrt(dn.tensor([1.0], backend=Wrong()))


def test_what_a_callback_raises_is_no_reason_to_fall_back() -> None:
    class Failing(Few):
        fallback = "host"

        def sqrt(self, out, x):
            raise dn.BackendError("sqrt: the device burns")

    with pytest.raises(dn.BackendError, match="the device burns"):
        dn.sqrt(dn.tensor([1.0], backend=Failing()))
