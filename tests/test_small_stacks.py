"""Nested functions and containers on threads with small stacks: a result, or an error of ours.

Each family runs in its own process, because a stack overflow ends the process.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import defn as dn
from support import needs_plugin

# The smallest stack in common use, for example the default of threads in musl.
SMALL = 128 << 10

BEGIN = f"""
import faulthandler, sys, threading
faulthandler.enable()
sys.path[:0] = [{str(pathlib.Path(__file__).parent)!r},
                {str(pathlib.Path(__file__).parents[1] / "examples")!r}]
import numpy as np
import defn as dn

def compiler(name):
    if name != "numpy":
        return name
    from numpy_compiler import NumPyCompiler
    return NumPyCompiler()

def nest(x, depth):
    if depth == 0:
        return x + 1.0
    return dn.cond([(x > float(depth), lambda: nest(x * 2, depth - 1))], lambda: x - 1.0)

def loops(x, depth):
    if depth == 0:
        return x + 1.0
    return dn.while_((x, 0), lambda s: s[1] < 1, lambda s: (loops(s[0], depth - 1), s[1] + 1))[0]

def small(work, *args):
    # What a thread with a small stack gives, or the error of ours that it raises.
    made = []
    def run():
        try:
            made.append(work(*args))
        except dn.Error as error:
            made.append(error)
    threading.stack_size({SMALL})
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.stack_size(0)
    return made[0]
"""


def run(program: str, *args: object) -> list[str]:
    """The lines that a process with this program prints; the process must not crash."""
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(program), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.splitlines()


COMPILERS = [
    "evaluator",
    "cpu",
    pytest.param("pjrt", marks=needs_plugin),
    "numpy",
]
DEPTHS = [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]

TRACED = """
fun = {"cond": nest, "while": loops, "grad": lambda x, d: dn.grad(lambda x: nest(x, d))(x)}
fun = fun[sys.argv[2]]
for depth in map(int, sys.argv[3:]):
    work = lambda: float(dn.jit(lambda x: fun(x, depth), compiler=compiler(sys.argv[1]))(500.0))
    print(repr(small(work)).splitlines()[0], flush=True)
"""


@pytest.mark.parametrize("what", ["cond", "while", "grad"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_nested_functions(compiler: str, what: str) -> None:
    said = run(TRACED, compiler, what, *DEPTHS)
    right = {
        "cond": lambda depth: float(np.float32(500 * 2.0**depth) + np.float32(1)),
        "while": lambda depth: 501.0,
        "grad": lambda depth: 2.0**depth,
    }[what]
    made = [line == repr(right(depth)) for line, depth in zip(said, DEPTHS, strict=True)]
    assert made[:2] == [True, True], said
    for line, is_right in zip(said, made, strict=True):
        assert is_right or "this thread's stack has" in line or "nested deeper" in line, line
    assert made == sorted(made, reverse=True), "what fails fails for all that are deeper"


RUN = """
made = {}
for depth in map(int, sys.argv[2:]):
    x = dn.template((), "f32")
    made[depth] = dn.compile(lambda x: nest(x, depth), [x], compiler=compiler(sys.argv[1]))
for depth, fun in made.items():
    assert float(fun(500.0)) == float(np.float32(500 * 2.0**depth) + np.float32(1))
    print(repr(small(lambda: float(fun(500.0)))).splitlines()[0], flush=True)
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_was_compiled_elsewhere(compiler: str) -> None:
    """A program that was traced on a large stack runs on a small one, or raises an error."""
    said = run(RUN, compiler, *DEPTHS)
    for line, depth in zip(said, DEPTHS, strict=True):
        right = repr(float(np.float32(500 * 2.0**depth) + np.float32(1)))
        assert line == right or "this thread's stack has" in line, line
        assert line == right or depth > 3


