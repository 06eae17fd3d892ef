"""Optimizers: composable transformations of gradients, as in optax.

A transformation has two functions: ``init(params)`` makes its state, and ``update(gradients, state,
params)`` returns updates and the next state. States are containers of tensors: they are donated,
saved and sharded like parameters. :func:`chain` puts transformations one after another;
:func:`adamw` and its like are chains that end with a learning rate.

>>> optimizer = dn.optim.adam(0.1)
>>> params = {"w": dn.tensor([1.0, -2.0])}
>>> state = optimizer.init(params)
>>> gradients = dn.grad(lambda p: dn.sum(p["w"] ** 2))(params)
>>> updates, state = optimizer.update(gradients, state, params)
>>> [round(x, 6) for x in dn.optim.apply_updates(params, updates)["w"].to_list()]
[0.9, -1.9]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from defn.optim import alias as _alias
from defn.optim import guard as _guard
from defn.optim import quasi_newton as _quasi_newton
from defn.optim import scaling as _scaling
from defn.optim import schedule as _schedule
from defn.optim import transformation as _transformation
from defn.optim.alias import *
from defn.optim.guard import *
from defn.optim.quasi_newton import *
from defn.optim.scaling import *
from defn.optim.schedule import *
from defn.optim.transformation import *

__all__: list[str] = []
__all__ += _alias.__all__
__all__ += _guard.__all__
__all__ += _quasi_newton.__all__
__all__ += _scaling.__all__
__all__ += _schedule.__all__
__all__ += _transformation.__all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.optim has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
