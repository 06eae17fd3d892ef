"""The error of every wrong program: its class and text, in a golden file to be read as prose."""

from __future__ import annotations

import builtins
import linecache
import pathlib
import re
import traceback

import pytest

import defn as dn
from cases.errors import PRELUDE, ROWS
from defn import errors

GOLDEN = pathlib.Path(__file__).parent / "golden" / "errors.txt"
SOURCES = pathlib.Path(__file__).parents[1] / "crates"
# Their messages name the backend, the compiler or live tensors, as for the default options.
OF_DEFAULTS = (
    "more bytes than there are",
    "an unknown compiler option",
    "freed elements in a definition",
    "freed elements as an argument",
    "a tensor of another backend",
    "copy=False of an array with gaps",
    "an exchange that one device would make",
    # Devices clamp positions instead of raising.
    "a position out of range",
    "an index out of range to take",
    "an index out of range along an axis",
    "a position out of range to add at",
    "a single position out of range",
    "an index of the greatest width",
    "one index out of range",
    "one index below the range",
    "a window that begins beyond the axis",
    "a slice put beyond the axis",
    "an element beyond a shape",
    "an element before a shape",
    # Devices give NaN.
    "a class that there is not",
    "a class below the first",
    "a row that there is not",
    "a row before the first",
)


def provoke(program: str) -> BaseException:
    """Runs a program as the file ``user.py``, and returns what it raises."""
    names: dict[str, object] = {"__name__": "user", "__builtins__": builtins}
    exec(compile(PRELUDE, "prelude.py", "exec"), names)
    # Messages may quote the line.
    linecache.cache["user.py"] = (len(program), None, program.splitlines(True), "user.py")
    try:
        exec(compile(program, "user.py", "exec"), names)
    except Exception as error:
        return error
    raise AssertionError(f"nothing is raised by\n{program}")


def normal(text: str) -> str:
    """The text without addresses, folders, and the sizes of this machine's memory."""
    text = re.sub(r"/[^ ]*/defn/__init__.py", "defn/__init__.py", text)
    text = re.sub(r"(?<![^\s(])/[^ ]*/(?=[^/ ]*\.so)", "", text)
    text = re.sub(r"0x[0-9a-f]+", "0x...", text)
    # The processor's name, and the clients that other tests have registered.
    text = re.sub(r"this is cpu \(.*\), an", "this is cpu (...), an", text)
    text = re.sub(r'(the client "\w+" is unknown, it must be one of )[^;\n]*', r"\1...", text)
    # The live tensors of other tests.
    text = re.sub(r"(or free tensors): the largest live tensors are [^\n]*", r"\1", text)
    return re.sub(r"\d+ are available", "N are available", text)


def written(title: str, program: str, error: BaseException) -> str:
    code = "\n".join(f"    {line}" for line in program.splitlines())
    return f"## {title}\n\n{code}\n\n{type(error).__name__}: {normal(str(error))}\n"


def golden() -> dict[str, str]:
    parts = GOLDEN.read_text().split("## ")[1:]
    return {part.split("\n", 1)[0]: "## " + part.rstrip("\n") + "\n" for part in parts}


@pytest.fixture(scope="session")
def texts(bless: bool) -> dict[str, str]:
    if bless:
        heading = (
            "The errors of wrong programs. Written by `pytest tests/test_errors.py --bless`.\n"
        )
        entries = [written(title, program, provoke(program)) for title, program in ROWS]
        GOLDEN.write_text("\n".join([heading, *entries]))
    return golden()


@pytest.mark.parametrize(("title", "program"), ROWS, ids=[title for title, _ in ROWS])
def test_text(
    title: str, program: str, texts: dict[str, str], request: pytest.FixtureRequest
) -> None:
    if title in OF_DEFAULTS:
        request.getfixturevalue("no_options")
    error = provoke(program)
    assert written(title, program, error) == texts[title]
    # Errors that Python itself raises for a call or an import.
    if type(error) in (ImportError, TypeError):
        return
    assert isinstance(error, errors.Error), "".join(traceback.format_exception(error))
    first, *rest = str(error).splitlines()
    assert re.match(r"[a-z_0-9]+( \"[a-z]+\")?(: | is )", first), "it begins with the function"
    assert not first.endswith(".")
    assert rest, "the last line is the user's"
    assert re.fullmatch(r"  at user\.py:\d+", rest[-1])