OBJECTS = """
class Box:
    def __init__(self, item):
        self.item = item

class Fresh:
    pass

def fresh(box):
    # Each look at it makes another function, which closes over it.
    return [lambda x: x if box is None else x + 1], None

dn.register_container(Box, lambda box: ([box.item], None), lambda _, items: Box(*items))
dn.register_container(Fresh, fresh, lambda _, items: Fresh())

def deep(wrap, count=100_000):
    made = 1.0
    for _ in range(count):
        made = wrap(made)
    return made

def function(inner):
    return lambda x: (x, inner)

own_list, own_dict, own_tuple, own_box = [], {}, ([],), Box(None)
own_list.append(own_list)
own_dict["x"] = own_dict
own_tuple[0].append(own_tuple)
own_box.item = own_box
called = Box(None)
called.item = lambda x: x + (1 if called is None else 2)
OBJECTS = {
    "a list in itself": own_list, "a dict in itself": own_dict, "a tuple in itself": own_tuple,
    "a box in itself": own_box, "a function in what it closes over": called,
    "functions without end": Fresh(), "lists": deep(lambda x: [x]), "tuples": deep(lambda x: (x,)),
    "dicts": deep(lambda x: {"x": x}), "boxes": deep(Box), "functions": deep(function),
    "150 lists": deep(lambda x: [x], 150), "190 boxes": deep(Box, 190),
    "60 functions": deep(function, 60),
}
WAYS = {
    "argument": lambda one: dn.jit(lambda x: x)(one),
    "option": lambda one: dn.jit(lambda x, *, k: x)(1.0, k=one),
    "static": lambda one: dn.jit(lambda x, k: x, static="k")(1.0, one),
    "closure": lambda one: dn.jit(lambda x: x if one is None else x + 1)(1.0),
    "default": lambda one: dn.jit(lambda x, y=one: x)(1.0),
    "result": lambda one: dn.jit(lambda x: one)(1.0),
    "called": lambda one: dn.jit(lambda box, x: box.item(x))(one, 1.0),
    "definition": lambda one: dn.defn(lambda x: x if one is None else x + 1)(1.0),
    "compile": lambda one: dn.compile(lambda x: x, [one]),
    "debug_expr": lambda one: dn.debug_expr(lambda x: x if one is None else x + 1)(1.0),
    "tensor": dn.tensor, "stack": dn.stack, "shape": lambda one: dn.reshape(dn.tensor(1.0), one),
    "axes": lambda one: dn.sum(dn.tensor([1.0]), axes=one),
    "index": lambda one: dn.tensor([1.0])[one],
    "state": lambda one: dn.while_(one, lambda s: False, lambda s: s),
    "branch": lambda one: dn.cond([(1, lambda: one)], lambda: one),
    "gradient": lambda one: dn.grad(lambda x: 1.0)(one), "template": dn.to_template,
    "in_axes": lambda one: dn.vmap(lambda x: x, in_axes=one)(dn.tensor([1.0])),
    "hook": lambda one: dn.hook(one, lambda value: None), "serialize": dn.serialize,
    "stream": lambda one: dn.stream(lambda x, s: (x, s), [one, 0.0]),
    "operand": lambda one: dn.tensor(1.0) + one,
}
is_small = sys.argv[1] == "small"
for way in sys.argv[2:]:
    for name, one in OBJECTS.items():
        print(way, name, end=": ", flush=True)
        def work():
            try:
                WAYS[way](one)
            except dn.Error:
                raise
            except (TypeError, RecursionError, AttributeError) as error:
                # What Python itself says of it: an operand of another class, and a repr.
                return type(error).__name__
            return "done"
        if is_small:
            said = small(work)
        else:
            try:
                said = work()
            except dn.Error as error:
                said = error
        print(type(said).__name__ if isinstance(said, Exception) else said, flush=True)
# They are taken apart in turn when the process ends, as Python does it.
"""
WAYS = [
    "argument option static closure default result called definition compile debug_expr",
    "tensor stack shape axes index state branch gradient template in_axes hook serialize",
    "stream operand",
]


@pytest.mark.parametrize("size", ["large"])
@pytest.mark.parametrize("ways", WAYS, ids=range(len(WAYS)))
def test_objects_without_end(ways: str, size: str) -> None:
    said = run(OBJECTS, size, *ways.split())
    lines = dict(line.split(": ", 1) for line in said)
    assert len(lines) == 14 * len(ways.split())
    if ways == WAYS[0]:
        for way in ("argument", "closure", "result"):
            assert lines[f"{way} a list in itself"] == "ContainerError"
            assert lines[f"{way} lists"] == "ContainerError"
        assert lines["closure functions without end"] == "ContainerError"
        assert lines["closure functions"] == "ContainerError"
        assert lines["called a function in what it closes over"] == "done"
        assert lines["closure 60 functions"] == "done"
        if size == "large":
            assert lines["argument 150 lists"] == "done"


def test_the_depth_of_plain_values() -> None:
    """A tuple is plain if all its elements are; a tuple that is nested too deeply is not."""
    nested: tuple = ()
    for _ in range(100_000):
        nested = (nested,)
    with pytest.raises(dn.ContainerError, match="nested deeper"):
        dn.jit(lambda x: x if nested else x + 1)(1.0)
