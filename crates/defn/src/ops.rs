//! The operations, as methods of expressions and of tensors, from one list.

use std::ops;

use defn_core as core;
use defn_core::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildOrder, BuildReduce, BuildShape, Ops,
    Source, Start,
};
use defn_core::op::{Direction, TieBreak};
use defn_core::{Axes, AxisRef, DType, Location, Number, Result, Shape, vectorize};

use crate::expr::Operand;
use crate::{Expr, Tensor, backend};

/// Runs ops on concrete tensors, or records them where a trace is open.
pub(crate) fn eager<R>(location: Location, run: impl FnOnce(&mut Ops) -> Result<R>) -> Result<R> {
    let mut ops = Ops::new(backend::default_backend()?, Source::At(location.clone()));
    run(&mut ops).map_err(|error| error.at(Some(location)))
}

/// Both operands of an expression's method, or the error that one of them is.
fn pair<R>(a: &Expr, b: Operand, make: impl FnOnce(core::Tensor, Arg<core::Tensor>) -> R) -> Result<R> {
    Ok(make(a.0.clone()?, b.0?))
}

/// `fn name(options) |builder, x| call`, for both kinds of value.
macro_rules! methods {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) |$b:ident, $x:ident| $body:expr;)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> Expr {
                self.apply(|$b, $x| $body)
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// What the operation has against the tensor, with the line of the call.
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> Result<Tensor> {
                let $x = &self.0;
                eager(Location::caller(), |$b| $body).map(Tensor)
            }
        )*}
    };
}

/// `name`: an operation of two operands, which broadcast; a plain number gives way to the other's type.
macro_rules! binary {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: impl Into<Operand>) -> Expr {
                let location = Location::caller();
                match pair(self, other.into(), |a, b| (a, b)) {
                    Ok((a, b)) => Expr::make(location, |ops| ops.$name(a, b)),
                    Err(error) => Expr(Err(error)),
                }
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// What the operation has against the operands, with the line of the call.
            #[track_caller]
            pub fn $name(&self, other: impl Into<Arg<core::Tensor>>) -> Result<Tensor> {
                eager(Location::caller(), |ops| ops.$name(&self.0, other)).map(Tensor)
            }
        )*}
    };
}

