"""The features of EXLA, as they are written here; docs/from-nx.md names these tests."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn
from support import needs_plugin

pytestmark = needs_plugin

VALUES = np.float32([1.0, 2.0, 3.0])


def there(value: object = VALUES) -> dn.Tensor:
    return dn.tensor(value, backend="pjrt")


def test_jit_and_jit_apply() -> None:
    assert dn.pjrt.jit(lambda x: x + x)(VALUES).to_list() == [2.0, 4.0, 6.0]
    assert dn.jit(lambda x: x + x, compiler="pjrt")(VALUES).backend == dn.backends.PJRT()
    with dn.options(compiler="pjrt"):
        assert dn.jit_apply(lambda x: x + x, [VALUES]).backend == dn.backends.PJRT()


def test_compile() -> None:
    run = dn.pjrt.compile(lambda x: x * 2, [dn.template((3,), "f32")])
    assert run(VALUES).to_list() == [2.0, 4.0, 6.0]
    with pytest.raises(dn.ShapeError):
        run(VALUES[:2])


def test_stream() -> None:
    arguments = [dn.template((), "s32"), np.int32(0)]
    with dn.stream(lambda x, acc: (acc, x + acc), arguments, compiler="pjrt") as stream:
        assert [int(part) for part in stream.map(np.int32([1, 2, 3]))] == [0, 1, 3]


def test_what_is_cached() -> None:
    run = dn.pjrt.jit(lambda x: x - 41.25)
    assert run.cache_info()["size"] == 0
    before = dn.pjrt.cache_report()
    run(VALUES)
    run(VALUES + 1)
    assert run.cache_info()["size"] == 1
    assert dn.pjrt.cache_report().compiles == before.compiles + 1
    with dn.options(compiler="pjrt"):
        dn.stream(lambda x, acc: (acc, x + acc), [dn.template((), "f32"), 0.0]).close()
    report = dn.pjrt.cache_report()
    with dn.options(compiler="pjrt"):
        dn.stream(lambda x, acc: (acc, x + acc), [dn.template((), "f32"), 0.0]).close()
    assert dn.pjrt.cache_report().compiles == report.compiles


def test_callbacks_of_the_compiler() -> None:
    compiler = dn.compilers.get("pjrt")
    assert dn.to_backend(compiler="pjrt") == dn.backends.PJRT()
    options = compiler.partitions_options({})
    assert [option["device_id"] for option in options] == list(range(len(dn.devices("host"))))


def test_options_of_the_backend() -> None:
    last = dn.devices("host")[-1]
    place = dn.backends.PJRT(client="host", device_id=last.device_id)
    assert dn.tensor(VALUES, backend=place).backend == last.backend == place
    assert dn.default_backend() == "cpu"
    with pytest.raises(dn.OptionError, match="unknown option"):
        dn.backends.PJRT(device=1)
    with pytest.raises(dn.OptionError, match="device_id is 'one'"):
        dn.backends.PJRT(device_id="one")
    with pytest.raises(dn.OptionError, match="client is 3"):
        dn.backends.PJRT(client=3)
    for limit in [-1, 0, "8 GiB", 1 << 70]:
        with pytest.raises(dn.OptionError, match="memory_limit is "):
            dn.pjrt.client("limited", plugin="plugin.so", memory_limit=limit)


def test_bytes_go_there_and_back() -> None:
    x = dn.from_binary(VALUES.tobytes(), "f32", backend="pjrt")
    assert x.to_binary() == VALUES.tobytes()
    assert x.to_binary(limit=2) == VALUES[:2].tobytes()
    assert int(dn.tensor(7, backend="pjrt")) == 7


def test_copies_and_transfers() -> None:
    x = there()
    copy = dn.backend_copy(x, "pjrt")
    assert dn.backend_transfer(x, "pjrt").to_list() == VALUES.tolist()
    host = dn.backend_transfer(x, "cpu")
    assert host.to_list() == copy.to_list() == VALUES.tolist()
    assert dn.backend_deallocate(copy) == "ok"
    assert dn.backend_deallocate(x) == "already_deallocated"


def test_batches() -> None:
    report = dn.pjrt.cache_report()
    batches = list(dn.to_batched(there(np.arange(10, dtype=np.float32)), 2))
    assert [batch.to_list() for batch in batches] == [[2.0 * n, 2.0 * n + 1] for n in range(5)]
    assert dn.pjrt.cache_report().compiles <= report.compiles + 1, "one program for every start"


def test_windows_and_joins() -> None:
    x = there(np.arange(6, dtype=np.float32))
    assert dn.concatenate([x, x]).shape == (12,)
    dn.slice(x, [0], [2])
    float(dn.put_slice(x, [0], there([9.0]))[0])
    before = dn.pjrt.cache_report().compiles
    for start in range(1, 4):
        assert dn.slice(x, [start], [2]).to_list() == [start, start + 1.0]
        assert dn.put_slice(x, [start], there([9.0]))[start].item() == 9.0
    assert dn.pjrt.cache_report().compiles == before


def test_printing() -> None:
    with dn.options(print_place=True):
        lines = repr(there()).splitlines()
        assert lines[2].startswith("  PJRT<host:0")
        assert lines[:2] + lines[3:] == ["Tensor<", "  f32[3]", "  [1.0, 2.0, 3.0]", ">"]
    with dn.options(print_place=False):
        assert "PJRT" not in repr(there())


def test_operations_are_compiled_once() -> None:
    x = there()
    x = x * 1.5
    before = dn.pjrt.cache_report().compiles
    for _ in range(10):
        x = dn.multiply(x, 1.5)
    assert dn.pjrt.cache_report().compiles == before


def test_blocks_of_ones_own() -> None:
    def softmax(tag, x):
        return dn.exp(x) / dn.sum(dn.exp(x))

    got = dn.block("softmax", [there()], there(), softmax)
    np.testing.assert_allclose(got.to_numpy().sum(), 1.0, rtol=1e-6)