def test_the_golden_file_has_no_other_entries(texts: dict[str, str]) -> None:
    assert list(texts) == [title for title, _ in ROWS]


def test_the_last_line_is_the_innermost_of_the_users() -> None:
    error = provoke("def inner(a):\n    return (\n        a + dn.iota((4,))\n    )\nv\ninner(v)")
    assert str(error).splitlines()[-1] == "  at user.py:3"


BASES = {
    "ShapeError": ValueError,
    "AxisError": ValueError,
    "DTypeError": TypeError,
    "DivisionError": ZeroDivisionError,
    "NonFiniteError": ArithmeticError,
    "ConvergenceError": ArithmeticError,
    "OptionError": TypeError,
    "RangeError": OverflowError,
    "ContainerError": TypeError,
    "BoundsError": IndexError,
    "TraceError": RuntimeError,
    "CompileError": RuntimeError,
    "BackendError": RuntimeError,
    "FormatError": ValueError,
    "StreamError": RuntimeError,
    "OutOfMemoryError": MemoryError,
    "UnknownNameError": AttributeError,
    "Error": Exception,
    "RecompileWarning": RuntimeWarning,
}


def test_classes() -> None:
    assert set(errors.__all__) == set(BASES)
    for name, base in BASES.items():
        cls = getattr(dn, name)
        assert issubclass(cls, errors.Error) == name.endswith("Error")
        assert issubclass(cls, base)
        assert cls.__module__ == "defn"
        assert len(cls.__doc__.split()) > 4


# Kinds of errors that no program of the table can cause, each with the reason.
UNREACHED = {
    # The Python layer checks these first, and names the position in the user's containers.
    "LoopState": "the error of while_ names the place in the state",
    "BranchCount": "the structure check of cond names what differs",
    "CallResult": "the check of runtime_call names the place in the output",
    "ArgumentCount": "the number of arguments is bound by Python's rules",
    "NotOnHost": "backends are the host, or say themselves where elements are",
    "BackendRefused": "the CPU backend does everything",
    # No user code leads to these.
    "Internal": "a bug of ours, which no test knows of",
    "NoHostFunction": "a program runs by the definition that it was traced in",
    "CaptureGone": "the environment would have to change between a trace and its first run",
    "DonatePosition": "donated parameters are those of the function",
    "Executables": "stages are compiled by the run, one program for each",
    "Program": "stages are compiled by the run, each from its own graph",
    "OtherMesh": "a sharded function is traced for its own mesh",
    "OnlyTensors": 'kernels of other runtimes are compiled by "cpu"',
    # These need a separate process.
    "NoPlugin": "test_pjrt_refusals.py runs without plugins",
    "Forked": "test_pjrt_processes.py forks",
    "OneProcess": "test_distributed.py starts several",
    "OtherProcess": "test_distributed.py starts several",
    "NoneHere": "test_distributed.py starts several",
    "Elsewhere": "test_distributed.py starts several",
    # Live tensors are left out here, because other tests create them.
    "OutOfMemoryBeside": "test_memory.py keeps a large tensor",
    # The free space on a stack differs between builds.
    "SmallStack": "test_small_stacks.py starts threads with small stacks",
}


def kinds(path: str) -> dict[str, re.Pattern[str]]:
    """The kinds of errors in a Rust source file, each with a pattern of its text."""
    source = (SOURCES / path).read_text()
    found = {}
    for text, name in re.findall(r'#\[error\(\s*"((?:[^"\\]|\\.)*)"[^#]*?\)\]\s*(\w+)', source):
        text = text.replace('\\"', '"').replace("{{", "{").replace("}}", "}")
        pieces = re.split(r"\{[^{}]*\}", text)
        found[name] = re.compile(".*".join(re.escape(piece) for piece in pieces), re.DOTALL)
    return found


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("core/src/error.rs", 40),
        ("core/src/device.rs", 15),
        ("core/src/mesh/error.rs", 15),
        ("core/src/stage/error.rs", 11),
        ("python/src/misuse.rs", 40),
    ],
)
def test_every_kind_is_reached(path: str, least: int, texts: dict[str, str]) -> None:
    messages = [text.split("\n\n", 2)[2].split(": ", 1)[-1] for text in texts.values()]
    found = kinds(path)
    assert len(found) > least, "the source is read"
    missing = {
        name
        for name, pattern in found.items()
        if not any(pattern.match(message) for message in messages)
    }
    assert missing == {name for name in UNREACHED if name in found}