/// `name`: an operation of one operand and no options.
macro_rules! unary {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {
        methods! { $($(#[$doc])* fn $name() |ops, x| ops.$name(x);)* }
    };
}

/// The ops of the catalogue.
macro_rules! unary_of_rows {
    ($($(#[$family_doc:meta])* $family:ident($leaf:ident) {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident, $cost:ident;)*
    })*) => {
        unary! { $($($(#[$doc])* fn $name;)*)* }
    };
}

/// The ops of the catalogue.
macro_rules! binary_of_rows {
    ($($(#[$family_doc:meta])* $family:ident $(($leaf:ident))? {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident,
            $cost:ident, $order:ident $(, refuses $refused:ident)?;)*
    })*) => {
        binary! { $($($(#[$doc])* fn $name;)*)* }
    };
}

core::unary_rows!(unary_of_rows);
core::binary_rows!(binary_of_rows);

unary! {
    /// 1 where `x` is zero.
    fn logical_not;
    /// The angle of a complex number.
    fn phase;
    /// `x`, through which no gradient flows.
    fn stop_grad;
    /// Zeros of the type of `x`.
    fn zeros_like;
    /// Ones of the type of `x`.
    fn ones_like;
}

binary! {
    /// `a / b` rounded down.
    fn floor_divide;
    /// What division rounded down leaves, with the sign of `b`.
    fn floor_modulo;
    /// The last axis of `a` contracted with the last but one of `b`, or its only one; a scalar multiplies.
    fn dot;
    /// The matrix product, batched over leading axes, which broadcast.
    fn matmul;
    /// Every element of `a` times every element of `b`.
    fn outer;
}

methods! {
    /// The elements as another type.
    fn as_type(dtype: DType) |ops, x| ops.as_type(x, dtype);
    /// The bits of each element read as another type of the same width.
    fn bitcast(dtype: DType) |ops, x| ops.bitcast(x, dtype);

    /// The sum over axes, which go, or stay with size 1.
    fn sum(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.sum(x, axes, keep_axes);
    /// The product over axes.
    fn product(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.product(x, axes, keep_axes);
    /// The greatest over axes; NaN if any element is.
    fn reduce_max(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.reduce_max(x, axes, keep_axes);
    /// The least over axes; NaN if any element is.
    fn reduce_min(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.reduce_min(x, axes, keep_axes);
    /// 1 if no element is zero.
    fn all(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.all(x, axes, keep_axes);
    /// 1 if an element is not zero.
    fn any(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.any(x, axes, keep_axes);
    /// The mean over axes.
    fn mean(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.mean(x, axes, keep_axes);
    /// The mean squared deviation from the mean; the divisor is the count less `ddof`.
    fn variance(axes: impl Into<Axes>, keep_axes: bool, ddof: i64)
        |ops, x| ops.variance(x, axes, keep_axes, ddof);
    /// The square root of the variance.
    fn standard_deviation(axes: impl Into<Axes>, keep_axes: bool, ddof: i64)
        |ops, x| ops.standard_deviation(x, axes, keep_axes, ddof);
    /// The element in the middle, or the mean of the two there, along an axis or of all.
    fn median(axis: Option<AxisRef>, keep_axis: bool) |ops, x| ops.median(x, axis, keep_axis);
    /// The element that is there most often, the least of several, along an axis or of all.
    fn mode(axis: Option<AxisRef>, keep_axis: bool) |ops, x| ops.mode(x, axis, keep_axis);
    /// The differences of neighbours along an axis, `order` times over.
    fn diff(order: i64, axis: impl Into<AxisRef>) |ops, x| ops.diff(x, order, axis);
    /// `log(sum(exp(x)))` over axes, without overflow.
    fn logsumexp(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.logsumexp(x, axes, keep_axes, None);
    /// The sum of the elements up to each place of an axis, or from it on.
    fn cumulative_sum(axis: impl Into<AxisRef>, reverse: bool) |ops, x| ops.cumulative_sum(x, axis, reverse);
    /// The product of the elements up to each place of an axis, or from it on.
    fn cumulative_product(axis: impl Into<AxisRef>, reverse: bool)
        |ops, x| ops.cumulative_product(x, axis, reverse);
    /// The greatest element up to each place of an axis, or from it on; NaN from the first NaN on.
    fn cumulative_max(axis: impl Into<AxisRef>, reverse: bool) |ops, x| ops.cumulative_max(x, axis, reverse);
    /// The least element up to each place of an axis, or from it on; NaN from the first NaN on.
    fn cumulative_min(axis: impl Into<AxisRef>, reverse: bool) |ops, x| ops.cumulative_min(x, axis, reverse);
    /// In order along an axis, stably: NaN above every number, -0.0 equal to 0.0.
    fn sort(axis: impl Into<AxisRef>, direction: Direction) |ops, x| ops.sort(x, axis, direction);
    /// Where the elements in order come from, as s32, or s64 where the axis needs it.
    fn argsort(axis: impl Into<AxisRef>, direction: Direction)
        |ops, x| ops.argsort(x, axis, direction, None);
    /// The index of the first greatest element, along an axis or over the flat index: an s32, or an s64 where the
    /// axis needs it.
    fn argmax(axis: Option<AxisRef>, keep_axis: bool)
        |ops, x| ops.argmax(x, axis, keep_axis, TieBreak::Low, None);
    /// The index of the first least element, along an axis or over the flat index: an s32, or an s64 where the
    /// axis needs it.
    fn argmin(axis: Option<AxisRef>, keep_axis: bool)
        |ops, x| ops.argmin(x, axis, keep_axis, TieBreak::Low, None);

    /// The same elements under other sizes, one of which may be -1; without names.
    fn reshape(sizes: &[i64]) |ops, x| ops.reshape(x, sizes.iter().copied(), None);
    /// The axes, consecutive ones, as one.
    fn flatten(axes: impl Into<Axes>) |ops, x| ops.flatten(x, axes);
    /// Without axes of size 1.
    fn squeeze(axes: impl Into<Axes>) |ops, x| ops.squeeze(x, axes);
    /// With a new axis of size 1 at a position of the result.
    fn new_axis(axis: i64) |ops, x| ops.new_axis(x, axis, None);
    /// With other names of axes, one entry for each.
    fn rename(names: &[Option<&str>])
        |ops, x| ops.rename(x, &names.iter().map(|name| name.map(Into::into)).collect::<Vec<_>>());
    /// With its leading axes as vectorized ones under these names: what is done to the tensor is done at each
    /// place on them.
    fn vectorize(names: &[&str])
        |ops, x| vectorize::vectorize(ops, x, &names.iter().map(|&name| (name.into(), None)).collect::<Vec<_>>());
    /// With its vectorized axes in front of the others, under their names.
    fn devectorize() |ops, x| vectorize::devectorize(ops, x, true);
    /// With axes in another order; reversed for [`Axes::All`].
    fn transpose(axes: impl Into<Axes>) |ops, x| ops.transpose(x, axes);
    /// Repeated to a shape; axes align at the end.
    fn broadcast(sizes: &[usize]) |ops, x| ops.broadcast(x, Shape::new(sizes), Axes::All);
    /// Read backwards along axes.
    fn reverse(axes: impl Into<Axes>) |ops, x| ops.reverse(x, axes);
    /// A window: where it begins and how long it is on each axis.
    fn slice(starts: &[i64], lengths: &[i64]) |ops, x| {
        let starts: Vec<Start<core::Tensor>> = starts.iter().map(|&start| start.into()).collect();
        ops.slice(x, &starts, lengths, None)
    };
    /// A window along one axis.
    fn slice_along_axis(start: i64, length: i64, axis: impl Into<AxisRef>)
        |ops, x| ops.slice_along_axis(x, start, length, axis, 1);
    /// With elements around and between: (low, high, interior) for each axis; negative ones crop.
    fn pad(value: impl Into<Number>, config: &[(i64, i64, i64)])
        |ops, x| ops.pad(x, Arg::Number(value.into()), config);
}

impl Expr {
    /// `on_true` where this is not zero, else `on_false`.
    #[track_caller]
    pub fn select(&self, on_true: impl Into<Operand>, on_false: impl Into<Operand>) -> Expr {
        let location = Location::caller();
        let operands = (|| Ok((self.0.clone()?, on_true.into().0?, on_false.into().0?)))();
        match operands {
            Ok((pred, a, b)) => Expr::make(location, |ops| ops.select(pred, a, b)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The element moved into bounds, which are scalars.
    #[track_caller]
    pub fn clip(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Expr {
        let location = Location::caller();
        let operands = (|| Ok((self.0.clone()?, low.into().0?, high.into().0?)))();
        match operands {
            Ok((x, low, high)) => Expr::make(location, |ops| ops.clip(x, low, high)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The expressions one after the other along an axis.
    #[track_caller]
    pub fn concatenate(exprs: &[Expr], axis: impl Into<AxisRef>) -> Expr {
        let location = Location::caller();
        match exprs.iter().map(|expr| expr.0.clone()).collect::<Result<Vec<_>>>() {
            Ok(tensors) => Expr::make(location, |ops| ops.concatenate(&tensors, axis)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The expressions side by side along a new axis.
    #[track_caller]
    pub fn stack(exprs: &[Expr], axis: i64) -> Expr {
        let location = Location::caller();
        match exprs.iter().map(|expr| expr.0.clone()).collect::<Result<Vec<_>>>() {
            Ok(tensors) => Expr::make(location, |ops| ops.stack(&tensors, axis, None)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// A scalar of an element type.
    #[track_caller]
    pub fn constant(dtype: DType, number: impl Into<Number>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.constant(dtype, number))
    }

    /// One number everywhere in a shape.
    #[track_caller]
    pub fn full(sizes: &[usize], dtype: DType, number: impl Into<Number>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.full(Shape::new(sizes), dtype, number))
    }

    /// Counts from 0 along an axis, or over the flat index.
    #[track_caller]
    pub fn iota(sizes: &[usize], dtype: DType, axis: Option<AxisRef>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.iota(Shape::new(sizes), dtype, axis))
    }

    /// Ones where the last two indices agree, else zeros.
    #[track_caller]
    pub fn eye(sizes: &[usize], dtype: DType) -> Expr {
        Expr::make(Location::caller(), |ops| ops.eye(Shape::new(sizes), dtype))
    }
}

impl Tensor {
    /// `on_true` where this is not zero, else `on_false`.
    ///
    /// # Errors
    /// Shapes that do not fit.
    #[track_caller]
    pub fn select(
        &self,
        on_true: impl Into<Arg<core::Tensor>>,
        on_false: impl Into<Arg<core::Tensor>>,
    ) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.select(&self.0, on_true, on_false)).map(Tensor)
    }

    /// The elements moved into bounds, which are scalars.
    ///
    /// # Errors
    /// Bounds that are no scalars, and complex elements.
    #[track_caller]
    pub fn clip(
        &self,
        low: impl Into<Arg<core::Tensor>>,
        high: impl Into<Arg<core::Tensor>>,
    ) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.clip(&self.0, low, high)).map(Tensor)
    }

    /// The tensors one after the other along an axis.
    ///
    /// # Errors
    /// No tensor, or shapes that differ on another axis.
    #[track_caller]
    pub fn concatenate(tensors: &[Tensor], axis: impl Into<AxisRef>) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.concatenate(&tensors, axis)).map(Tensor)
    }

    /// The tensors side by side along a new axis.
    ///
    /// # Errors
    /// No tensor, or shapes that differ.
    #[track_caller]
    pub fn stack(tensors: &[Tensor], axis: i64) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.stack(&tensors, axis, None)).map(Tensor)
    }

    /// One number everywhere in a shape.
    ///
    /// # Errors
    /// A float for integers, or a shape too large.
    #[track_caller]
    pub fn full(sizes: &[usize], dtype: DType, number: impl Into<Number>) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.full(Shape::new(sizes), dtype, number)).map(Tensor)
    }

    /// Counts from 0 along an axis, or over the flat index.
    ///
    /// # Errors
    /// An axis that the shape does not have, or a shape too large.
    #[track_caller]
    pub fn iota(sizes: &[usize], dtype: DType, axis: Option<AxisRef>) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.iota(Shape::new(sizes), dtype, axis)).map(Tensor)
    }

    /// Ones where the last two indices agree, else zeros.
    ///
    /// # Errors
    /// A shape of rank below 2, or too large.
    #[track_caller]
    pub fn eye(sizes: &[usize], dtype: DType) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.eye(Shape::new(sizes), dtype)).map(Tensor)
    }
}

macro_rules! tensor_operator {
    ($($trait:ident $method:ident $build:ident;)*) => {$(
        impl<R: Into<Arg<core::Tensor>>> ops::$trait<R> for &Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> {
                self.$build(right)
            }
        }
    )*};
}
tensor_operator! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
}

impl ops::Neg for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        self.negate()
    }
}
