//! The reverse of a function that was traced: cotangents of its variables from those of its results, and Jacobians.

use super::{region, vjp_region};
use crate::builder::{BuildControl, BuildCreate, BuildElementwise, BuildShape, Ops};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::AllReduceOp;
use crate::region::Region;
use crate::shape::{Name, Shape, TensorType};
use crate::tensor::Tensor;
use crate::vectorize::{self, NamedAxes, NamedAxis, named};

/// What is done with the gradients of the region's parameters, which become those of the variables.
pub type Finish<'a> = &'a dyn Fn(&mut Ops, Vec<Tensor>) -> Result<Vec<Tensor>>;

/// The loss at each position along the named axes among those of the variables. One that an exchange made the same at all
/// positions counts at each of them, as on the devices of a mesh.
///
/// # Errors
/// A result too large to address.
pub fn loss_at_positions(ops: &mut Ops, loss: &Tensor, variables: &[NamedAxis]) -> Result<Tensor> {
    let mut axes: NamedAxes = loss.vectorized_axes().into();
    let known = named::known();
    for lane in variables {
        if has(&known, lane) && !has(&axes, lane) {
            axes.push(lane.clone());
        }
    }
    vectorize::broadcast_vectorized(ops, "grad", loss, &axes)
}

/// The vectorized axes that the variables of a function must have: their own, and those that captured tensors bring into
/// what is differentiated, so that there is a derivative for each position along them. `results` are the axes of what is
/// differentiated.
pub fn axes_of_variables(own: &[NamedAxis], captured: &[NamedAxis], results: &[NamedAxes]) -> NamedAxes {
    let known = named::known();
    let exchanged = captured.iter().filter(|lane| has(&known, lane));
    let mut axes: NamedAxes = own.into();
    for lane in results.iter().flatten().chain(exchanged) {
        match axes.iter_mut().find(|(name, _)| *name == lane.0) {
            Some((_, size)) if *size == 1 => *size = lane.1,
            Some(_) => {}
            None if has(captured, lane) => axes.push(lane.clone()),
            None => {}
        }
    }
    axes
}

/// Whether an axis of this name is among others.
fn has(axes: &[NamedAxis], lane: &NamedAxis) -> bool {
    axes.iter().any(|axis| axis.0 == lane.0)
}

/// The pullback of a traced function.
#[derive(Debug)]
pub struct TracedPullback {
    /// Its inputs are the arguments of the traced region without vectorized axes, then one cotangent for each
    /// result.
    region: Region,
    /// The variables, then the captures.
    arguments: Vec<Tensor>,
    /// The inner types of the results and their vectorized axes.
    results: Vec<(TensorType, NamedAxes)>,
    /// The vectorized axes of the variables.
    variables: Vec<NamedAxes>,
}

impl TracedPullback {
    /// The pullback of a region with respect to its first `parameters`. `lanes` are the vectorized axes of its first
    /// results; the other results have no cotangents. The arguments are without such axes.
    ///
    /// # Errors
    /// An op without a gradient between a parameter and a result.
    pub fn new(
        region: &Region,
        parameters: usize,
        lanes: &[NamedAxes],
        arguments: Vec<Tensor>,
        variables: &[Tensor],
    ) -> Result<TracedPullback> {
        let wrt: Vec<usize> = (0..parameters).collect();
        let results = inner_results(region, lanes);
        let variables = variables.iter().map(|x| x.vectorized_axes().into()).collect();
        let differentiated: Vec<usize> = (0..lanes.len()).collect();
        let region = vjp_region(&region::with_results(region, &differentiated)?, &wrt)?;
        Ok(TracedPullback { region, arguments, results, variables })
    }

    /// The inner types of the results.
    pub fn results(&self) -> impl ExactSizeIterator<Item = &TensorType> {
        self.results.iter().map(|(ty, _)| ty)
    }

    /// Refuses cotangents of other shapes than the results.
    ///
    /// # Errors
    /// The first one that differs.
    pub fn require_shapes(&self, cotangents: &[Tensor]) -> Result<()> {
        for (cotangent, ty) in cotangents.iter().zip(self.results()) {
            if cotangent.ty().shape.sizes() != ty.shape.sizes() {
                let (left, right) = (cotangent.ty().clone(), ty.clone());
                return Err(ErrorKind::ShapesDiffer { op: "vjp", left, right }.into());
            }
        }
        Ok(())
    }

    /// The arguments of the traced region.
    pub fn arguments(&self) -> &[Tensor] {
        &self.arguments
    }

    /// The cotangents of the variables. A vectorized axis of a cotangent that its result lacks is a batch
    /// axis: each position is pulled back separately.
    ///
    /// # Errors
    /// A vectorized axis of a cotangent that a variable has under the same name, and those of `finish`.
    pub fn apply(&self, ops: &mut Ops, cotangents: &[Tensor], finish: Finish<'_>) -> Result<Vec<Tensor>> {
        let mut extra = NamedAxes::new();
        let mut given = self.arguments.clone();
        for (cotangent, (ty, lanes)) in cotangents.iter().zip(&self.results) {
            let cotangent = &self.of_all_positions(ops, cotangent, lanes)?;
            let others = separate_axes("vjp", cotangent, lanes, self.variables.iter())?;
            extra.extend(others.iter().filter(|lane| !extra.contains(lane)).cloned().collect::<Vec<_>>());
            let dtype = DType::F32.merge(ty.dtype.to_float());
            given.push(spread(ops, "vjp", cotangent, dtype, (&others, lanes))?);
        }
        let gradients = ops.inline(&self.region, &given)?;
        let gradients = finish(ops, gradients)?;
        let mut results = Vec::with_capacity(gradients.len());
        for (gradient, lanes) in gradients.iter().zip(&self.variables) {
            let gradient = vectorize::broadcast_vectorized(ops, "vjp", gradient, &extra)?;
            let all: NamedAxes = extra.iter().chain(lanes).cloned().collect();
            results.push(gradient.flat().with_vectorized(&all));
        }
        Ok(results)
    }

