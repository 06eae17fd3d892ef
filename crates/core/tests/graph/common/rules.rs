//! Random rules of custom derivatives.

use defn_core::dtype::DType;
use defn_core::op::{CustomGradOp, CustomRules, Op};
use defn_core::shape::TensorType;

use super::Random;

impl Random {
    /// A custom derivative, with rules of any mode, for values, inputs and captures of these types.
    pub(super) fn custom_grad(&mut self, [values, inputs, captures]: [&[TensorType]; 3], depth: usize) -> Op {
        // Rules take and give floats without names.
        let floats = |types: &[TensorType], least: DType| -> Vec<TensorType> {
            let float = |ty: &TensorType| least.merge(ty.dtype.to_float());
            types.iter().map(|ty| TensorType { dtype: float(ty), shape: ty.shape.without_names() }).collect()
        };
        let (cotangents, tangents) = (floats(values, DType::F32), floats(inputs, DType::Bool));
        let mut rule = |from: Vec<TensorType>, to: &[TensorType]| {
            self.region(from, captures.to_vec(), depth, Some(to)).into()
        };
        let reverse = rule(cotangents, inputs);
        let forward = rule(tangents, values);
        let rules = match self.below(3) {
            0 => CustomRules::Forward(forward),
            1 => CustomRules::Both { reverse, forward },
            _ => CustomRules::Reverse(reverse),
        };
        Op::CustomGrad(CustomGradOp { values: values.len(), inputs: inputs.len(), rules })
    }
}
