"""Forward mode beside JAX, and the time and memory of gradients of long loops and deep networks.

python benches/derivatives.py [products | loops | checkpoints]

`products` times `jvp` beside the function and `hvp` beside the gradient, in turns with JAX in one
process. `loops` runs each loop, and `checkpoints` each policy of a network of checkpointed blocks,
in a process of its own, for its peak memory.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import each, finish, turns

# The seconds for the turns of one model.
BUDGET = 20.0
TRIPS = (1_000, 10_000, 100_000, 1_000_000)
SNAPSHOTS = 20
# The states of the loops: this many angles of a chain of pendulums.
ANGLES = 64
# The residual blocks of a network, their width, and the inputs of a batch.
BLOCKS, WIDTH, BATCH = 24, 512, 4096
# What gradients of checkpointed blocks keep; without a policy, blocks are not checkpointed.
POLICIES = {"no checkpoint": None, "None": None, '["hidden"]': ["hidden"], '"dots"': "dots"}


def perceptron() -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """A loss of three layers of 512, for 256 inputs."""
    import jax.numpy as jnp

    import defn as dn

    rng = np.random.default_rng(0)
    params = [
        {
            "w": rng.standard_normal((512, 512), dtype=np.float32) / 23,
            "b": np.zeros(512, np.float32),
        }
        for _ in range(3)
    ]
    x = rng.standard_normal((256, 512), dtype=np.float32)
    ours_x, theirs_x = dn.tensor(x), jnp.asarray(x)

    def ours(params):
        y = ours_x
        for layer in params:
            y = dn.tanh(y @ layer["w"] + layer["b"])
        return dn.mean(y**2)

    def theirs(params):
        y = theirs_x
        for layer in params:
            y = jnp.tanh(y @ layer["w"] + layer["b"])
        return jnp.mean(y**2)

    return ours, theirs, params


def transformer() -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """The loss of one block of a transformer, for 4 sequences of 128 vectors of 256."""
    import jax.numpy as jnp
    import models

    import defn as dn

    model = models.transformer(batch=4, length=128, width=256)
    batch = {name: (dn.tensor(x), jnp.asarray(x)) for name, x in model.batch.items()}
    ours = {name: pair[0] for name, pair in batch.items()}
    theirs = {name: pair[1] for name, pair in batch.items()}
    return (
        lambda params: models.our_transformer(params, ours),
        lambda params: models.their_transformer(params, theirs),
        model.params,
    )


def finished(call: Callable[..., Any], *args: Any) -> Any:
    """The results of a call of JAX."""
    return finish(call(*args))


def products() -> None:
    """Prints the least times, in turns with JAX."""
    import jax
    import jax.numpy as jnp

    import defn as dn

    print(
        "| model | jvp / function | hvp / gradient | JAX: jvp / function | hvp / gradient |", end=""
    )
    print(" time of JAX: jvp | hvp |")
    print("|---|" + "---:|" * 6)
    rng = np.random.default_rng(1)
    for model in (perceptron, transformer):
        ours, theirs, params = model()
        along = each(params, lambda x: rng.standard_normal(x.shape, dtype=np.float32))
        own, own_along = each(params, dn.tensor), each(along, dn.tensor)
        other, other_along = each(params, jnp.asarray), each(along, jnp.asarray)

        our_calls = [
            dn.jit(lambda p, t, f=ours: f(p)),
            dn.jit(lambda p, t, f=ours: dn.jvp(f, (p,), (t,))),
            dn.jit(lambda p, t, f=ours: dn.grad(f)(p)),
            dn.jit(lambda p, t, f=ours: dn.hvp(f, (p,), (t,))),
        ]
        their_calls = [
            jax.jit(lambda p, t, f=theirs: f(p)),
            jax.jit(lambda p, t, f=theirs: jax.jvp(f, (p,), (t,))),
            jax.jit(lambda p, t, f=theirs: jax.grad(f)(p)),
            jax.jit(lambda p, t, f=theirs: jax.jvp(jax.grad(f), (p,), (t,))),
        ]
        calls = [functools.partial(f, own, own_along) for f in our_calls]
        calls += [functools.partial(finished, f, other, other_along) for f in their_calls]
        f, jvp, grad, hvp, *jax_ = (min(taken) for taken in turns(calls, BUDGET))
        jf, jjvp, jgrad, jhvp = jax_
        ratios = (jvp / f, hvp / grad, jjvp / jf, jhvp / jgrad, jjvp / jvp, jhvp / hvp)
        print(f"| {model.__name__} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")


def peak() -> float:
    """The most memory that this process had, in MB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1e3


