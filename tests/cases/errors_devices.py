"""Wrong programs with plugins, clients, memory, donation and executables: rows of ``errors``."""

from __future__ import annotations

FAKES = "import fake_plugin\n"
RUNNING = FAKES + 'dn.pjrt.client("golden", plugin=fake_plugin.host(), cpu_device_count=1)\n'
DONATING = 'p = dn.tensor([1.0, 2.0], backend="pjrt")\n'

ROWS: list[tuple[str, str]] = [
    (
        "a plugin that is not there",
        'dn.pjrt.client("absent", plugin="no/such/plugin.so")\ndn.backends.PJRT(client="absent")',
    ),
    (
        "a plugin that is a text",
        FAKES + 'dn.pjrt.client("text", plugin=fake_plugin.text())\n'
        'dn.backends.PJRT(client="text")',
    ),
    (
        "a library that is no plugin",
        FAKES + 'dn.pjrt.client("library", plugin=fake_plugin.library())\n'
        'dn.backends.PJRT(client="library")',
    ),
    (
        "a plugin of another version",
        FAKES + 'dn.pjrt.client("newer", plugin=fake_plugin.fake("pjrt_newer.so", major=1))\n'
        'dn.backends.PJRT(client="newer")',
    ),
    (
        "a device without its driver",
        FAKES + 'dn.pjrt.client("bare", plugin=fake_plugin.fake(), no_driver=True)\n'
        'dn.backends.PJRT(client="bare")',
    ),
    ("a client that is unknown", 'dn.backends.PJRT(client="abacus")'),
    ("a client whose plugin is not installed", 'dn.backends.PJRT(client="tpu")'),
    ("a client of no installed plugin", 'dn.pjrt.client("abacus")'),
    (
        "an option that the plugin does not take",
        FAKES + 'dn.pjrt.client("odd", plugin=fake_plugin.host(), fuel=1)\n'
        'dn.backends.PJRT(client="odd")',
    ),
    (
        "an option of another kind",
        FAKES + 'dn.pjrt.client("odd", plugin=fake_plugin.host(), cpu_device_count="two")\n'
        'dn.backends.PJRT(client="odd")',
    ),
    (
        "a flag that XLA does not have",
        'dn.jit(dn.sin, compiler="pjrt", xla_no_such_flag=True)(v)',
    ),
    (
        "a flag of another kind",
        'dn.pjrt.compile(dn.sin, [v], xla_cpu_prefer_vector_width="wide")',
    ),
    (
        "another description of a client that runs",
        RUNNING + 'dn.backends.PJRT(client="golden")\n'
        'dn.pjrt.client("golden", plugin=fake_plugin.host(), cpu_device_count=2)',
    ),
    ("a device out of range", RUNNING + 'dn.backends.PJRT(client="golden", device_id=3)'),
    (
        "a limit where there is none",
        FAKES + 'dn.pjrt.client("bounded", plugin=fake_plugin.host(), memory_limit=1024)\n'
        'dn.backends.PJRT(client="bounded")',
    ),
    (
        "more than the host's memory",
        RUNNING + 'place = dn.backends.PJRT(client="golden")\n'
        "kept = dn.iota((16384,), backend=place)\n"
        "dn.iota((2**44,), backend=place)",
    ),
    (
        "more than the device's memory",
        FAKES + 'dn.pjrt.client("small", plugin=fake_plugin.fake())\n'
        'place = dn.backends.PJRT(client="small")\n'
        'kept = [dn.tensor(np.zeros(100_000 + n, "f4"), backend=place) for n in range(2)]\n'
        'few = dn.tensor(np.zeros(2, "f4"), backend=place)\n'
        'dn.tensor(np.zeros(100_000, "f4"), backend=place)',
    ),
    (
        "a device that computes nothing",
        FAKES + 'dn.pjrt.client("idle", plugin=fake_plugin.fake())\n'
        'w = dn.tensor(1.0, backend=dn.backends.PJRT(client="idle"))\n'
        "w + w",
    ),
    (
        "a donated argument that fits no result",
        DONATING + "dn.pjrt.jit(dn.sum, donate=0)(p)",
    ),
    (
        "a donated argument of effects in a loop",
        DONATING + "def shown(a):\n"
        "    return dn.while_(a, lambda a: a[0] < 9.0, lambda a: dn.hook(a * 2.0, print))\n"
        "dn.pjrt.jit(shown, donate=0)(p)",
    ),
    (
        "a donated argument that is used again",
        DONATING + "double = dn.pjrt.jit(lambda a: a + a, donate=0)\ndouble(p)\ndouble(p)",
    ),
    ("a donated tensor that is used again", DONATING + "dn.pjrt.jit(dn.sin, donate=0)(p)\np + 1.0"),
    (
        "an executable for another processor",
        "from test_pjrt_saved import of_another_processor\n"
        "dn.pjrt.deserialize(of_another_processor(), trust=True)",
    ),
    ("untrusted executables", 'dn.pjrt.deserialize(b"defn compiled 03")'),
    ("untrusted executables in a file", 'dn.pjrt.load("nowhere", trust="yes")'),
    (
        "a saved program that asks the host",
        "dn.pjrt.compile(lambda a: dn.print_value(a), [v]).serialize()",
    ),
    ("a target that is unknown", 'dn.pjrt.compile(dn.sin, [v], target="abacus", client="host")'),
]
