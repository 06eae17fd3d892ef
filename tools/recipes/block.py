"""A block, which runs by its definition: ``softplus``, ``log(1 + exp(x))``."""

from __future__ import annotations

from recipes import COMPILER, YOU, Recipe, place

RECIPE = Recipe(
    "block",
    "softplus",
    7,
    (
        place(
            "row",
            YOU,
            (
                "crates/core/src/op/block.rs",
                "            /// The angle of a complex number.\n",
                "            /// `log(1 + exp(x))`.\n"
                '            Softplus = "softplus" (x) => CompositeTraits {\n'
                "                element_wise: true, operand_work: 0, result_work: 2, "
                "vectors: Vectors::Leading,\n"
                "            };\n",
            ),
        ),
        place(
            "definition",
            COMPILER,
            (
                "crates/core/src/compose/block.rs",
                "        CompositeBlock::Phase => {\n",
                "        CompositeBlock::Softplus => {\n"
                "            let exp = b.exp(&args[0])?;\n"
                "            b.log1p(exp)\n"
                "        }\n",
            ),
        ),
        place(
            "builder",
            COMPILER,
            (
                "crates/core/src/builder/elementwise.rs",
                "    /// The angle of a complex number; for a real number 0 or pi.\n",
                "    /// `log(1 + exp(x))`.\n"
                "    ///\n"
                "    /// # Errors\n"
                "    /// As [`Builder::emit`].\n"
                "    fn softplus(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {\n"
                "        let x = self.operand(x)?;\n"
                "        self.emit_one("
                "Op::Block(Block::Composite(CompositeBlock::Softplus)), &[x])\n"
                "    }\n\n",
            ),
        ),
        place(
            "facade",
            "tests/test_catalogue.py",
            (
                "crates/core/src/functions/elementwise.rs",
                "            /// The angle of a complex number, `atan2(imag, real)`.\n",
                "            /// `log(1 + exp(x))`.\n"
                "            ///\n"
                "            /// - Shape: unchanged; axis names are kept.\n"
                "            /// - Dtypes: any; integers and bools become f32.\n"
                "            /// - Gradient: through the definition.\n"
                "            fn softplus(;);\n"
                "            errors no_own_errors!();\n"
                '            example { (x = f32[1] "f32::NEG_INFINITY") x.softplus() '
                '== f32[1] "0.0" }\n'
                "\n",
            ),
        ),
        place(
            "Python function",
            "tests/test_catalogue.py",
            (
                "python/defn/ops/elementwise_unary.py",
                '    "tan",\n',
                '    "softplus",\n',
            ),
            (
                "python/defn/ops/elementwise_unary.py",
                "@quick\n@forwards(_core.sin)\n",
                "@forwards(_core.softplus)\n"
                "def softplus(tensor: TensorLike) -> Tensor:\n"
                '    """``log(1 + exp(x))``.\n\n'
                "    Shapes: unchanged; names are kept.\n"
                "    Dtypes: any; integers become f32.\n"
                "    Grad: through its definition.\n"
                "    Raises: no specific errors.\n\n"
                '    >>> float(dn.softplus(-float("inf")))\n'
                "    0.0\n"
                '    """\n'
                "    ...\n\n\n",
            ),
        ),
        place(
            "tag",
            "tests/test_catalogue.py",
            ("python/defn/blocks.py", '    "Solve",\n', '    "Softplus",\n'),
            (
                "python/defn/blocks.py",
                "@dataclass(frozen=True)\nclass Phase:\n",
                '@dataclass(frozen=True)\nclass Softplus:\n    """``log(1 + exp(x))``."""\n\n\n',
            ),
        ),
        place(
            "case",
            "tests/test_catalogue.py",
            (
                "tests/cases/elementwise.py",
                '    transcendental("sin", np.sin),\n',
                "    transcendental(\n"
                '        "softplus", lambda x: np.log1p(np.exp(x)), ulps=float_ulps(8, other=8)\n'
                "    ),\n",
            ),
        ),
    ),
)
