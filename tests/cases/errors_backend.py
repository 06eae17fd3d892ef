"""Wrong programs with backends: rows of ``errors``."""

from __future__ import annotations

CLASS = """\
class Own(dn.Backend):
    def from_binary(self, out, data):
        return np.frombuffer(data, out.dtype.to_numpy()).reshape(out.shape)
    def to_binary(self, x, limit):
        return b""
    def add(self, out, a, b):
        return None
    def subtract(self, out, a, b):
        return np.zeros(7)
    def block(self, tag, out, args, fun):
        return out
class Other(Own):
    pass
o = dn.tensor([1.0, 2.0], backend=Own())
"""

ROWS: list[tuple[str, str]] = [
    ("operands on two backends", CLASS + "o + dn.tensor([1.0, 2.0], backend=Other())"),
    ("a backend without a callback", CLASS + "dn.sin(o)"),
    ("a callback that gives nothing", CLASS + "o + o"),
    ("a callback that gives another shape", CLASS + "o - o"),
    ("a callback that gives a template", CLASS + "dn.logsumexp(o)"),
    ("a callback that gives too few bytes", CLASS + "o.to_list()"),
    ("an option that a backend does not take", CLASS + "Own(device=1)"),
    ("a fallback that is no place", CLASS + 'Own(fallback="device")'),
    (
        "a fallback in a class that is no place",
        CLASS + 'Own.fallback = "device"\ndn.sin(o)',
    ),
    ("a backend that is none", "dn.tensor(1, backend=3)"),
    ("a backend that is unknown", 'dn.tensor(1, backend="tpu")'),
    ("the data of a traced tensor", "dn.jit(lambda x: x.data)(v)"),
    ("the data of a template", 'dn.template((2,), "f32").data'),
]
