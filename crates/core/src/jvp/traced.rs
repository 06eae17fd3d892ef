//! Forward mode of a function that was traced: tangents of its results from those of its variables, and Jacobians.

use super::{Control, joint, linear, tangent_type};
use crate::builder::{BuildControl, BuildCreate, BuildElementwise, BuildShape, Ops};
use crate::error::{ErrorKind, Result};
use crate::grad::traced::{self, inner_results, separate_axes};
use crate::region::Region;
use crate::shape::{Axis, AxisList, Name, Shape, TensorType};
use crate::tensor::Tensor;
use crate::vectorize::{self, NamedAxes, NamedAxis};

/// The tangents of a region's parameters, from those of the variables.
pub type Begin<'a> = &'a dyn Fn(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>;

/// A traced function with the tangents of its results.
#[derive(Debug)]
pub struct TracedPushforward {
    /// Its inputs are the arguments, then a tangent for each parameter with one. Its results are the values, then the
    /// tangents.
    region: Region,
    /// The variables without vectorized axes, the captures, and values that were computed before.
    arguments: Vec<Tensor>,
    /// The number of results that are values.
    values: usize,
    /// The inner types of the results and their vectorized axes.
    results: Vec<(TensorType, NamedAxes)>,
    /// The same of the variables with tangents.
    variables: Vec<(TensorType, NamedAxes)>,
    /// The results whose tangents are computed.
    of: Vec<usize>,
}

impl TracedPushforward {
    /// The function of a region with these vectorized axes of its results, with tangents of the parameters in `wrt` and of
    /// the results in `of`. The arguments are without vectorized axes. `variables` are those with tangents. Branches and
    /// loops compute values and tangents apart for [`TracedPushforward::linearize`].
    ///
    /// # Errors
    /// An op without a derivative between a parameter in `wrt` and a result in `of`.
    pub fn new(
        region: &Region,
        (wrt, of): (&[usize], &[usize]),
        lanes: &[NamedAxes],
        arguments: Vec<Tensor>,
        variables: &[&Tensor],
        control: Control,
    ) -> Result<TracedPushforward> {
        let results = inner_results(region, lanes);
        let variables = variables.iter().map(|x| (x.ty().clone(), x.vectorized_axes().into())).collect();
        let region = joint(region, wrt, of, control)?;
        let values = results.len();
        Ok(TracedPushforward { region, arguments, values, results, variables, of: of.into() })
    }

    /// The values, and the function without them, which is linear in the tangents. What tangents need of the values is
    /// computed once; only branches and loops are run again.
    ///
    /// # Errors
    /// Those of ops that run eagerly.
    pub fn linearize(mut self, ops: &mut Ops) -> Result<(Vec<Tensor>, TracedPushforward)> {
        let parts = linear::split(&self.region, self.arguments.len(), self.values)?;
        let mut values = ops.inline(&parts.values, &self.arguments)?;
        self.arguments.extend(values.split_off(self.values));
        self.region = parts.tangents;
        self.values = 0;
        let lanes = self.results.iter().map(|(_, lanes)| lanes);
        let values =
            values.into_iter().zip(lanes).map(|(value, lanes)| value.with_vectorized(lanes)).collect();
        Ok((values, self))
    }

    /// The values of all results, none of a function that was linearized, and the tangents of the results that have them.
    /// A vectorized axis of a tangent that its variable lacks is a batch axis: there is a tangent of the results for each
    /// position.
    ///
    /// # Errors
    /// A vectorized axis of a tangent that a result has under the same name, and those of `begin`.
    pub fn apply(
        &self,
        ops: &mut Ops,
        tangents: &[Tensor],
        begin: Begin<'_>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let mut extra = NamedAxes::new();
        let mut spread = Vec::with_capacity(tangents.len());
        for (tangent, (ty, lanes)) in tangents.iter().zip(&self.variables) {
            if tangent.is_weak() && lanes.is_empty() {
                // A number, which takes the dtype of its parameter.
                spread.push(tangent.clone());
                continue;
            }
            let others = separate_axes("jvp", tangent, lanes, self.results.iter().map(|(_, lanes)| lanes))?;
            extra.extend(others.iter().filter(|lane| !extra.contains(lane)).cloned().collect::<Vec<_>>());
            spread.push(traced::spread(ops, "jvp", tangent, tangent_type(ty).dtype, (&others, lanes))?);
        }
        let mut given = self.arguments.clone();
        given.extend(begin(ops, &spread)?);
        let mut values = ops.inline(&self.region, &given)?;
        let pushed = values.split_off(self.values);
        let lanes = self.results.iter().map(|(_, lanes)| &lanes[..]);
        let values =
            values.into_iter().zip(lanes).map(|(value, lanes)| value.with_vectorized(lanes)).collect();
        let mut results = Vec::with_capacity(pushed.len());
        for (tangent, &result) in pushed.iter().zip(&self.of) {
            let tangent = vectorize::broadcast_vectorized(ops, "jvp", tangent, &extra)?;
            let all: NamedAxes = extra.iter().chain(&self.results[result].1).cloned().collect();
            let tangent = tangent.flat().with_vectorized(&all);
            results.push(ops.reshape_to(&tangent, self.results[result].0.shape.clone())?);
        }
        Ok((values, results))
    }

    /// The derivative of each element of the results by each element of a variable: the axes of each result, followed by
    /// those of the variable. By a complex variable it is that along the real axis, which is the derivative of a
    /// holomorphic function. Columns are along a vectorized axis meanwhile, which has this name.
    ///
    /// # Errors
    /// As [`TracedPushforward::apply`].
    pub fn jacobian(
        &self,
        ops: &mut Ops,
        position: usize,
        name: &Name,
        begin: Begin<'_>,
    ) -> Result<Vec<Tensor>> {
        let ty = &self.variables[position].0;
        let size = ty.shape.size();
        let dtype = |ty: &TensorType| tangent_type(ty).dtype;
        let basis = ops.eye(Shape::new(&[size, size]), dtype(ty))?;
        let sizes = std::iter::once(size).chain(ty.shape.sizes().iter().copied());
        let basis = ops.reshape_to(&basis, Shape::new(&sizes.collect::<Vec<_>>()))?;
        let mut tangents = Vec::with_capacity(self.variables.len());
        for (other, (ty, _)) in self.variables.iter().enumerate() {
            tangents.push(match other == position {
                true => basis.clone().with_vectorized(&[(name.clone(), size)]),
                false => ops.full(ty.shape.without_names(), dtype(ty), 0)?,
            });
        }
        let (_, columns) = self.apply(ops, &tangents, begin)?;
        let columns = columns.iter().map(|x| {
            let column = column(ops, x, name, ty)?;
            // As a gradient has it; the derivative of a complex result by a real variable stays complex.
            let drops = column.ty().dtype.is_complex() && !ty.dtype.is_complex();
            if drops { Ok(column) } else { ops.as_type(column, dtype(ty)) }
        });
        columns.collect()
    }
}

/// Whether forward mode computes a Jacobian in no more passes than reverse mode: the variables have no more elements than
/// the results of the region, which have these vectorized axes. False for complex numbers, of which one tangent is not
/// the whole derivative.
pub fn has_few_variables(region: &Region, lanes: &[NamedAxes], variables: &[Tensor]) -> bool {
    let results = inner_results(region, lanes).iter().map(|(ty, _)| ty.shape.size()).sum();
    let is_complex = |ty: &TensorType| ty.dtype.is_complex();
    if region.result_types().any(is_complex) || variables.iter().any(|x| is_complex(x.ty())) {
        return false;
    }
    variables.iter().map(|x| x.ty().shape.size()).sum::<usize>() <= results
}

/// Refuses a tangent of another shape or dtype than its value. A plain number among the two takes the other's dtype.
///
/// # Errors
/// Shapes or dtypes that differ, and the tangent of an integer.
pub fn require_tangent(op: &'static str, value: &Tensor, tangent: &Tensor) -> Result<()> {
    let (ty, got) = (value.ty(), tangent.ty());
    let dtype = |required| ErrorKind::TangentDType { op, value: ty.clone(), got: got.clone(), required };
    if !ty.dtype.is_inexact() {
        return Err(dtype("integers have none; pass None, or convert the value with as_type").into());
    }
    if ty.shape.sizes() != got.shape.sizes() {
        return Err(ErrorKind::ShapesDiffer { op, left: got.clone(), right: ty.clone() }.into());
    }
    let is_free = value.is_weak() || tangent.is_weak();
    if ty.dtype != got.dtype && !(is_free && got.dtype.kind() <= ty.dtype.kind()) {
        return Err(dtype("it must have that dtype").into());
    }
    Ok(())
}

/// The columns of a Jacobian: the vectorized axis that counts the variable's elements is replaced by the axes of the
/// variable, behind those of the result.
fn column(ops: &mut Ops, x: &Tensor, name: &Name, variable: &TensorType) -> Result<Tensor> {
    let counts = |lane: &&NamedAxis| lane.0 == *name;
    let others: NamedAxes = x.vectorized_axes().iter().filter(|lane| !counts(lane)).cloned().collect();
    let count = (name.clone(), variable.shape.size());
    let order: NamedAxes = others.iter().cloned().chain([count]).collect();
    let columns = vectorize::broadcast_vectorized(ops, "jacobian", x, &order)?;
    let inner = columns.ty().shape.clone();
    let flat = columns.flat();
    let rank = flat.ty().shape.rank();
    let axes: AxisList =
        (0..others.len()).chain(others.len() + 1..rank).chain([others.len()]).map(Axis).collect();
    let flat = ops.transpose(&flat, axes)?;
    let lead = others.iter().map(|&(_, size)| (size, None));
    let shape = Shape::from_axes(lead.chain(inner.entries()).chain(variable.shape.entries()));
    Ok(ops.reshape_to(&flat, shape)?.with_vectorized(&others))
}
