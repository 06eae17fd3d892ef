"""Errors of the functions of neural networks."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("an activation of complex numbers", "dn.nn.relu(c)"),
    ("an activation with a scale of zero", "dn.nn.celu(v, 0.0)"),
    ("an activation with a slope that is no number", "dn.nn.leaky_relu(v, 'steep')"),
    ("halves of an odd size", "dn.nn.glu(x[:, :1])"),
    ("halves along an axis that there is not", "dn.nn.glu(x, 2)"),
    ("a softmax of complex numbers", "dn.nn.softmax(c)"),
    ("a softmax along an axis twice", "dn.nn.log_softmax(x, axes=[0, 0])"),
    ("a softmax of elements that a longer mask selects", "dn.nn.softmax(v, where=x > 0)"),
    ("classes of floats", "dn.nn.one_hot(v, 3)"),
    ("a negative number of classes", "dn.nn.one_hot(i, -1)"),
    ("classes along an axis beyond the new one", "dn.nn.one_hot(i, 3, axis=3)"),
    ("a class that there is not", "dn.nn.cross_entropy(x, dn.tensor([0, 3]))"),
    ("a class below the first", "dn.nn.cross_entropy(x, dn.tensor([-1, 0]))"),
    ("a number of a class that there is not", "dn.jit(lambda t: dn.nn.cross_entropy(t, 3))(x)"),
    ("classes of another shape", "dn.nn.cross_entropy(x, dn.tensor([0, 1, 2, 0, 1]))"),
    ("more classes than examples", "dn.nn.cross_entropy(x[0], dn.tensor([0, 1]))"),
    ("truths as classes", "dn.nn.cross_entropy(x, x > 0)"),
    ("complex logits of classes", "dn.nn.cross_entropy(c, dn.tensor(0))"),
    ("probabilities of more examples", "dn.nn.cross_entropy(v, x)"),
    ("a class of none", "dn.nn.cross_entropy(v[:0], v[:0])"),
    ("a loss of complex numbers", "dn.nn.binary_cross_entropy(c, 1.0)"),
    ("an error of shapes that do not broadcast", "dn.nn.squared_error(x, x[:, :2])"),
    ("a loss whose line begins nowhere", "dn.nn.huber(v, v, delta=0.0)"),
    ("an angle between vectors of the norm zero", "dn.nn.cosine_similarity(v, v, eps=0.0)"),
    ("a divergence along an axis that there is not", "dn.nn.kl_divergence(v, v, axis=1)"),
    ("a function of neural networks with another library's name", "dn.nn.swish(v)"),
]
