"""The calls of NVIDIA's libraries in programs for an H200, on a machine that need not have one.

`./dev test gpu-compile` runs it, as it runs tests/test_pjrt_target.py. What XLA makes of a program
is read from the files that it writes if it is told to before it starts.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

import defn as dn

sys.path.append(str(Path(__file__).parents[1] / "benches"))

from models import MODELS, Model

PLUGIN = Path(os.environ["DEFN_CUDA_PACKAGES"]) / "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
GOLDEN = Path(__file__).parent / "golden/custom_calls.txt"
DUMP = Path(tempfile.mkdtemp(prefix="defn-xla-"))
HEAD = """\
The calls of libraries in programs that XLA has compiled for an H200, with their number; fft, which
is cuFFT, and the number of loops. Cholesky's method has loops for singular matrices, with pivots.
"""


@pytest.fixture(scope="module", autouse=True)
def cuda() -> None:
    # XLA reads its flags once, when it starts.
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={DUMP} --xla_dump_hlo_as_text"
    os.environ["XLA_FLAGS"] = flags.strip()
    dn.pjrt.client("cuda", plugin=PLUGIN)


def hlo(fun, arguments, stage: str) -> str:
    """XLA's text of a program before or after its optimizations."""
    for file in DUMP.iterdir():
        file.unlink()
    dn.compile(fun, arguments, compiler="pjrt", target="h200", xla_gpu_autotune_level=0)
    texts = [file.read_text() for file in DUMP.glob(f"*{stage}_optimizations.txt")]
    assert texts, "XLA writes what it compiles"
    return "\n".join(texts)


def template(*sizes: int, dtype: str = "f32"):
    return dn.template(sizes, dtype)


MATRIX, STACK = template(64, 64), template(2, 3, 40, 40)
FACTORIZATIONS = {
    "cholesky": (dn.linalg.cholesky, [MATRIX]),
    "cholesky of c64": (dn.linalg.cholesky, [template(64, 64, dtype="c64")]),
    "gradient through cholesky": (
        dn.grad(lambda x: dn.sum(dn.linalg.cholesky(x))),
        [MATRIX],
    ),
    "lu of bf16": (dn.linalg.lu, [template(64, 64, dtype="bf16")]),
    "solve": (dn.linalg.solve, [MATRIX, template(64, 8)]),
    "solve, a stack": (dn.linalg.solve, [STACK, template(2, 3, 40)]),
    "determinant": (dn.linalg.determinant, [MATRIX]),
    "invert": (dn.linalg.invert, [MATRIX]),
    "qr": (dn.linalg.qr, [template(100, 64)]),
    "qr, complete": (lambda x: dn.linalg.qr(x, mode="complete"), [template(100, 64)]),
    "eigh": (dn.linalg.eigh, [MATRIX]),
    "eigh of c64, a stack": (dn.linalg.eigh, [template(2, 40, 40, dtype="c64")]),
    "svd": (dn.linalg.svd, [MATRIX]),
    "svd, reduced": (lambda x: dn.linalg.svd(x, full_matrices=False), [template(100, 64)]),
    "svd, large and wide": (lambda x: dn.linalg.svd(x, full_matrices=False), [template(80, 1100)]),
    "pinv": (dn.linalg.pinv, [template(100, 64)]),
    "matrix_rank": (dn.linalg.matrix_rank, [template(100, 64)]),
}
OTHERS = {
    "triangular_solve": (dn.linalg.triangular_solve, [MATRIX, template(64, 8)]),
    "dot": (dn.dot, [template(512, 512), template(512, 512)]),
    "dot of bf16": (dn.dot, [template(512, 512, dtype="bf16"), template(512, 512, dtype="bf16")]),
    "conv": (dn.conv, [template(8, 16, 32, 32), template(16, 16, 3, 3)]),
    "fft": (dn.fft, [template(16, 1024, dtype="c64")]),
    "sort": (dn.sort, [template(1 << 20)]),
    "argsort": (dn.argsort, [template(1 << 20)]),
    "top_k": (lambda x: dn.top_k(x, k=8), [template(8, 4096)]),
    "cumulative_sum": (dn.cumulative_sum, [template(1 << 20)]),
    "softmax": (lambda x: dn.exp(x) / dn.sum(dn.exp(x), axes=[-1], keep_axes=True), [MATRIX]),
}


def line(name: str, text: str) -> str:
    calls = Counter(re.findall(r'custom_call_target="([^"]+)"', text))
    calls += Counter(re.findall(r" (fft)[(]", text))
    listed = ", ".join(f"{count} {call}" for call, count in sorted(calls.items()))
    return f"{name}: {listed or 'none'}; {len(re.findall(r' while[(]', text))} loops\n"