    /// A cotangent of a result that exchanges along named axes made the same at all positions: the sum of
    /// those that the positions give, as if each had a result of its own.
    fn of_all_positions(&self, ops: &mut Ops, cotangent: &Tensor, lanes: &[NamedAxis]) -> Result<Tensor> {
        let mut cotangent = cotangent.clone();
        for lane in named::known() {
            if !has(lanes, &lane) && self.variables.iter().any(|axes| has(axes, &lane)) {
                cotangent = named::all_reduce(ops, &cotangent, AllReduceOp::Sum, &[lane.0])?;
            }
        }
        Ok(cotangent)
    }

    /// The derivative of each element of a result by each element of the variables: the axes of the result, followed by
    /// those of each variable. Rows are along a vectorized axis meanwhile, which has this name.
    ///
    /// # Errors
    /// As [`TracedPullback::apply`].
    pub fn jacobian(
        &self,
        ops: &mut Ops,
        position: usize,
        name: &Name,
        finish: Finish<'_>,
    ) -> Result<Vec<Tensor>> {
        let ty = &self.results[position].0;
        let size = ty.shape.size();
        let basis = ops.eye(Shape::new(&[size, size]), DType::F32)?;
        let mut sizes = vec![size as i64];
        sizes.extend(ty.shape.sizes().iter().map(|&size| size as i64));
        let basis = ops.reshape(basis, sizes, None)?.with_vectorized(&[(name.clone(), size)]);
        let mut cotangents = Vec::with_capacity(self.results.len());
        for (other, ty) in self.results().enumerate() {
            cotangents.push(match other == position {
                true => basis.clone(),
                false => ops.full(ty.shape.without_names(), DType::F32, 0)?,
            });
        }
        let gradients = self.apply(ops, &cotangents, finish)?;
        gradients.iter().map(|x| row(ops, x, name, ty)).collect()
    }
}

/// The inner types of a region's first results, which have these vectorized axes, and the axes.
pub(crate) fn inner_results(region: &Region, lanes: &[NamedAxes]) -> Vec<(TensorType, NamedAxes)> {
    let inner = |(ty, lanes): (&TensorType, &NamedAxes)| {
        let shape = Shape::from_axes(ty.shape.entries().skip(lanes.len()));
        (TensorType { dtype: ty.dtype, shape }, lanes.clone())
    };
    region.result_types().zip(lanes).map(inner).collect()
}

/// A tangent or a cotangent in a dtype, without names: vectorized along the axes `separate`, with the axes `own` in front.
pub(crate) fn spread(
    ops: &mut Ops,
    op: &'static str,
    given: &Tensor,
    dtype: DType,
    (separate, own): (&NamedAxes, &NamedAxes),
) -> Result<Tensor> {
    let given = ops.as_type(given, dtype)?;
    let nameless = ops.reshape_to(&given, given.ty().shape.without_names())?;
    let order: NamedAxes = separate.iter().chain(own).cloned().collect();
    let spread = vectorize::broadcast_vectorized(ops, op, &nameless, &order)?;
    Ok(spread.flat().with_vectorized(separate))
}

/// The vectorized axes of a tangent or a cotangent that are not those of its value: each position on them is differentiated
/// separately. None of them may be among the axes `taken`.
pub(crate) fn separate_axes<'a>(
    op: &'static str,
    given: &Tensor,
    own: &NamedAxes,
    taken: impl Iterator<Item = &'a NamedAxes>,
) -> Result<NamedAxes> {
    let is_own = |lane: &&NamedAxis| own.iter().any(|(name, _)| *name == lane.0);
    let others: NamedAxes = given.vectorized_axes().iter().filter(|lane| !is_own(lane)).cloned().collect();
    match taken.flatten().find(|(name, _)| others.iter().any(|lane| lane.0 == *name)) {
        Some((name, _)) => Err(ErrorKind::VectorizedName { op, name: name.clone() }.into()),
        None => Ok(others),
    }
}

/// The rows of a Jacobian: the vectorized axis that counts the result's elements is replaced by the axes of
/// the result, followed by the axes of the variable.
fn row(ops: &mut Ops, x: &Tensor, name: &Name, result: &TensorType) -> Result<Tensor> {
    let counts = |lane: &&NamedAxis| lane.0 == *name;
    let others: NamedAxes = x.vectorized_axes().iter().filter(|lane| !counts(lane)).cloned().collect();
    let count = (name.clone(), result.shape.size());
    let order: NamedAxes = others.iter().cloned().chain([count]).collect();
    let rows = vectorize::broadcast_vectorized(ops, "jacobian", x, &order)?;
    let inner = rows.ty().shape.clone();
    let lead = others.iter().map(|&(_, size)| (size, None));
    let shape = Shape::from_axes(lead.chain(result.shape.entries()).chain(inner.entries()));
    Ok(ops.reshape_to(rows.flat(), shape)?.with_vectorized(&others))
}
