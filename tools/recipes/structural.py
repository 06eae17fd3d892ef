"""An op with attributes: ``mirror``, which reverses one axis."""

from __future__ import annotations

from recipes import COMPILER, YOU, Recipe, place

RECIPE = Recipe(
    "structural",
    "mirror",
    10,
    (
        place(
            "row",
            YOU,
            (
                "crates/core/src/op/mod.rs",
                "            /// The operands concatenated along an axis.\n",
                "            /// `x` in reverse order along an axis.\n"
                '            Mirror = "mirror" (x) {\n'
                "                /// The axis.\n"
                "                attribute axis (valid in x): Axis,\n"
                "            } => traits(Primitive::Movement, CostClass::Moves, "
                "GradientFlow::All);\n",
            ),
        ),
        place(
            "types",
            COMPILER,
            (
                "crates/core/src/infer/mod.rs",
                "        Op::Concatenate { axis } =>",
                "        Op::Mirror { axis } => one(shape::reverse(x(), &[*axis])?),\n",
            ),
        ),
        place(
            "gradient",
            COMPILER,
            (
                "crates/core/src/grad/mod.rs",
                "        Op::Concatenate { axis } =>",
                "        Op::Mirror { .. } => "
                "Ok(Vjp::one(site.graph.emit_one(op.clone(), &[first()])?)),\n",
            ),
            (
                "crates/core/src/jvp/mod.rs",
                "        Op::Pad { .. } | Op::Concatenate { .. } =>",
                "        Op::Mirror { .. } => same(site)?,\n",
            ),
            (
                "crates/core/src/sparsity/mod.rs",
                "            Op::Pad { config } =>",
                "            Op::Mirror { axis } => shape::reverse(self, &[*axis]),\n",
            ),
            (
                "crates/core/src/sparsity/known.rs",
                "        | Op::Reshape { .. }\n",
                "        | Op::Mirror { .. }\n",
            ),
        ),
        place(
            "builder",
            COMPILER,
            (
                "crates/core/src/builder/shape.rs",
                "    /// `x` in reverse order along some axes, or along all.\n",
                "    /// `x` in reverse order along an axis.\n"
                "    ///\n"
                "    /// # Errors\n"
                "    /// An axis that `x` does not have.\n"
                "    fn mirror(&mut self, x: impl Into<Arg<Self::V>>, axis: impl Into<AxisRef>) "
                "-> Result<Self::V> {\n"
                "        let x = self.operand(x)?;\n"
                '        let axis = self.ty(&x).shape.resolve("mirror", &axis.into())?;\n'
                "        self.emit_one(Op::Mirror { axis }, &[x])\n"
                "    }\n\n",
            ),
        ),
        place(
            "kernel",
            COMPILER,
            (
                "crates/cpu/src/backend.rs",
                "            Op::Reverse { axes } =>",
                "            Op::Mirror { axis } => run.reverse(&[*axis]),\n",
            ),
        ),
        place(
            "lowering",
            COMPILER,
            (
                "crates/pjrt/src/lower/mod.rs",
                "            Op::Concatenate { axis } =>",
                "            Op::Mirror { axis } => self.reverse(&x.values[0], &[*axis]),\n",
            ),
        ),
        place(
            "facade",
            "tests/test_catalogue.py",
            (
                "crates/core/src/functions/shape.rs",
                "            /// The elements in reverse order along axes.\n",
                "            /// The elements in reverse order along an axis.\n"
                "            ///\n"
                "            /// - Shape: unchanged; axis names are kept.\n"
                "            /// - Dtypes: any; unchanged.\n"
                "            /// - Gradient: `g`, reversed.\n"
                "            fn mirror(; axis: AxisRef);\n"
                '            errors "An axis that the tensor does not have (`Axis`).";\n'
                '            example { (x = s32[3] "1, 2, 3") x.mirror("0") == s32[3] "3, 2, 1" }\n'
                "\n",
            ),
        ),
        place(
            "Python function",
            "tests/test_catalogue.py",
            ("python/defn/ops/shape.py", '    "new_axis",\n', '    "mirror",\n'),
            (
                "python/defn/ops/shape.py",
                "@forwards(_core.new_axis)\n",
                "@forwards(_core.mirror)\n"
                "def mirror(tensor: TensorLike, axis: Axis) -> Tensor:\n"
                '    """Reverse the elements along an axis.\n\n'
                "    Shapes: unchanged; names are kept.\n"
                "    Dtypes: any; unchanged.\n"
                "    Grad: ``g`` reversed.\n"
                "    Raises: ``AxisError`` if the axis is out of range.\n\n"
                "    >>> dn.mirror(dn.tensor([1, 2, 3]), 0).to_list()\n"
                "    [3, 2, 1]\n"
                '    """\n'
                "    ...\n\n\n",
            ),
        ),
        place(
            "oracle",
            "tests/test_ops.py",
            (
                "python/defn/backends/numpy/shape.py",
                "    def reverse(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:\n",
                "    def mirror(self, out: Tensor, x: Tensor, axis: int) -> Any:\n"
                '        """``x`` reversed along an axis."""\n'
                "        return np.flip(x.data, axis)\n\n",
            ),
        ),
        place(
            "case",
            "tests/test_catalogue.py",
            (
                "tests/cases/shape.py",
                '    move("reverse", lambda x: x[::-1, ::-1], names=',
                '    move("mirror", lambda x: x[::-1], lambda f, x: f(x, 0)),\n',
            ),
        ),
    ),
)
