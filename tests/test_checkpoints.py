"""Checkpoints: what stays, what is refused, damage, and runs that are killed while they save."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest

import defn as dn
from interruptions import interposed

X = dn.tensor([1.0, 2.0])


def saved(directory: pathlib.Path, *steps: int, **options: Any) -> None:
    for step in steps:
        dn.checkpoints.save(directory, step, {"x": X * step, "step": step}, **options)


def files(directory: pathlib.Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_the_last_ones_stay(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "runs" / "first"
    assert dn.checkpoints.steps(directory) == []
    assert dn.checkpoints.latest(directory) is None
    saved(directory, 0, 5, 100)
    assert dn.checkpoints.steps(directory) == [0, 5, 100]
    saved(directory, 101)
    assert dn.checkpoints.steps(directory) == [5, 100, 101]
    assert dn.checkpoints.latest(str(directory)) == 101
    assert files(directory) == [f"step_{step:010d}.defn" for step in (5, 100, 101)]
    saved(directory, 102, keep=1)
    assert dn.checkpoints.steps(directory) == [102]
    saved(directory, 10**10, 10**12, 10**12 + 1, keep=None)
    assert dn.checkpoints.steps(directory) == [102, 10**10, 10**12, 10**12 + 1]
    step, state = dn.checkpoints.load(directory)
    assert (step, state["step"]) == (10**12 + 1, 10**12 + 1)
    step, state = dn.checkpoints.load(directory, step=102, like={"x": X, "step": 0})
    assert (step, state["step"], state["x"].to_list()) == (102, 102, [102.0, 204.0])


def test_steps_may_be_scalars_of_integers(tmp_path: pathlib.Path) -> None:
    dn.checkpoints.save(tmp_path, dn.tensor(3), X)
    assert dn.checkpoints.load(tmp_path, step=dn.tensor(3))[0] == 3


def test_other_files_are_ignored(tmp_path: pathlib.Path) -> None:
    others = [
        "step_1.defn",
        "step_00000000001.defn",
        "step_0000000002.npz",
        "notes",
        ".x.defn.1.tmp",
    ]
    for name in others:
        (tmp_path / name).write_text("other")
    saved(tmp_path, 1, 2, 3, 4)
    assert dn.checkpoints.steps(tmp_path) == [2, 3, 4]
    assert set(others) < set(files(tmp_path))


def test_the_same_step_is_replaced_and_later_ones_are_refused(tmp_path: pathlib.Path) -> None:
    saved(tmp_path, 1, 2, 3)
    dn.checkpoints.save(tmp_path, 3, "again")
    assert dn.checkpoints.load(tmp_path) == (3, "again")
    with pytest.raises(dn.OptionError, match="later step 3, steps must go up"):
        saved(tmp_path, 2)
    assert dn.checkpoints.load(tmp_path) == (3, "again")
    saved(tmp_path, 2, overwrite=True)
    assert dn.checkpoints.steps(tmp_path) == [1, 2]
    assert dn.checkpoints.load(tmp_path)[1]["step"] == 2


def test_a_state_that_cannot_be_stored_changes_nothing(tmp_path: pathlib.Path) -> None:
    saved(tmp_path, 1, 2, 3)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    for step in (3, 4):
        with pytest.raises(dn.ContainerError):
            dn.checkpoints.save(tmp_path, step, {"x": object()}, overwrite=True)
    with pytest.raises(dn.TraceError):
        dn.jit(lambda x: dn.checkpoints.save(tmp_path, 4, x))(X)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_what_is_missing_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^load: .* has no checkpoint\n  at "):
        dn.checkpoints.load(tmp_path)
    saved(tmp_path, 3, 5)
    message = r"has no checkpoint of step 4, it has those of steps 3, 5"
    with pytest.raises(FileNotFoundError, match=message):
        dn.checkpoints.load(tmp_path, step=4)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        dn.checkpoints.steps(tmp_path / "file")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: dn.checkpoints.save(d, -1, X), "save: step is -1"),
        (lambda d: dn.checkpoints.save(d, True, X), "save: step is True"),
        (lambda d: dn.checkpoints.save(d, 1.0, X), "save: step is 1.0"),
        (lambda d: dn.checkpoints.save(d, 1, X, keep=0), "save: keep is 0"),
        (lambda d: dn.checkpoints.save(d, 1, X, keep=True), "save: keep is True"),
        (lambda d: dn.checkpoints.save(d, 1, X, last=3), 'save: unknown option "last"'),
        (lambda d: dn.checkpoints.load(d, step="1"), "load: step is '1'"),
        (lambda d: dn.checkpoints.load(d, damaged="warn"), "load: damaged is 'warn'"),
        (lambda d: dn.checkpoints.load(d, step=1, damaged="skip"), 'load: damaged is "skip" for'),
    ],
)
def test_options_that_are_wrong(call: Any, message: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(dn.OptionError, match=f"^{re.escape(message)}") as caught:
        call(tmp_path)
    assert __file__ in str(caught.value)
    assert files(tmp_path) == []


def test_a_state_of_another_structure(tmp_path: pathlib.Path) -> None:
    saved(tmp_path, 1)
    for damaged in ("error", "skip"):
        with pytest.raises(dn.ContainerError, match=r'step_0000000001.defn, content\["x"\] is f32'):
            dn.checkpoints.load(tmp_path, like={"x": X[0], "step": 0}, damaged=damaged)


# Damage.


def test_damage_is_named_and_skipped_only_when_asked(tmp_path: pathlib.Path) -> None:
    saved(tmp_path, 1, 2, 3)
    paths = [tmp_path / name for name in files(tmp_path)]
    data = paths[2].read_bytes()
    paths[2].write_bytes(data[: len(data) // 2])
    place = f"load: in {paths[2]}, "
    with pytest.raises(dn.FormatError, match=re.escape(place)) as caught:
        dn.checkpoints.load(tmp_path)
    assert 'damaged="skip" takes the one before, of step 2' in str(caught.value)
    assert str(caught.value).count(__file__) == 1
    with pytest.warns(RuntimeWarning, match=re.escape(place)) as warned:
        step, state = dn.checkpoints.load(tmp_path, damaged="skip")
    assert (step, state["step"]) == (2, 2)
    assert [str(one.message).endswith("; step 2 is taken") for one in warned] == [True]
    assert warned[0].filename == __file__
    # Two of them.
    paths[1].write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="step 1 is taken") as warned:
        assert dn.checkpoints.load(tmp_path, damaged="skip")[0] == 1
    assert len(warned) == 2
    # The run goes on, and comes to the damaged steps.
    saved(tmp_path, 2, overwrite=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dn.checkpoints.load(tmp_path, damaged="skip")[0] == 2
    for path in (paths[0], paths[1]):
        path.write_bytes(b"none")
    for damaged in ("error", "skip"):
        with pytest.raises(dn.FormatError, match=re.escape(str(paths[1]))):
            dn.checkpoints.load(tmp_path, damaged=damaged)
    with pytest.raises(dn.FormatError) as caught:
        dn.checkpoints.load(tmp_path, step=1)
    assert "damaged=" not in str(caught.value)


# Interruptions.


def test_threads_that_save_to_one_directory(tmp_path: pathlib.Path) -> None:
    errors: list[BaseException] = []

    def save(first: int) -> None:
        try:
            for step in range(first, 40, 4):
                saved(tmp_path, step, keep=None, overwrite=False)
        except dn.OptionError:
            # Another thread was ahead.
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for step in dn.checkpoints.steps(tmp_path):
        assert dn.checkpoints.load(tmp_path, step=step)[1]["step"] == step


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes by fork")
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_kill_at_any_call_leaves_whole_checkpoints(
    overwrite: bool, tmp_path: pathlib.Path
) -> None:
    """A save that replaces, removes old checkpoints, later ones and what a save left over."""
    step = 4 if overwrite else 7

    def prepared(name: str) -> pathlib.Path:
        directory = tmp_path / name
        saved(directory, 1, 2, 3, 4, 5, 6, keep=None)
        (directory / f".step_0000000006.defn.{'0' * 16}.tmp").write_bytes(b"part")
        return directory

    directory = prepared("whole")
    with interposed(-1, None) as steps:
        saved(directory, step, keep=2, overwrite=overwrite)
    names = files(directory)
    assert names == [f"step_{one:010d}.defn" for one in (step - 1, step)]
    assert steps.calls.count("unlink") == (5 if overwrite else 6)
    for stop in range(len(steps.calls)):
        directory = prepared(f"stop{stop}")
        state = {"x": X * step, "step": step}
        child = os.fork()
        if child == 0:
            with interposed(stop, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                dn.checkpoints.save(directory, step, state, keep=2, overwrite=overwrite)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        last = dn.checkpoints.latest(directory)
        assert last in ((4, 5, 6) if overwrite else (6, 7))
        for one in dn.checkpoints.steps(directory):
            assert dn.checkpoints.load(directory, step=one)[1]["step"] == one
        saved(directory, step, keep=2, overwrite=overwrite)
        assert files(directory) == names


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes by fork")
def test_a_run_that_is_killed_again_and_again_has_the_same_bits(tmp_path: pathlib.Path) -> None:
    root = pathlib.Path(__file__).parent
    run = subprocess.run(
        [sys.executable, root / "interrupted_run.py", tmp_path, "50", "1"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert sum(found["kills"].values()) >= 50
    assert min(found["kills"].values()) > 0
    # Some kills came while a file was written.
    assert found["leftovers"] > 0
    assert found["same"]
    assert all(found["same"])
