"""Functions of neural networks: activations, normalizations and losses.

They have no state: what a layer learns is an argument, and a model is a function of its parameters.
Floats keep their dtype, and those of 8 and 16 bits are computed in f32. Values and derivatives are
finite for all finite operands.

>>> w = dn.tensor([[1.0, -1.0], [0.5, 2.0]])
>>> dn.nn.relu(dn.tensor([1.0, 2.0]) @ w).to_list()
[2.0, 3.0]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from defn.nn import activation as _activation
from defn.nn import attention as _attention
from defn.nn import cell as _cell
from defn.nn import convolution as _convolution
from defn.nn import initial as _initial
from defn.nn import layer as _layer
from defn.nn import loss as _loss
from defn.nn import normalize as _normalize
from defn.nn import softmax as _softmax
from defn.nn.activation import *
from defn.nn.attention import *
from defn.nn.cell import *
from defn.nn.convolution import *
from defn.nn.initial import *
from defn.nn.layer import *
from defn.nn.loss import *
from defn.nn.normalize import *
from defn.nn.softmax import *

__all__: list[str] = []
__all__ += _activation.__all__
__all__ += _attention.__all__
__all__ += _cell.__all__
__all__ += _convolution.__all__
__all__ += _initial.__all__
__all__ += _layer.__all__
__all__ += _loss.__all__
__all__ += _normalize.__all__
__all__ += _softmax.__all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.nn has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
