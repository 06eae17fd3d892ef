"""A function of other ops: ``root_mean_square`` over axes."""

from __future__ import annotations

from recipes import YOU, Recipe, place

RECIPE = Recipe(
    "composite",
    "root_mean_square",
    4,
    (
        place(
            "builder",
            YOU,
            (
                "crates/core/src/builder/reduce.rs",
                "    /// `sum(x * weights) / sum(weights)`, a float or complex.",
                "    /// The square root of the mean of the squares.\n"
                "    ///\n"
                "    /// # Errors\n"
                "    /// As [`BuildReduce::mean`].\n"
                "    fn root_mean_square(\n"
                "        &mut self,\n"
                "        x: impl Into<Arg<Self::V>>,\n"
                "        axes: impl Into<Axes>,\n"
                "        keep_axes: bool,\n"
                "    ) -> Result<Self::V> {\n"
                "        let x = self.operand(x)?;\n"
                "        let squares = self.multiply(&x, &x)?;\n"
                "        let mean = self.mean(squares, axes, keep_axes)?;\n"
                "        self.sqrt(mean)\n"
                "    }\n\n",
            ),
        ),
        place(
            "facade",
            "tests/test_catalogue.py",
            (
                "crates/core/src/functions/reduce.rs",
                "            /// The product of the elements over axes.\n",
                "            /// The square root of the mean of the squares over axes.\n"
                "            ///\n"
                "            /// - Shape: as [`mean`](Self::mean).\n"
                "            /// - Dtypes: as [`mean`](Self::mean).\n"
                "            /// - Gradient: through the definition.\n"
                "            fn root_mean_square(; axes: Axes, keep_axes: bool);\n"
                '            errors "As [`mean`](Self::mean).";\n'
                '            example { (x = f32[2] "1.0, 7.0") '
                'x.root_mean_square("Axes::All, false") == f32 "5.0" }\n'
                "\n",
            ),
        ),
        place(
            "Python function",
            "tests/test_catalogue.py",
            (
                "python/defn/ops/reduce.py",
                '    "standard_deviation",\n',
                '    "root_mean_square",\n',
            ),
            (
                "python/defn/ops/reduce.py",
                "@forwards(_core.product)\n",
                "@forwards(_core.root_mean_square)\n"
                "def root_mean_square(\n"
                "    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False\n"
                ") -> Tensor:\n"
                '    """The square root of the mean of the squares.\n\n'
                "    Shapes: as :func:`mean`.\n"
                "    Dtypes: as :func:`mean`.\n"
                "    Grad: through its definition.\n"
                "    Raises: the errors of :func:`mean`.\n\n"
                "    >>> float(dn.root_mean_square(dn.tensor([1.0, 7.0])))\n"
                "    5.0\n"
                '    """\n'
                "    ...\n\n\n",
            ),
        ),
        place(
            "case",
            "tests/test_catalogue.py",
            (
                "tests/cases/reduce.py",
                '    *rows("all", np.all,',
                "    *rows(\n"
                '        "root_mean_square",\n'
                "        floats(lambda x, **options: np.sqrt(np.mean(x * x, **options))),\n"
                '        dtypes=("f32", "f64"),\n'
                "        refusal=None,\n"
                "        draw=small,\n"
                '        out="sum float",\n'
                "        ulps=float_ulps(8),\n"
                "        scale=4.0,\n"
                "    ),\n",
            ),
        ),
    ),
)
