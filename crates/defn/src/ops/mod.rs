//! The operations, as methods of expressions and of tensors, by family.

use defn_core as core;
use defn_core::builder::{Arg, Ops, Source};
use defn_core::{Location, Result};

use crate::expr::Operand;
use crate::{Expr, backend};

#[macro_use]
mod example;
#[macro_use]
mod rows;

/// Runs ops on concrete tensors, or records them where a trace is open.
pub(crate) fn eager<R>(location: Location, run: impl FnOnce(&mut Ops) -> Result<R>) -> Result<R> {
    let mut ops = Ops::new(backend::default_backend()?, Source::At(location.clone()));
    ops.checks = backend::checks();
    run(&mut ops).map_err(|error| error.at(Some(location)))
}

/// Both operands of an expression's method, or the error that one of them is.
fn pair(a: &Expr, b: Operand) -> Result<(core::Tensor, Arg<core::Tensor>)> {
    Ok((a.0.clone()?, b.0?))
}

/// `fn name(options) |builder, x| call`, for both kinds of value, with its errors and an example.
macro_rules! methods {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) |$b:ident, $x:ident| $body:expr;
        errors $errors:expr; example $example:tt)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[doc = ""]
            #[doc = expr_example! $example]
            #[doc = expr_errors!($errors)]
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> Expr {
                self.apply(|$b, $x| $body)
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            #[doc = ""]
            #[doc = tensor_example! $example]
            #[doc = tensor_errors!($errors)]
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> Result<Tensor> {
                let $x = &self.0;
                eager(Location::caller(), |$b| $body).map(Tensor)
            }
        )*}
    };
}

/// `fn name(operands; [list]; options) |builder, x| call`, for both kinds of value, with its errors and an example. The
/// list, of any number of operands, may be left out.
macro_rules! with_operands {
    ($($(#[$doc:meta])* fn $name:ident($($operand:ident),*; $([$list:ident];)? $($arg:ident: $ty:ty),*)
        |$b:ident, $x:ident| $body:expr; errors $errors:expr; example $example:tt)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[doc = ""]
            #[doc = expr_example! $example]
            #[doc = expr_errors!($errors)]
            #[track_caller]
            pub fn $name(
                &self,
                $($operand: impl Into<Operand>,)*
                $($list: &[impl Into<Operand> + Clone],)?
                $($arg: $ty),*
            ) -> Expr {
                let location = Location::caller();
                let operands: Result<_> = (|| {
                    let own = self.0.clone()?;
                    $(let $list = $list.iter().map(|item| item.clone().into().0).collect::<Result<Vec<_>>>()?;)?
                    Ok((own, $($list,)? $($operand.into().0?,)*))
                })();
                match operands {
                    Ok(($x, $($list,)? $($operand,)*)) => Expr::make(location, |$b| $body),
                    Err(error) => Expr(Err(error)),
                }
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            #[doc = ""]
            #[doc = tensor_example! $example]
            #[doc = tensor_errors!($errors)]
            #[track_caller]
            pub fn $name(
                &self,
                $($operand: impl Into<Arg<core::Tensor>>,)*
                $($list: &[impl Into<Arg<core::Tensor>> + Clone],)?
                $($arg: $ty),*
            ) -> Result<Tensor> {
                let $x = self.0.clone();
                $(let $list: Vec<Arg<core::Tensor>> = $list.iter().map(|item| item.clone().into()).collect();)?
                eager(Location::caller(), |$b| $body).map(Tensor)
            }
        )*}
    };
}

/// `name`: an operation of two operands, which broadcast; a plain number gives way to the other's type.
macro_rules! binary {
    ($($(#[$doc:meta])* fn $name:ident; errors $errors:expr; example $example:tt)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[doc = ""]
            #[doc = expr_example! $example]
            #[doc = expr_errors!($errors)]
            #[track_caller]
            pub fn $name(&self, other: impl Into<Operand>) -> Expr {
                let location = Location::caller();
                match pair(self, other.into()) {
                    Ok((a, b)) => Expr::make(location, |ops| ops.$name(a, b)),
                    Err(error) => Expr(Err(error)),
                }
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            #[doc = ""]
            #[doc = tensor_example! $example]
            #[doc = tensor_errors!($errors)]
            #[track_caller]
            pub fn $name(&self, other: impl Into<Arg<core::Tensor>>) -> Result<Tensor> {
                eager(Location::caller(), |ops| ops.$name(&self.0, other)).map(Tensor)
            }
        )*}
    };
}

/// `name`: an operation of one operand and no options.
macro_rules! unary {
    ($($(#[$doc:meta])* fn $name:ident; errors $errors:expr; example $example:tt)*) => {
        methods! { $($(#[$doc])* fn $name() |ops, x| ops.$name(x); errors $errors; example $example)* }
    };
}

/// The type that a method accepts for an option of a row in `defn_core::functions`.
macro_rules! accepted {
    (Axes) => { impl Into<Axes> };
    (AxisRef) => { impl Into<AxisRef> };
    ($ty:ty) => { $ty };
}

/// The methods of the rows in `defn_core::functions`.
macro_rules! shared {
    ($($(#[$doc:meta])* fn $name:ident($($operand:ident),*; $($arg:ident: $ty:ident $(<$of:ident>)?),*);
        errors $errors:expr; example $example:tt)*) => {$(
        shared! { @one ($($operand),*)
            $(#[$doc])* fn $name($($arg: $ty $(<$of>)?),*); errors $errors; example $example }
    )*};
    (@one () $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ident $(<$of:ident>)?),*);
        errors $errors:expr; example $example:tt) => {
        methods! { $(#[$doc])* fn $name($($arg: accepted!($ty $(<$of>)?)),*) |ops, x| ops.$name(x, $($arg),*);
            errors $errors; example $example }
    };
    (@one ($($operand:ident),+) $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ident $(<$of:ident>)?),*);
        errors $errors:expr; example $example:tt) => {
        with_operands! { $(#[$doc])* fn $name($($operand),+; $($arg: accepted!($ty $(<$of>)?)),*)
            |ops, x| ops.$name(x, $($operand,)+ $($arg),*);
            errors $errors; example $example }
    };
}

/// What [`pad_outer`](Expr::pad_outer) puts around a tensor: its own elements, or a number.
///
/// ```
/// use defn::prelude::*;
/// use defn::PadMode;
///
/// let x = tensor![1, 2, 3]?;
/// assert_eq!(x.pad_outer(&PadMode::Cyclic, &[(1, 1)])?.to_vec::<i32>()?, [3, 1, 2, 3, 1]);
/// assert_eq!(x.pad_outer(&PadMode::Value(0.into()), &[(1, 0)])?.to_vec::<i32>()?, [0, 1, 2, 3]);
/// # Ok::<(), defn::Error>(())
/// ```
pub type PadMode = core::builder::PadMode<core::Tensor>;

mod arrange;
mod create;
mod elementwise;
mod fold;
mod fourier;
mod index;
mod linalg;
mod missing;
mod order;
mod reduce;
mod search;
mod sequence;
mod sets;
mod shape;
mod special;
mod starts;
mod vectorize;
mod window;
