"""Wrong programs with several devices, meshes, specs and collectives: rows of ``errors``."""

from __future__ import annotations

MESH = 'mesh = dn.Mesh({"data": 4}, client="host")\n'
BLOCK = '[("data",)], ("data",)'
FOUR = "w = np.ones(4)\n"

ROWS: list[tuple[str, str]] = [
    ("a mesh without axes", "dn.Mesh({})"),
    ("a mesh of no dict", 'dn.Mesh(["data", 4])'),
    ("an axis of no devices", 'dn.Mesh({"data": 0})'),
    ("a mesh of more devices than there can be", 'dn.Mesh({"data": 2**40, "model": 2**40})'),
    ("a mesh larger than the devices", 'dn.Mesh({"data": 4, "model": 2}, client="host")'),
    ("as many devices as no mesh has", 'dn.Mesh({"data": 4}, [0, 1], client="host")'),
    ("a device of a mesh twice", 'dn.Mesh({"data": 2}, [1, 1], client="host")'),
    ("a device that is none", 'dn.Mesh({"data": 1}, ["cuda"])'),
    (
        "a mesh of two clients",
        'import fake_plugin\ndn.pjrt.client("golden", plugin=fake_plugin.host(), '
        "cpu_device_count=1)\n"
        'dn.Mesh({"data": 2}, [dn.backends.PJRT(client=name) for name in ("host", "golden")])',
    ),
    ("an option that no mesh has", 'dn.Mesh({"data": 1}, shape=4)'),
    ("a mesh that is a dict", 'dn.shard(dn.sin, {"data": 4}, [()], ())'),
    ("a sharded function that is none", MESH + f"dn.shard(3, mesh, {BLOCK})"),
    ("specs that are one", MESH + 'dn.shard(dn.sin, mesh, "data", ())'),
    ("a spec that is a name", MESH + 'dn.shard(dn.sin, mesh, ["data"], ())'),
    ("a spec of an unknown axis", MESH + 'dn.shard(dn.sin, mesh, [("model",)], ())'),
    ("a spec with an axis twice", MESH + 'dn.shard(dn.sin, mesh, [("data", "data")], ())'),
    ("a device besides the mesh", MESH + f"dn.shard(dn.sin, mesh, {BLOCK}, device_id=1)"),
    ("a mesh as a compiler", MESH + "dn.jit(dn.sin, compiler=mesh)"),
    (
        "a compiler that is for one device",
        MESH + f'dn.shard(dn.sin, mesh, {BLOCK}, compiler="evaluator")',
    ),
    ("too few specs", MESH + f"dn.shard(dn.add, mesh, {BLOCK})(v, v)"),
    (
        "specs for other entries",
        MESH + "dn.shard(lambda xs: xs[0], mesh, [[(), (), ()]], ())([v, v])",
    ),
    (
        "specs for other keys",
        MESH + 'dn.shard(lambda d: d["a"], mesh, [{"b": ()}], ())({"a": v})',
    ),
    (
        "specs of a dict for a list",
        MESH + 'dn.shard(lambda xs: xs[0], mesh, [{"b": ()}], ())([v])',
    ),
    (
        "a spec longer than the rank",
        MESH + 'dn.shard(lambda d: d["w"], mesh, [(None, None, "data")], ())({"w": x})',
    ),
    ("a size that the devices do not divide", MESH + f"dn.shard(dn.sin, mesh, {BLOCK})(v)"),
    (
        "a spec of a result that has no axis",
        MESH + FOUR + 'dn.shard(dn.sum, mesh, [("data",)], ("data",))(w)',
    ),
    (
        "a sharded function in a definition",
        MESH + f"dn.jit(dn.shard(dn.sin, mesh, {BLOCK}))(v)",
    ),
    (
        "a gradient of a sharded function",
        MESH + "dn.grad(dn.shard(dn.sum, mesh, [()], ()))(v)",
    ),
    (
        "a vectorized argument of a sharded function",
        MESH + 'dn.shard(dn.sin, mesh, [()], ())(dn.vectorize(v, "a"))',
    ),
    (
        "an operation on a tensor in blocks",
        MESH + FOUR + f"dn.sin(dn.shard(dn.cos, mesh, {BLOCK})(w))",
    ),
    ("an exchange without a mesh", 'dn.all_reduce(v, "data")'),
    ("a place without a mesh", "dn.jit(lambda x: x + dn.mesh_index())(v)"),
    (
        "an exchange over an unknown axis",
        MESH + 'dn.shard(lambda x: dn.all_gather(x, "model"), mesh, [()], ())(v)',
    ),
    (
        "an exchange over an axis twice",
        MESH + 'dn.shard(lambda x: dn.all_reduce(x, ("data", "data")), mesh, [()], ())(v)',
    ),
    (
        "an exchange over what is no axis",
        MESH + "dn.shard(lambda x: dn.all_reduce(x, 0), mesh, [()], ())(v)",
    ),
    (
        "an exchange of a fold that is none",
        MESH + 'dn.shard(lambda x: dn.all_reduce(x, op="mean"), mesh, [()], ())(v)',
    ),
    (
        "the greatest of complex numbers on devices",
        MESH + 'dn.shard(lambda x: dn.all_reduce(x, op="max"), mesh, [()], ())(c)',
    ),
    (
        "a scatter that does not divide",
        MESH + "dn.shard(dn.reduce_scatter, mesh, [()], ())(v)",
    ),
    (
        "a gather along an axis that is not there",
        MESH + "dn.shard(lambda x: dn.all_gather(x, axis=1), mesh, [()], ())(v)",
    ),
    (
        "a pair out of range",
        MESH + "dn.shard(lambda x: dn.collective_permute(x, pairs=[(0, 4)]), mesh, [()], ())(v)",
    ),
    (
        "two blocks to one device",
        MESH + "move = lambda x: dn.collective_permute(x, pairs=[(0, 1), (2, 1)])\n"
        "dn.shard(move, mesh, [()], ())(v)",
    ),
    (
        "pairs that are none",
        MESH + "dn.shard(lambda x: dn.collective_permute(x, pairs=[1]), mesh, [()], ())(v)",
    ),
    (
        "an exchange in a branch",
        MESH + "branch = lambda x: dn.if_(dn.sum(x) > 0, lambda: dn.all_reduce(x), x)\n"
        "dn.shard(branch, mesh, [()], ())(v)",
    ),
    (
        "an exchange that one device would make",
        MESH + 'inner = dn.jit(lambda: dn.all_reduce(v), on_conflict="force")\n'
        "dn.shard(lambda x: x + inner(), mesh, [()], ())(v)",
    ),
    (
        "a hook on several devices",
        MESH + "dn.shard(lambda x: dn.hook(x, print), mesh, [()], ())(v)",
    ),
    (
        "checks on several devices",
        MESH + 'with dn.checks("nan"):\n    dn.shard(dn.sin, mesh, [()], ())(v)',
    ),
]
