"""The warning about too many compilations, and the log of compilations."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from typing import Any

import pytest

import defn as dn

FIRST = "nothing was compiled before"


def test_a_storm_warns_once_at_the_users_line() -> None:
    f = dn.jit(lambda x: x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in range(1, 10):
            f(dn.broadcast(1.0, (size,)))
        assert caught == [], "eight times may be meant"
        for size in range(10, 30):
            f(dn.broadcast(1.0, (size,)))
        for n in range(30):
            f(str(n))
    (warning,) = caught
    assert warning.category is dn.RecompileWarning
    assert warning.filename == __file__
    assert str(warning.message) == (
        "jit: test_a_storm_warns_once_at_the_users_line.<locals>.<lambda> was compiled 9 times "
        "because of the shape of x, last when the shape of x changed from f32[9] to f32[10]; "
        "pad it to a few shapes before the call"
    )


def test_a_storm_of_functions_made_anew() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(20):
            dn.jit(lambda x, n=n: x * n)(1.0)
    (warning,) = caught
    assert "because of the value of n's default, last when the value of n's default changed" in str(
        warning.message
    )
    assert str(warning.message).endswith(
        "pass a value that changes as an input, which is no part of the signature"
    )


def test_a_storm_that_is_an_error() -> None:
    f = dn.jit(lambda x: x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dn.RecompileWarning)
        for size in range(1, 10):
            f(dn.broadcast(1.0, (size,)))
        with pytest.raises(dn.RecompileWarning, match="compiled 9 times"):
            f(dn.broadcast(1.0, (10,)))
        assert f(dn.broadcast(1.0, (10,))).shape == (10,)


def test_many_reasons_are_no_storm() -> None:
    f = dn.jit(lambda **options: 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dn.RecompileWarning)
        for n in range(20):
            f(**{f"option_{n}": n})


def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    f = dn.jit(lambda x: x)
    f(1.0)
    assert caplog.records == []
    with dn.options(log_compiles=True):
        f(2.0)
        f(1)
    (record,) = caplog.records
    assert (record.name, record.levelno, record.pathname) == ("defn", logging.INFO, __file__)
    text, place = record.getMessage().splitlines()
    assert text.startswith("test_the_log.<locals>.<lambda> was compiled in ")
    assert text.endswith(" ms: the dtype of x changed from f32 to s32")
    assert place == f"  at {__file__}:{record.lineno}"


@pytest.mark.parametrize("level", [logging.WARNING, logging.CRITICAL])
def test_the_logger_itself_can_be_silenced(caplog: pytest.LogCaptureFixture, level: int) -> None:
    with dn.options(log_compiles=True), caplog.at_level(level, logger="defn"):
        dn.jit(lambda x: x)(1.0)
    assert caplog.records == []


PROGRAM = "import defn as dn\nf = dn.jit(lambda x: x)\nf(1.0)\nf(dn.tensor([1, 2]))\nf(2.0)\n"


@pytest.mark.parametrize("value", ["compiles", ""])
def test_the_log_from_the_environment(value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"DEFN_LOG": value, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    if value == "":
        assert lines == []
        return
    assert [line.rsplit(" ms: ", 1)[-1] for line in lines] == [
        FIRST,
        "  at <string>:3",
        "x changed from a number (f32) to s32[2]",
        "  at <string>:4",
    ]
    assert lines[0].startswith("defn: <lambda> was compiled in ")


def test_an_unknown_log_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"DEFN_LOG": "everything", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert 'options: DEFN_LOG is "everything", it must be "compiles" or not set' in done.stderr


@pytest.mark.parametrize("value", [1, "yes", None])
def test_log_compiles_is_a_truth(value: Any) -> None:
    with pytest.raises(dn.OptionError, match=r"log_compiles is .*, it must be True or False"):
        dn.default_options(log_compiles=value)
