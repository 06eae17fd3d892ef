"""Wrong programs with backends' memory, files, and reading: rows of ``errors``."""

from __future__ import annotations

FREED = "f = dn.tensor([1.0, 2.0])\ndn.backend_deallocate(f)\n"

NPY = """\
import io
file = io.BytesIO()
np.save(file, np.array([1.0, 2.0]))
data = file.getvalue()
"""

NPZ = """\
import io, zipfile
file = io.BytesIO()
np.savez_compressed(file, a=np.zeros(10_000))
data = file.getvalue()
"""

LIKE = """\
import io
file = io.BytesIO()
dn.save(file, {}, format="defn")
file.seek(0)
dn.load(file, like={})"""

TENSORS = """\
import io
file = io.BytesIO()
dn.save(file, {"a": v}, format="safetensors")
data = file.getvalue()
"""

FOREIGN = """\
class Foreign:
    def __dlpack__(self, **options):
        return {capsule}
    def __dlpack_device__(self):
        return {device}
"""

LIAR = """\
class Liar(list):
    def __len__(self):
        return 9
    def __iter__(self):
        return iter([7] * 9)
dn.tensor([Liar([1, 2]), Liar([1])])
"""

ROWS: list[tuple[str, str]] = [
    # Where elements are stored.
    ("freed elements in an operation", FREED + "f + 1.0"),
    ("freed elements read", FREED + "f.to_list()"),
    ("freed elements copied", FREED + "dn.backend_copy(f)"),
    ("freed elements moved", FREED + "dn.backend_transfer({'f': f})"),
    ("freed elements in a definition", FREED + "dn.jit(lambda: f + 1.0)()"),
    ("freed elements as an argument", FREED + "dn.jit(dn.sin)(f)"),
    ("freed elements serialized", FREED + "dn.serialize([f])"),
    ("a traced tensor copied", "dn.jit(lambda x: dn.backend_copy(x))(v)"),
    ("a traced tensor moved", "dn.jit(lambda x: dn.backend_transfer(x))(v)"),
    ("a traced tensor freed", "dn.jit(lambda x: dn.backend_deallocate(x))(v)"),
    ("a template copied", 'dn.backend_copy(dn.template((2,), "f32"))'),
    ("a template freed", 'dn.backend_deallocate(dn.template((2,), "f32"))'),
    ("a copy to no backend", 'dn.backend_copy(v, "gpu")'),
    ("a default backend that is none", "dn.default_backend(1)"),
    ("a default backend that is unknown", 'dn.options(backend="gpu").__enter__()'),
    ("a tensor of another backend", "dn.tensor(v, backend=dn.backends.NumPyBackend())"),
    ("a copy of what is no container", "dn.backend_copy([object()])"),
    ("a limit of printing below zero", "dn.options(print_limit=-1).__enter__()"),
    # Reading.
    ("a number of a vector", "dn.to_number(v)"),
    ("a list of a scalar", "dn.to_list(dn.tensor(1))"),
    ("a limit below zero", "v.to_flat_list(limit=-1)"),
    ("a limit of bytes that is no int", "v.to_binary(limit=1.5)"),
    ("the bytes of a traced tensor", "dn.jit(lambda x: x.to_binary())(v)"),
    ("batches of a scalar", "dn.to_batched(1.0, 1)"),
    ("batches longer than the tensor", "v.to_batched(4)"),
    ("batches of nothing", "v.to_batched(0)"),
    ("batches with another leftover", 'v.to_batched(2, leftover="keep")'),
    ("batches of a traced tensor", "dn.jit(lambda x: x.to_batched(1)[0])(v)"),
    ("a heatmap of a scalar", "dn.to_heatmap(1.0)"),
    ("a heatmap of complex numbers", "c.to_heatmap()"),
    ("too few bytes to print", 'dn.backends.inspect(dn.template((9,), "f32"), bytes(8))'),
    ("no bytes to print", 'dn.backends.inspect(dn.template((9,), "f32"), 3)'),
    ("bytes that are none", 'dn.from_binary("abcd", "u8")'),
    # Memory of other libraries.
    ("a pointer between processes", 'dn.to_pointer(v, mode="ipc")'),
    (
        "a pointer to another backend's",
        "class Own(dn.Backend):\n    def iota(self, out, axis):\n        return 1\n"
        "dn.to_pointer(dn.iota((2,), backend=Own()))",
    ),
    ("a pointer to a traced tensor", "dn.jit(lambda x: dn.to_pointer(x))(v)"),
    ("no address", 'dn.from_pointer(0, "f32", (2,))'),
    (
        "an address that is not aligned",
        'dn.from_pointer(1027, "f32", (2,))',
    ),
    ("a pointer of another size", 'dn.from_pointer(dn.to_pointer(v), "f32", (2,))'),
    ("a masked array", "dn.tensor(np.ma.masked_array([1, 2], [0, 1]))"),
    ("a masked operand", "v + np.ma.masked_array([1, 2, 3], [0, 1, 0])"),
    ("a masked argument", "dn.jit(dn.sin)(np.ma.masked_array([1, 2], [0, 1]))"),
    (
        "an array on a device",
        FOREIGN.format(capsule="None", device="(2, 1)") + "dn.tensor(Foreign())",
    ),
    (
        "a capsule that is none",
        FOREIGN.format(capsule="3", device="(1, 0)") + "dn.tensor(Foreign())",
    ),
    ("a lying list", LIAR),
    ("a pad of more than there is", "dn.pad(v, 0, [(2**62, 2**62, 2**62)])"),
    # Files.
    ("a file of no format", "dn.load_numpy(b'abc')"),
    ("a file of no known format", "import io\ndn.load(io.BytesIO(b'abc'))"),
    ("a file of another version", NPY + "dn.load_numpy(data[:6] + bytes([9]) + data[7:])"),
    ("a file cut short in its header", NPY + "dn.load_numpy(data[:20])"),
    ("a file cut short in its elements", NPY + "dn.load_numpy(data[:-1])"),
    ("a file that goes on", NPY + "dn.load_numpy(data + b'x')"),
    ("a header that is no dict", NPY + "dn.load_numpy(data.replace(b'{', b'['))"),
    ("a header without a shape", NPY + "dn.load_numpy(data.replace(b'shape', b'shale'))"),
    ("a header with a negative size", NPY + "dn.load_numpy(data.replace(b'(2,)', b'(-2)'))"),
    (
        "a header that promises much",
        NPY + "data = data.replace(b'(2,), }' + b' ' * 12, b'(8888888888888,), }')\n"
        "dn.load_numpy(data)",
    ),
    ("an array of objects", NPY + "dn.load_numpy(data.replace(b\"'<f8'\", b\"'|O' \"))"),
    ("an array of texts", NPY + "dn.load_numpy(data.replace(b'<f8', b'<U2'))"),
    ("an array with fields", NPY + "dn.load_numpy(data.replace(b\"'<f8'\", b\"[('a','')]\"))"),
    ("an array of unnamed bytes", NPY + "dn.load_numpy(data.replace(b'<f8', b'|V1'))"),
    (
        "unnamed bytes of another width",
        NPY + "dn.load_numpy(data.replace(b'<f8', b'|V2'), dtype='f32')",
    ),
    ("an archive cut short", NPZ + "dn.load_numpy(data[:-1])"),
    ("an archive with a changed byte", NPZ + "dn.load_numpy(data[:60] + b'x' + data[61:])"),
    (
        "an archive of other files",
        NPZ + "zipfile.ZipFile(file, 'a').writestr('b.txt', 'b')\ndn.load_numpy(file.getvalue())",
    ),
    (
        "a changed header of safetensors",
        TENSORS + "dn.load(io.BytesIO(data.replace(b'dtype', b'dtypo')))",
    ),
    (
        "overlapping safetensors",
        TENSORS + "dn.load(io.BytesIO(data.replace(b'[0,12]', b'[4,12]')))",
    ),
    (
        "safetensors of an unknown dtype",
        TENSORS + "dn.load(io.BytesIO(data.replace(b'F32', b'F99')))",
    ),
    ("safetensors cut short", TENSORS + "dn.load(io.BytesIO(data[:-1]))"),
    (
        "more axes than an array of NumPy has",
        "dn.reshape(dn.tensor(1.0), (1,) * 65).to_numpy()",
    ),
    (
        "a container that makes functions without end",
        "class Fresh: pass\n"
        "def taken(box):\n"
        "    return [lambda: box], None\n"
        "dn.register_container(Fresh, taken, lambda _, items: Fresh())\n"
        "fresh = [Fresh()]\n"
        "def outer(fresh):\n"
        "    return dn.jit(lambda x: x if fresh is None else x)(v)\n"
        "outer(fresh)",
    ),
    ("a tensor that a scope freed", "with dn.scope():\n    y = v + 1\ny * 2"),
    ("a scope that is entered twice", "s = dn.scope()\nwith s: pass\nwith s: pass"),
    ("what a scope cannot keep", "with dn.scope() as s:\n    s.keep(object())"),
    (
        "a lazy leaf of another type",
        'dn.jit(lambda x: x + 1)(dn.lazy(dn.template((7,), "f32"), lambda: v))',
    ),
    ("a lazy leaf without a function", "dn.lazy(v, 3)"),
    ("a lazy leaf that gives no tensor", 'dn.lazy(v, lambda: "text")()'),
    ("data that is not serialized", "dn.deserialize(b'abc')"),
    ("serialized data cut short", "dn.deserialize(dn.serialize(v)[:-1])"),
    (
        "serialized data with a changed byte",
        "data = dn.serialize(v)\ndn.deserialize(data[:70] + b'x' + data[71:])",
    ),
    (
        "serialized data of a newer version",
        "data = dn.serialize(v)\ndn.deserialize(data[:8] + bytes([2]) + data[9:])",
    ),
    ("a traced tensor serialized", "dn.jit(lambda x: dn.serialize(x))(v)"),
    ("a function serialized", "dn.serialize([len])"),
    (
        "a class that has no place",
        "import collections\n"
        "def make():\n    return collections.namedtuple('Local', 'a')(v)\ndn.serialize(make())",
    ),
    (
        "a class that is gone",
        "import collections, sys, types\n"
        "module = sys.modules['gone'] = types.ModuleType('gone')\n"
        "Pair = module.Pair = collections.namedtuple('Pair', 'a', module='gone')\n"
        "data = dn.serialize(Pair(v))\ndel sys.modules['gone']\ndn.deserialize(data)",
    ),
    (
        "a class that has changed",
        "import collections, sys, types\n"
        "module = sys.modules['changed'] = types.ModuleType('changed')\n"
        "Pair = module.Pair = collections.namedtuple('Pair', 'a', module='changed')\n"
        "data = dn.serialize(Pair(v))\n"
        "module.Pair = collections.namedtuple('Pair', 'a b', module='changed')\n"
        "dn.deserialize(data)",
    ),
    ("a list saved as an archive", "import io\ndn.save(io.BytesIO(), [v], format='npz')"),
    ("a text saved in an archive", "import io\ndn.save(io.BytesIO(), {'a': 'b'}, format='npz')"),
    ("a key that is no name", "import io\ndn.save(io.BytesIO(), {1: v}, format='safetensors')"),
    (
        "a type that NumPy's files lack",
        "import io\ndn.save(io.BytesIO(), v.as_type('f8_e4m3fn'), format='npy')",
    ),
    (
        "a type that safetensors lack",
        "import io\ndn.save(io.BytesIO(), {'a': v.as_type('c128')}, format='safetensors')",
    ),
    ("a file without a format", "import io\ndn.save(io.BytesIO(), v)"),
    ("a format that is unknown", "dn.load('x', format='csv')"),
    ("a compressed file that cannot be", "dn.save('x.npy', v, compressed=True)"),
    ("numbers kept by a format of tensors", "dn.save('x.npz', {'a': 1}, keep_numbers=True)"),
    (
        "a content of another structure",
        LIKE.format("{'w': v, 'b': 1}", "{'w': v, 'b': (1, 2)}"),
    ),
    ("a content of another shape", LIKE.format("[v, v]", "[v, v[:1]]")),
    ("a content of another static value", LIKE.format("[v, 'relu']", "[v, 'tanh']")),
    ("a checkpoint before the first step", "dn.checkpoints.save('nowhere', -1, v)"),
    ("a checkpoint of half a step", "dn.checkpoints.load('nowhere', step=0.5)"),
    ("no checkpoint that is kept", "dn.checkpoints.save('nowhere', 1, v, keep=0)"),
    ("damage that is ignored", "dn.checkpoints.load('nowhere', damaged='ignore')"),
    ("damage of a step that is named", "dn.checkpoints.load('nowhere', step=1, damaged='skip')"),
]