def loop(kind: str, trips: int, snapshots: int | None) -> tuple[float, float, float, float]:
    """Seconds and MB of a loop: the loop, then its gradient."""
    import defn as dn

    def step(x, _):
        return x + 0.001 * (dn.sin(dn.roll(x, 1)) - dn.sin(x) - 0.1 * x)

    def known(x, _):
        return dn.sum(dn.for_(x, range(trips), step, snapshots=snapshots) ** 2)

    def unknown(x, limit):
        def body(state):
            return step(*state), state[1] + 1

        last, _ = dn.while_((x, 0), lambda s: s[1] < limit, body, snapshots=snapshots)
        return dn.sum(last**2)

    fun = known if kind == "for_" else unknown
    x, limit = dn.tensor(np.linspace(0.0, 3.0, ANGLES)), dn.tensor(trips)

    results = []
    for call in (dn.jit(fun), dn.jit(dn.grad(fun))):
        before = peak()
        (taken,) = turns([lambda call=call: call(x, limit)], budget=2.0, least=3)
        results += [min(taken), peak() - before]
    return tuple(results)


def loops() -> None:
    """Prints a row for each loop, each from a process of its own."""
    print("| trips | loop | snapshots | loop, ms | gradient, ms | ratio | memory, MB |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for trips, kind, snapshots in rows():
        arguments = [kind, str(trips), str(snapshots or "")]
        command = [sys.executable, __file__, "loop", *arguments]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True)
        forward, _, gradient, memory = (float(word) for word in done.stdout.split())
        times = f"{1e3 * forward:.2f} | {1e3 * gradient:.2f} | {gradient / forward:.2f}"
        print(f"| {trips:,} | `{kind}` | {snapshots or 'default'} | {times} | {memory:.0f} |")


def rows() -> Iterator[tuple[int, str, int | None]]:
    """Trips, the loop, and its snapshots."""
    for trips in TRIPS:
        for kind in ("for_", "while_"):
            for snapshots in (None, SNAPSHOTS):
                yield trips, kind, snapshots


def network(library: str, policy: str) -> tuple[float, float]:
    """Seconds and MB of the gradient of a network of blocks, in f32."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((BLOCKS, 2, WIDTH, WIDTH), dtype=np.float32) / 23
    inputs = rng.standard_normal((BATCH, WIDTH), dtype=np.float32)
    if library == "defn":
        import defn as dn

        xp, mark, jit, grad, tensor = dn, dn.mark, dn.jit, dn.grad, dn.tensor
        checkpoint = functools.partial(dn.checkpoint, policy=POLICIES[policy])
    else:
        import jax
        from jax.ad_checkpoint import checkpoint_name

        xp, mark, jit, grad, tensor = jax.numpy, checkpoint_name, jax.jit, jax.grad, jax.numpy.array
        policies = jax.checkpoint_policies
        kept = {
            '["hidden"]': policies.save_only_these_names("hidden"),
            '"dots"': policies.checkpoint_dots,
        }
        checkpoint = functools.partial(jax.checkpoint, policy=kept.get(policy))

    def block(x, w):
        hidden = mark(xp.tanh(x @ w[0]), "hidden")
        return xp.sin(xp.exp(-hidden * hidden) @ w[1]) + x

    of_block = block if policy == "no checkpoint" else checkpoint(block)

    def loss(w, x):
        for layer in range(BLOCKS):
            x = of_block(x, w[layer])
        return xp.mean(x**2)

    gradient, w, x = jit(grad(loss)), tensor(weights), tensor(inputs)
    before = peak()
    (taken,) = turns([lambda: finished(gradient, w, x)], budget=8.0, least=3)
    return min(taken), peak() - before


def checkpoints() -> None:
    """Prints a row for each policy, each from a process of its own."""
    print("| policy | s | memory, MB | JAX: s | memory, MB |")
    print("|---|---:|---:|---:|---:|")
    for policy in POLICIES:
        cells = [f"`{policy}`"]
        for library in ("defn", "jax"):
            command = [sys.executable, __file__, "network", library, policy]
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True)
            seconds, memory = (float(word) for word in done.stdout.split())
            cells += [f"{seconds:.2f}", f"{memory:.0f}"]
        print("| " + " | ".join(cells) + " |")


def main(arguments: list[str]) -> None:
    """Runs the parts that are named, or all."""
    if arguments[:1] == ["loop"]:
        kind, trips, snapshots = arguments[1:]
        print(*loop(kind, int(trips), int(snapshots) if snapshots else None))
        return
    if arguments[:1] == ["network"]:
        library, policy = arguments[1:]
        print(*network(library, policy))
        return
    parts = {"products": products, "loops": loops, "checkpoints": checkpoints}
    for name in arguments or parts:
        parts[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
