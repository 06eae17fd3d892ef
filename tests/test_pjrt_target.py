"""Training steps compiled for an H200, on a machine that need not have one.

`./dev test gpu-compile` installs what this needs and runs it; other runs leave it out, since the
packages are large.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import defn as dn

sys.path.append(str(Path(__file__).parents[1] / "benches"))

from models import MODELS, Model

PLUGIN = Path(os.environ["DEFN_CUDA_PACKAGES"]) / "jax_plugins/xla_cuda13/xla_cuda_plugin.so"


@pytest.fixture(scope="module", autouse=True)
def cuda() -> None:
    dn.pjrt.client("cuda", plugin=PLUGIN)


def compiled(model: Model, **options: object):
    arguments = model.arguments(lambda array: dn.template(array.shape, array.dtype))
    return dn.compile(model.ours, arguments, compiler="pjrt", target="h200", **options)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_training_steps_compile_for_an_h200(make, tmp_path: Path):
    model = make()
    step = compiled(model, donate=("params", "momentum"))
    path = tmp_path / f"{model.name}.executable"
    step.save(path)
    data = path.read_bytes()
    assert b"sm_90" in data
    assert data.count(b".entry") + data.count(b"\x7fELF") > 0, "it holds kernels"
    # Without such a device the error names both devices.
    with pytest.raises(dn.CompileError, match=r"load: the executable is for h200 on cuda .*is cpu"):
        dn.pjrt.load(path, trust=True, client="host")


def test_it_runs_where_the_device_is():
    model = MODELS[0]()
    step = compiled(model)
    arguments = model.arguments(dn.tensor)
    if any(device.client == "cuda" for device in dn.devices()):
        loss = step(*arguments)[2]
        expected = dn.jit(model.ours, compiler="evaluator")(*arguments)[2]
        np.testing.assert_allclose(float(loss), float(expected), rtol=1e-3)
        return
    with pytest.raises(dn.CompileError, match=r"run: the executable is for h200 on cuda .*is cpu"):
        step(*arguments)


def test_flags_reach_the_compiler():
    add = [dn.template((8,), "f32")] * 2
    with pytest.raises(dn.OptionError, match="no_such_flag"):
        dn.compile(dn.add, add, compiler="pjrt", target="h200", xla_gpu_no_such_flag=True)
    made = dn.pjrt.compile(dn.add, add, target="h200", xla_gpu_autotune_level=0)
    assert b"sm_90" in made.serialize()


def test_values_kept_on_the_host_are_copied_there() -> None:
    def block(x, w):
        hidden = dn.mark(dn.tanh(x @ w), "hidden")
        return dn.sin(dn.exp(hidden) @ w) + x

    def copies(memory: str) -> int:
        of_block = dn.checkpoint(block, policy={"hidden": memory})

        def loss(w, x):
            return dn.sum(of_block(of_block(x, w), w) ** 2)

        arguments = dn.template((512, 512), "f32"), dn.template((65_536, 512), "f32")
        gradient = dn.compile(dn.grad(loss), arguments, compiler="pjrt", target="h200")
        return gradient.serialize().count(b"copy-start")

    assert copies("device") == 0 < copies("host")
