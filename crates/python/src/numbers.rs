//! Differentiation by plain numbers: the region has a parameter for each dtype in which a number is used.

use defn_core::builder::{Arg, BuildElementwise, Builder, Ops};
use defn_core::jvp::tangent_type;
use defn_core::trace::Closed;
use defn_core::{DType, Number, Result, Tensor, TensorType};

/// The mapping of a function's variables to its region's parameters.
#[derive(Clone)]
pub(crate) struct NumberParameters {
    /// For each variable that is a number, the dtype of its gradient.
    dtypes: Vec<Option<DType>>,
    /// For each variable that is a number with a known value, as outside of definitions, the value.
    numbers: Vec<Option<Number>>,
    /// For each further parameter, the variable that it repeats in another dtype.
    further: Vec<usize>,
}

impl NumberParameters {
    pub(crate) fn new(closed: &Closed, variables: &[Tensor], numbers: &[Option<Number>]) -> NumberParameters {
        let dtype = |x: &Tensor| x.is_weak().then(|| x.ty().dtype.to_float());
        // A number that received vectorized axes has become a tensor.
        let numbers = variables.iter().zip(numbers).map(|(x, number)| number.filter(|_| x.is_weak()));
        NumberParameters {
            dtypes: variables.iter().map(dtype).collect(),
            numbers: numbers.collect(),
            further: closed.further.clone(),
        }
    }

    /// The number of the region's parameters.
    pub(crate) fn count(&self) -> usize {
        self.dtypes.len() + self.further.len()
    }

    /// The region's inputs, captures last, without vectorized axes.
    pub(crate) fn arguments(
        &self,
        ops: &mut Ops,
        closed: &Closed,
        variables: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut arguments = Vec::with_capacity(closed.region.inputs().len());
        let positions = (0..variables.len()).chain(self.further.iter().copied());
        for (position, ty) in positions.zip(closed.region.inputs()) {
            let variable = match self.numbers[position] {
                Some(number) => Arg::Number(number),
                None => Arg::Value(variables[position].clone()),
            };
            arguments.push(ops.promote_weak("grad", variable, ty)?.flat());
        }
        arguments.extend(closed.captures.iter().cloned());
        Ok(arguments)
    }

    /// The parameters of the variables in `varied`.
    pub(crate) fn of_variables(&self, varied: &[usize]) -> Vec<usize> {
        (0..self.count()).filter(|&parameter| varied.contains(&self.variable(parameter))).collect()
    }

    /// The variable of a parameter.
    fn variable(&self, parameter: usize) -> usize {
        let own = self.dtypes.len();
        if parameter < own { parameter } else { self.further[parameter - own] }
    }

    /// The tangents of the parameters of the variables in `varied`, from those of the variables. `inputs` are the types of
    /// the parameters.
    pub(crate) fn tangents(
        &self,
        ops: &mut Ops,
        inputs: &[TensorType],
        varied: &[usize],
        tangents: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let parameters = self.of_variables(varied).into_iter();
        let tangents = parameters.map(|parameter| {
            let variable = self.variable(parameter);
            let position = varied.iter().position(|other| *other == variable);
            let tangent = tangents[position.expect("the variable is varied")].clone();
            let ty = tangent_type(&inputs[parameter]);
            let tangent = ops.promote_weak("jvp", Arg::Value(tangent), &ty)?;
            ops.as_type(tangent, ty.dtype)
        });
        tangents.collect()
    }

    /// The gradients of the variables from those of the parameters. The gradient of a number is the sum over
    /// its dtypes.
    pub(crate) fn gradients(&self, ops: &mut Ops, parameters: &[Tensor]) -> Result<Vec<Tensor>> {
        let (own, further) = parameters.split_at(self.dtypes.len());
        let mut gradients = own.to_vec();
        for (gradient, &variable) in further.iter().zip(&self.further) {
            gradients[variable] = ops.add(&gradients[variable], gradient)?;
        }
        for (gradient, dtype) in gradients.iter_mut().zip(&self.dtypes) {
            if let Some(dtype) = dtype {
                *gradient = ops.as_type(&*gradient, *dtype)?;
            }
        }
        Ok(gradients)
    }
}
