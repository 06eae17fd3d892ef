"""Batches: their rows and order, positions, sources, what is made ahead, and what is refused."""

from __future__ import annotations

import builtins
import contextlib
import gc
import itertools
import pathlib
import sys
import threading
import time
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import defn as dn

KEY = dn.random.key(3)


def rows(batches: Any) -> list[list[int]]:
    return [batch.to_list() for batch in batches]


def joined(parts: Any) -> list[Any]:
    return list(itertools.chain.from_iterable(parts))


def test_rows_come_in_order() -> None:
    x = np.arange(14).reshape(7, 2)
    got = [np.asarray(batch) for batch in dn.data.batches(x, 3)]
    assert [len(batch) for batch in got] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate(got), x)
    assert [len(b) for b in dn.data.batches(x, 3, drop_last=True, epochs=2)] == [3, 3, 3, 3]
    assert rows(dn.data.batches(np.arange(3), 5)) == [[0, 1, 2]]


def test_each_epoch_has_each_row_once() -> None:
    got = rows(dn.data.batches(np.arange(10), 4, key=KEY, epochs=3))
    epochs = [joined(got[at : at + 3]) for at in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert got == rows(dn.data.batches(np.arange(10), 4, key=KEY, epochs=3))
    assert got != rows(dn.data.batches(np.arange(10), 4, key=dn.random.key(4), epochs=3))
    # The size of a batch does not change the order.
    assert epochs[1] == joined(rows(dn.data.batches(np.arange(10), 3, key=KEY, epochs=2))[4:])


def test_leaves_of_a_container_keep_together() -> None:
    arrays = {"x": np.arange(20.0).reshape(10, 2), "y": (dn.iota((10,)), np.arange(10) % 3 == 0)}
    for batch in dn.data.batches(arrays, 3, key=KEY):
        y = batch["y"][0].to_numpy()
        np.testing.assert_array_equal(batch["x"].to_numpy(), arrays["x"][y])
        np.testing.assert_array_equal(batch["y"][1].to_numpy(), y % 3 == 0)
        assert batch["x"].dtype == "f64"


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("drop_last", [False, True])
def test_going_on_from_each_position(key: Any, drop_last: bool) -> None:
    options: dict[str, Any] = {"key": key, "epochs": 3, "drop_last": drop_last}
    whole = rows(dn.data.batches(np.arange(7), 3, **options))
    batches = dn.data.batches(np.arange(7), 3, **options)
    for taken in range(len(whole) + 1):
        assert len(batches) == len(whole) - taken
        assert (
            rows(dn.data.batches(np.arange(7), 3, start=batches.position, **options))
            == whole[taken:]
        )
        next(batches, None)
    assert next(batches, None) is None


def test_a_position_is_part_of_a_saved_state(tmp_path: pathlib.Path) -> None:
    batches = dn.data.batches(np.arange(9), 2, key=KEY, epochs=None)
    for _ in range(7):
        next(batches)
    dn.checkpoints.save(tmp_path, 7, {"position": batches.position})
    _, state = dn.checkpoints.load(tmp_path, like={"position": dn.data.Position(0, 0)})
    again = dn.data.batches(np.arange(9), 2, key=KEY, epochs=None, start=state["position"])
    assert rows(itertools.islice(again, 12)) == rows(itertools.islice(batches, 12))


def test_batches_have_their_own_memory() -> None:
    x = np.arange(6.0)
    first = next(dn.data.batches(x, 3))
    x[:] = -1
    assert first.to_list() == [0.0, 1.0, 2.0]


def test_only_the_rows_of_a_batch_are_read_from_a_memory_map(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(40_000, dtype=np.int32).reshape(10_000, 4))
    x = np.load(path, mmap_mode="r")
    batch = next(dn.data.batches({"x": x}, 5, key=KEY))["x"].to_numpy()
    np.testing.assert_array_equal(batch, np.asarray(x)[batch[:, 0] // 4])
    # A map of more than there is memory, of which one page is written.
    huge = np.memmap(tmp_path / "huge", np.uint8, "w+", shape=(1 << 40, 1))
    huge[7] = 9
    assert next(dn.data.batches(huge, 8)).flatten().to_list() == [0] * 7 + [9]
    del huge


def test_tables_are_dicts_of_their_columns() -> None:
    columns = {"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.5, 3.5], "c": [True, False, True, True]}
    tables = (
        pyarrow.table(columns),
        pyarrow.record_batch(columns),
        pandas.DataFrame(columns),
        polars.DataFrame(columns),
        pyarrow.concat_tables(
            [pyarrow.table(columns).slice(0, 1), pyarrow.table(columns).slice(1)]
        ),
    )
    for table in tables:
        got = list(dn.data.batches(table, 3))
        assert [list(batch) for batch in got] == [["a", "b", "c"]] * 2
        for name, column in columns.items():
            assert joined(batch[name].to_list() for batch in got) == column
        assert [got[0][name].dtype for name in "abc"] == ["s64", "f64", "bool"]
    lists = pyarrow.table({"x": pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int8(), 2))})
    assert next(dn.data.batches(lists, 2))["x"].to_list() == [[1, 2], [3, 4]]


def test_objects_with_items() -> None:
    asked: list[int] = []

    class Squares:
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> Any:
            asked.append(index)
            return {"n": index, "square": np.float32(index**2)}

    got = list(dn.data.batches(Squares(), 2, key=KEY))
    assert sorted(asked) == [0, 1, 2, 3, 4]
    numbers = joined(batch["n"].to_list() for batch in got)
    assert numbers == asked
    assert joined(batch["square"].to_list() for batch in got) == [n**2 for n in asked]


def test_what_is_made_ahead() -> None:
    made: list[int] = []

    def items() -> Any:
        for item in range(20):
            made.append(item)
            yield item

    with dn.data.prefetch(items(), 3) as ahead:
        assert next(ahead) == 0
        until = time.monotonic() + 5
        while len(made) < 5 and time.monotonic() < until:
            time.sleep(0.01)
        # One is used, three wait, and one waits for a place.
        assert len(made) == 5
        assert list(ahead) == list(range(1, 20))
        assert next(ahead, None) is None
    assert not any(thread.name == "defn-prefetch" for thread in threading.enumerate())


def test_the_position_is_that_of_what_was_handed_out() -> None:
    batches = dn.data.batches(np.arange(9), 2, key=KEY)
    with dn.data.prefetch(batches, 4) as ahead:
        next(ahead)
        assert ahead.position == (0, 2)
        next(ahead)
        position = ahead.position
        rest = rows(ahead)
    assert rows(dn.data.batches(np.arange(9), 2, key=KEY, start=position)) == rest


def test_errors_of_what_is_made_ahead_come_in_their_place() -> None:
    def items() -> Any:
        yield 1
        raise KeyError("lost")

    ahead = dn.data.prefetch(items())
    assert next(ahead) == 1
    with pytest.raises(KeyError, match="lost"):
        next(ahead)
    assert next(ahead, None) is None


@pytest.mark.parametrize("how", ["close", "with", "lost"])
def test_threads_end(how: str) -> None:
    closed: list[bool] = []

    def items() -> Any:
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    ahead = dn.data.prefetch(items(), 2)
    next(ahead)
    if how == "close":
        ahead.close()
        ahead.close()
        with pytest.raises(dn.StreamError, match="closed"):
            next(ahead)
    elif how == "with":
        with ahead:
            next(ahead)
    else:
        del ahead
        gc.collect()
    until = time.monotonic() + 5
    while (
        any(t.name == "defn-prefetch" for t in threading.enumerate()) and time.monotonic() < until
    ):
        time.sleep(0.01)
    assert not any(thread.name == "defn-prefetch" for thread in threading.enumerate())
    assert closed == [True]


def test_a_thread_that_waits_for_an_item_sees_the_end() -> None:
    wait = threading.Event()
    found: list[BaseException] = []

    def items() -> Any:
        wait.wait(10)
        yield 1

    ahead = dn.data.prefetch(items())

    def consume() -> None:
        try:
            next(ahead)
        except dn.StreamError as error:
            found.append(error)

    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    closer = threading.Thread(target=ahead.close, daemon=True)
    closer.start()
    while not ahead._worker.closed.is_set():
        time.sleep(0.001)
    # The source ends only after the iterator was closed, so that no item comes.
    wait.set()
    for thread in (consumer, closer):
        thread.join(10)
        assert not thread.is_alive()
    assert len(found) == 1


def test_it_closes_while_its_thread_starts() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    errors: list[BaseException] = []
    try:
        for _ in range(300):
            ahead = dn.data.prefetch(iter(range(3)))

            def consume(ahead: Any = ahead) -> None:
                with contextlib.suppress(dn.StreamError):
                    next(ahead)

            def close(ahead: Any = ahead) -> None:
                try:
                    ahead.close()
                except RuntimeError as error:
                    errors.append(error)

            threads = [threading.Thread(target=target) for target in (consume, close)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_what_is_made_ahead_has_the_options_of_its_maker() -> None:
    def items() -> Any:
        while True:
            yield dn.default_options().get("compiler")

    with dn.options(compiler="evaluator"):
        ahead = dn.data.prefetch(items())
        assert next(ahead) == "evaluator"
    assert next(ahead) == "evaluator"
    ahead.close()


def test_a_progress_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = dn.data.batches(np.arange(6), 2)
    assert rows(dn.data.progress(batches, label="epoch")) == [[0, 1], [2, 3], [4, 5]]
    shown = capsys.readouterr().err
    assert "epoch" in shown
    assert "3/3" in shown
    endless = dn.data.batches(np.arange(6), 2, epochs=None)
    assert len(list(itertools.islice(dn.data.progress(endless), 4))) == 4
    original = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == "tqdm":
            raise ImportError(name)
        return original(name, *rest, **options)

    capsys.readouterr()
    monkeypatch.setattr(builtins, "__import__", without)
    assert list(dn.data.progress([1, 2])) == [1, 2]
    assert not capsys.readouterr().err


X, Y = np.arange(6.0).reshape(3, 2), np.arange(4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: dn.data.batches({"x": X, "y": Y}, 2),
            dn.ShapeError,
            r'arrays\["y"\] is int64\[4\]',
        ),
        (lambda: dn.data.batches([1, 2, 3], 2), dn.ShapeError, "an axis of rows is required"),
        (lambda: dn.data.batches(X[:0], 2), dn.ShapeError, "at least one row"),
        (lambda: dn.data.batches({}, 2), dn.ShapeError, "no leaves"),
        (lambda: dn.data.batches("abc", 2), dn.Error, "batches"),
        (
            lambda: dn.data.batches(X, 0),
            dn.OptionError,
            "size is 0, it must be an int of at least 1",
        ),
        (lambda: dn.data.batches(X, 2.0), dn.OptionError, "size is 2.0"),
        (lambda: dn.data.batches(X, True), dn.OptionError, "size is True"),
        (
            lambda: dn.data.batches(X, 4, drop_last=True),
            dn.OptionError,
            "3 rows, which fill no batch",
        ),
        (lambda: dn.data.batches(X, 2, epochs=0), dn.OptionError, "epochs is 0"),
        (lambda: dn.data.batches(X, 2, key=3), dn.DTypeError, "the key is s32"),
        (lambda: dn.data.batches(X, 2, start=(0, 4)), dn.OptionError, "of rows of at most 3"),
        (lambda: dn.data.batches(X, 2, start=5), dn.OptionError, "start is 5"),
        (lambda: dn.data.batches(X, 2, shuffle=True), dn.OptionError, "shuffle"),
        (
            lambda: dn.data.batches(pyarrow.table({"a": [1, None]}), 1),
            dn.ContainerError,
            "'a' has 1 nulls",
        ),
        (
            # NumPy would make them NaN, and the integers floats.
            lambda: dn.data.batches(
                pyarrow.table({"a": pyarrow.array([[1, None]], pyarrow.list_(pyarrow.int32(), 2))}),
                1,
            ),
            dn.ContainerError,
            "'a' has 1 nulls",
        ),
        (
            lambda: dn.data.batches(pyarrow.table([[1], [2], [3]], names=["a", "b", "a"]), 1),
            dn.ContainerError,
            "the table has 2 columns 'a'",
        ),
        (
            lambda: dn.data.batches(pyarrow.table({"a": ["x", "y"]}), 1),
            dn.ContainerError,
            "'a' is of type string",
        ),
        (lambda: dn.data.prefetch([1], 0), dn.OptionError, "size is 0"),
        (lambda: dn.data.prefetch(3), dn.OptionError, "iterable is of type int"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_table_without_the_package_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pyarrow.table({"a": [1]})
    original = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == "pyarrow":
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="needs the package pyarrow"):
        dn.data.batches(table, 1)


def test_the_length_of_endless_epochs() -> None:
    with pytest.raises(TypeError, match="no end"):
        len(dn.data.batches(X, 2, epochs=None))