def test_calls_of_libraries_are_listed(bless: bool):
    programs = FACTORIZATIONS | OTHERS
    for make in MODELS:
        model: Model = make()
        arguments = model.arguments(lambda array: dn.template(array.shape, array.dtype))
        programs[model.name] = (model.ours, list(arguments))
    lines = [line(name, hlo(*program, "after")) for name, program in programs.items()]
    found = HEAD + "\n" + "".join(lines)
    if bless:
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factorizations_are_calls_instead_of_loops(name: str):
    text = hlo(*FACTORIZATIONS[name], "before")
    assert re.search(r'custom_call_target="cusolver_', text)
    # Pivoted, the method has no function in the library.
    loops = len(re.findall(r" while[(]", text))
    assert loops == (2 if "cholesky" in name else 0)
    if loops:
        entry = text[text.index("\nENTRY ") :]
        assert " while(" not in entry
        assert " conditional(" in entry


def calls(text: str) -> list[tuple[str, ...]]:
    """Everything that XLA knows of each call of the solver, but for names and places."""
    found = []
    for call in re.findall(r"^.*custom_call_target=\"cu.*$", text, re.MULTILINE):
        results = re.search(r"= (.*) custom-call\(", call)
        parts = [
            re.search(pattern, call)
            for pattern in (
                r'custom_call_target="([^"]+)"',
                r"operand_layout_constraints=(\{.*?\}\})",
                r"output_to_operand_aliasing=(\{\{.*?\)\})",
                r"api_version=(\w+)",
                r"backend_config=(\{.*\})",
            )
        ]
        assert results
        found.append((results[1], *(part[1] if part else "" for part in parts)))
    return sorted(found)


# Ours, and JAX's.
PAIRS = {
    "cholesky": (
        dn.linalg.cholesky,
        lambda x: jax.lax.linalg.cholesky(x, symmetrize_input=False),
    ),
    "lu": (dn.linalg.lu, jax.lax.linalg.lu),
    "qr": (dn.linalg.qr, jax.numpy.linalg.qr),
    "qr, complete": (
        lambda x: dn.linalg.qr(x, mode="complete"),
        lambda x: jax.numpy.linalg.qr(x, mode="complete"),
    ),
    "eigh": (dn.linalg.eigh, jax.numpy.linalg.eigh),
    "svd": (dn.linalg.svd, jax.numpy.linalg.svd),
    "svd, reduced": (
        lambda x: dn.linalg.svd(x, full_matrices=False),
        lambda x: jax.numpy.linalg.svd(x, full_matrices=False),
    ),
}
SIZES = [(24, 24), (2, 3, 50, 50), (60, 40), (2, 30, 70), (1030, 40)]
TAKEN = [
    (name, sizes)
    for name in PAIRS
    for sizes in SIZES
    if sizes[-1] == sizes[-2] or name.startswith(("qr", "svd"))
]


@pytest.mark.parametrize(("name", "sizes"), TAKEN)
def test_calls_are_those_of_jax(name: str, sizes: tuple[int, ...]):
    struct = jax.ShapeDtypeStruct(sizes, np.float32)
    ours, theirs = PAIRS[name]
    lowered = jax.jit(theirs).trace(struct).lower(lowering_platforms=("cuda",))
    expected = calls(lowered.compiler_ir(dialect="hlo").as_hlo_text())
    assert expected
    assert calls(hlo(ours, [template(*sizes)], "before")) == expected


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_sorts_have_the_form_of_jax(dtype: str):
    """XLA gives only sorts of this form to the library CUB, where the device is present."""
    struct = jax.ShapeDtypeStruct((1 << 20,), dn.dtype(dtype).to_numpy())
    lowered = jax.jit(jax.numpy.sort).trace(struct).lower(lowering_platforms=("cuda",))
    expected = lowered.compiler_ir(dialect="hlo").as_hlo_text()
    found = hlo(dn.sort, [template(1 << 20, dtype=dtype)], "before")

    def comparison(text: str) -> list[tuple[str, ...]]:
        text = text.replace("type=TOTALORDER", "order=TOTAL")
        pattern = r" (compare|select)[(].*?[)](?:, direction=(\w+))?(?:, order=(\w+))?"
        constants = re.findall(r" (constant)[(](.*?)[)]", text)
        return sorted(re.findall(pattern, text)) + sorted(constants)

    assert ("compare", "LT", "TOTAL") in comparison(expected)
    assert comparison(found) == comparison(expected)


def test_an_executable_with_calls_says_where_it_runs(tmp_path: Path):
    made = dn.pjrt.compile(dn.linalg.cholesky, [MATRIX], target="h200")
    with pytest.raises(dn.CompileError, match=r"load: the executable is for h200 on cuda"):
        dn.pjrt.deserialize(made.serialize(), trust=True, client="host")
