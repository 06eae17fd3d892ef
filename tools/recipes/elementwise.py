"""An element-wise op: ``softsign``, ``x / (1 + |x|)``."""

from __future__ import annotations

from recipes import COMPILER, YOU, Recipe, place

RECIPE = Recipe(
    "elementwise",
    "softsign",
    8,
    (
        place(
            "row",
            YOU,
            (
                "crates/core/src/op/elementwise.rs",
                "                /// Sine.\n",
                "                /// `x / (1 + |x|)`.\n"
                "                Softsign SOFTSIGN softsign: Real => Float, Cheap;\n",
            ),
        ),
        place(
            "gradient",
            COMPILER,
            (
                "crates/core/src/grad/elementwise.rs",
                "        UnaryOp::SIN => {\n",
                "        UnaryOp::SOFTSIGN => {\n"
                "            let y = site.output(0)?;\n"
                "            let size = site.graph.abs(y)?;\n"
                "            let rest = site.graph.subtract(1, size)?;\n"
                "            let slope = site.graph.multiply(rest, rest)?;\n"
                "            site.graph.multiply(g, slope)?\n"
                "        }\n",
            ),
        ),
        place(
            "kernel",
            COMPILER,
            (
                "crates/cpu/src/compiler/fuse/elements/unary.rs",
                "            UnaryOp::Function(op) => self.b.function(function_of(op), x),\n",
                "            UnaryOp::Function(FunctionOp::Softsign) => {\n"
                "                let (one, size) = (self.number(elem, 1), self.magnitude(x));\n"
                "                let size = self.b.add(one, size);\n"
                "                self.b.div(x, size)\n"
                "            }\n",
            ),
            (
                "crates/cpu/src/compiler/fuse/elements/unary.rs",
                "        FunctionOp::Sqrt | FunctionOp::Rsqrt => unreachable!",
                '        FunctionOp::Softsign => unreachable!("it is made of ops of the IR"),\n',
            ),
            (
                "crates/cpu/src/compiler/fuse/elements/complex.rs",
                "        FunctionOp::Erf | FunctionOp::Erfc | FunctionOp::ErfInv => unreachable!",
                '        FunctionOp::Softsign => unreachable!("{op:?} is of real numbers"),\n',
            ),
        ),
        place(
            "lowering",
            COMPILER,
            (
                "crates/pjrt/src/lower/functions.rs",
                '        FunctionOp::Sin => (Stable("sine"), Some(complex::sin)),\n',
                "        FunctionOp::Softsign => (Formula(|x| &x / (x.abs() + 1.0)), None),\n",
            ),
        ),
        place(
            "facade",
            COMPILER,
            (
                "crates/defn/src/ops/rows.rs",
                '    sin: "`g * cos(x)`"',
                '    softsign: "`g * (1 - |y|)^2`", '
                '{ (x = f32[2] "0.0, 1.0") x.softsign() == f32[2] "0.0, 0.5" }\n',
            ),
        ),
        place(
            "Python function",
            "tests/test_catalogue.py",
            ("python/defn/ops/elementwise_unary.py", '    "tan",\n', '    "softsign",\n'),
            (
                "python/defn/ops/elementwise_unary.py",
                "@quick\n@forwards(_core.sin)\n",
                "@quick\n"
                "@forwards(_core.softsign)\n"
                "def softsign(tensor: TensorLike) -> Tensor:\n"
                '    """``x / (1 + abs(x))``.\n\n'
                "    Shapes: unchanged; names are kept.\n"
                "    Dtypes: real; integers become f32.\n"
                "    Grad: ``g * (1 - abs(y)) ** 2``.\n"
                "    Raises: ``DTypeError`` for complex numbers.\n\n"
                "    >>> float(dn.softsign(1.0))\n"
                "    0.5\n"
                '    """\n'
                "    ...\n\n\n",
            ),
        ),
        place(
            "oracle",
            "tests/test_ops.py",
            (
                "python/defn/backends/numpy/elementwise.py",
                "    sin = _unary(np.sin)\n",
                "    softsign = _unary(lambda x: x / (1 + np.abs(x)))\n",
            ),
        ),
        place(
            "case",
            "tests/test_catalogue.py",
            (
                "tests/cases/elementwise.py",
                '    transcendental("sin", np.sin),\n',
                '    transcendental("softsign", lambda x: x / (1 + np.abs(x)), dtypes=REAL),\n',
            ),
        ),
    ),
)
