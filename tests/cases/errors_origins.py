"""Programs whose errors while tracing name the line of each operand: rows of ``errors``."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    (
        "a sum of two that were made on other lines",
        "@dn.defn\ndef f(a, b):\n    c = a * 2\n    d = b[1:]\n    return c + d\nf(v, v)",
    ),
    (
        "a sum with an input",
        '@dn.defn\ndef f(a, b):\n    return dn.add(a, b)\nf(x, dn.iota((4,), names=["column"]))',
    ),
    (
        "a sum with a captured tensor",
        "@dn.defn\ndef f(a):\n    return i + a[:2]\nf(v)",
    ),
    (
        "names that differ on other lines",
        '@dn.defn\ndef f(a):\n    b = a.rename(["line"])\n    return b * a\nf(v.rename(["row"]))',
    ),
    (
        "one operand that was made elsewhere",
        "@dn.defn\ndef f(a):\n    b = a.sum(axes=0)\n    return b.sum(axes=1)\nf(x)",
    ),
    (
        "operands with names",
        "@dn.defn\ndef f(p, a, b):\n    c = -a\n    return dn.select(p, c, b)\nf(v > 1, v[:2], v)",
    ),
    (
        "a product of matrices",
        "@dn.defn\ndef f(a):\n    b = a * 2\n    return dn.exp(a) @ b\nf(x)",
    ),
    (
        "several operands",
        "@dn.defn\ndef f(a):\n    b = a[0]\n    return dn.concatenate([a, b, a])\nf(x)",
    ),
    (
        "a dtype that was made on another line",
        "@dn.defn\ndef f(a):\n    b = a * 1j\n    return b < a\nf(v)",
    ),
    (
        "what a loop carries",
        "@dn.defn\ndef f(a):\n    t = dn.fill(a, 0.0)\n    for row in a.T:\n        t = t + row"
        "\n    return t\nf(dn.iota((2, 3)) * 1.0)",
    ),
    (
        "in a function that is differentiated",
        "def loss(w, a):\n    return dn.sum(a @ w)\ndn.grad(loss)(v[:2], x)",
    ),
]
