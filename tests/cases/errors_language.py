"""Wrong programs with definitions, options, loops, hooks and streams: rows of ``errors``."""

from __future__ import annotations

STREAM = 'stream = dn.stream(lambda c, s: (s, s + c), [dn.template((), "s32"), 0], maxsize=1)\n'

ROWS: list[tuple[str, str]] = [
    # Definitions.
    ("an option convert that is none", "dn.defn(lambda x: x, convert=1)"),
    ("a transform that is no function", "dn.deftransform(3)"),
    ("arguments that are no list", "dn.jit_apply(dn.sin, 1.0)"),
    ("a keyword that has no default", 'dn.keyword({"rte": 0.1}, rate=1.0, steps=10)'),
    ("a keyword that nothing takes", 'dn.keyword({"rate": 0.1})'),
    ("a generator", "@dn.defn\ndef f(x):\n    yield x\nf(1.0)"),
    ("a coroutine", "@dn.defn\nasync def f(x):\n    return x\nf(1.0)"),
    (
        "a tensor's truth in a plain helper",
        "def f(x):\n    return x if x > 0 else -x\ndn.jit(f)(1.0)",
    ),
    ("a default option that does not exist", "dn.default_options(speed=11)"),
    ("a global default option that does not exist", "dn.global_default_options(speed=11)"),
    ("an option for a block that does not exist", "with dn.options(speed=11):\n    pass"),
    ("an option of debug_expr", "dn.debug_expr(lambda x: x, speed=11)"),
    (
        "a compiler that is unknown in debug_expr",
        'dn.debug_expr(lambda x: x, compiler="fast")(1.0)',
    ),
    ("value_and_grad of nothing", "dn.value_and_grad()"),
    ("variables without a function", "dn.value_and_grad((1.0, 2.0))"),
    # Ranges.
    ("a range that stands still", "dn.range(0, 3, 0)"),
    ("a range of floats", "dn.range(dn.tensor(1.5))"),
    ("a range of vectors", "dn.range(i)"),
    ("a range of a tensor in a plain loop", "for k in dn.range(dn.tensor(3)):\n    pass"),
    ("the length of a range of a tensor", "len(dn.range(dn.tensor(3)))"),
    # Hooks.
    ("a hook without a name or a function", "dn.hook(1.0, 3)"),
    ("a hook whose function is none", 'dn.hook(1.0, "loss", 3)'),
    ("print_value of what is no function", "dn.print_value(1.0, 3)"),
    ("hooks that are no dict", "dn.jit(lambda x: x, hooks=[print])"),
    ("hooks that are no functions", 'dn.jit(lambda x: x, hooks={"loss": 3})'),
    # Streams.
    ("a stream of one argument", 'dn.stream(lambda c: c, [dn.template((), "s32")])'),
    ("a stream of no place", "dn.stream(lambda c, s: (s, c), [1, 0], maxsize=0)"),
    ("a stream whose step gives no pair", "dn.stream(lambda c, s: c + s, [1, 0])"),
    ("a stream whose step gives another state", "dn.stream(lambda c, s: (c, s + 0.5), [1, 0])"),
    ("a place that does not become free", STREAM + "stream.send(1)\nstream.send(2, timeout=0.01)"),
    ("an output of no chunk", STREAM + "stream.recv()"),
    ("an output after the end", STREAM + "stream.done()\nstream.recv()"),
    ("a chunk after the end", STREAM + "stream.done()\nstream.send(1)"),
    ("a chunk for a closed stream", STREAM + "stream.close()\nstream.send(1)"),
    ("a chunk of another type", STREAM + "stream.send(1.5)\nstream.recv()"),
    (
        "an output that does not come",
        """\
import time
wait = lambda v: time.sleep(0.3)
stream = dn.stream(lambda c, s: (dn.hook(s, wait), s), [1, 0])
stream.send(1)
try:
    stream.recv(timeout=0.01)
finally:
    stream.close()""",
    ),
    (
        "control flow without end",
        "def deeper(s):\n"
        "    return dn.if_(s > 0, lambda: deeper(s - 1), lambda: s)\n"
        "dn.jit(lambda s: deeper(s))(1)",
    ),
    (
        "a list that a branch changes",
        "seen = []\n@dn.defn\ndef f(s):\n    if s > 0:\n        seen.append(s)\n    return s\nf(1)",
    ),
]
