//! Random rules of custom derivatives.

use defn_core::dtype::DType;
use defn_core::graph::Values;
use defn_core::op::{
    CustomGradOp, CustomRules, HookOp, ImplicitOp, LinearMethod, LinearSolver, MemorySpace, Op,
    RuntimeCallOp, Tolerance,
};
use defn_core::shape::TensorType;

use super::Random;

impl Random {
    /// An op that passes operands on, or to the host.
    pub(super) fn passed(&mut self, one: Values, two: Values) -> (Op, Values) {
        match self.below(6) {
            0 => (Op::StopGrad, one),
            1 => (Op::Mark { name: self.name().unwrap_or_else(|| "mark".into()) }, one),
            2 => (Op::Transfer { to: self.one(MemorySpace::ALL) }, one),
            3 => (Op::Barrier, two),
            4 => (Op::Hook(HookOp { slot: self.below(3), name: self.name() }), two),
            _ => {
                let outputs = (0..self.below(3)).map(|_| self.ty()).collect();
                (Op::RuntimeCall(RuntimeCallOp { slot: self.below(3), outputs }), two)
            }
        }
    }

    /// A derivative by a condition or by rules of any mode, for values, inputs and captures of these types.
    pub(super) fn derivative(&mut self, [values, inputs, captures]: [&[TensorType]; 3], depth: usize) -> Op {
        if self.below(3) == 0 {
            return Op::Implicit(self.implicit([values, &[inputs, captures].concat()], depth));
        }
        if self.below(4) == 0 {
            let all = [inputs, captures].concat();
            let kept = self.below(values.len() + 1);
            let offloaded = self.below(kept + 1);
            let region = self.region(all.clone(), Vec::new(), depth, Some(values)).into();
            let rules = CustomRules::Recompute { region, kept, offloaded };
            return Op::CustomGrad(CustomGradOp { values: values.len(), inputs: all.len(), rules });
        }
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

    /// Values that a condition defines, with any solver.
    fn implicit(&mut self, [values, captures]: [&[TensorType]; 2], depth: usize) -> ImplicitOp {
        let mut residuals = || self.region(values.to_vec(), captures.to_vec(), depth, Some(values)).into();
        let (condition, preconditioner) = (residuals(), residuals());
        let method = match self.below(4) {
            0 => LinearMethod::Cg,
            1 => LinearMethod::Bicgstab,
            2 => LinearMethod::Gmres { restart: 1 + self.below(30) },
            _ => LinearMethod::Dense,
        };
        let maxiter = if self.flip() { Some(1 + self.below(9)) } else { None };
        let solver = LinearSolver { method, rtol: Tolerance(1e-5), atol: Tolerance(0.0), maxiter };
        let preconditioner = if self.flip() { Some(preconditioner) } else { None };
        ImplicitOp {
            values: values.len(),
            lanes: 0,
            solver,
            holomorphic: self.flip(),
            condition,
            preconditioner,
        }
    }
}
