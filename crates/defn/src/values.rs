//! Functions of modules, which take an expression or a tensor.

use defn_core as core;
use defn_core::builder::Ops;
use defn_core::{Location, Result};

use crate::expr::both;
use crate::ops::eager;
use crate::{Expr, Tensor};

type Two<T> = (T, T);
type Three<T> = (T, T, T);
type Core = core::Tensor;

/// The values that the functions of this module take: an expression, or a tensor.
///
/// ```
/// use defn::nn::{Values, relu};
/// use defn::prelude::*;
///
/// fn positive<V: Values>(x: &V) -> V::One {
///     relu(x)
/// }
/// let x = Tensor::from_slice(&[-1f32, 2.0], &[2])?;
/// assert_eq!(positive(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
/// assert_eq!(jit(|x: Expr| positive(&x)).call(x)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Values: sealed::Sealed {
    /// One result: an expression, which keeps an error, or a `Result` of a tensor.
    type One;
    /// Two results.
    type Two;
    /// Three results.
    type Three;
    /// As many results as a function says.
    type Many<const N: usize>;

    #[doc(hidden)]
    fn one(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Core>) -> Self::One;

    #[doc(hidden)]
    fn two(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Two<Core>>) -> Self::Two;

    #[doc(hidden)]
    fn three(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Three<Core>>) -> Self::Three;

    #[doc(hidden)]
    fn many<const N: usize>(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<[Core; N]>,
    ) -> Self::Many<N>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Expr {}
    impl Sealed for crate::Tensor {}
}

impl Values for Expr {
    type One = Expr;
    type Two = (Expr, Expr);
    type Three = (Expr, Expr, Expr);
    type Many<const N: usize> = [Expr; N];

    fn one(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Core>) -> Expr {
        Expr(self.record(at, run))
    }

    fn two(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Two<Core>>) -> Two<Expr> {
        Expr::both(self.record(at, run))
    }

    fn three(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Three<Core>>) -> Three<Expr> {
        let (a, rest) = both(self.record(at, run).map(|(a, b, c)| (a, (b, c))));
        let (b, c) = Expr::both(rest);
        (Expr(a), b, c)
    }

    fn many<const N: usize>(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<[Core; N]>,
    ) -> [Expr; N] {
        match self.record(at, run) {
            Ok(results) => results.map(|result| Expr(Ok(result))),
            Err(error) => std::array::from_fn(|_| Expr(Err(error.clone()))),
        }
    }
}

impl Values for Tensor {
    type One = Result<Tensor>;
    type Two = Result<(Tensor, Tensor)>;
    type Three = Result<(Tensor, Tensor, Tensor)>;
    type Many<const N: usize> = Result<[Tensor; N]>;

    fn one(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Core>) -> Result<Tensor> {
        eager(at, |ops| run(ops, &self.0)).map(Tensor)
    }

    fn two(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<Two<Core>>,
    ) -> Result<Two<Tensor>> {
        eager(at, |ops| run(ops, &self.0)).map(|(a, b)| (Tensor(a), Tensor(b)))
    }

    fn three(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<Three<Core>>,
    ) -> Result<Three<Tensor>> {
        eager(at, |ops| run(ops, &self.0)).map(|(a, b, c)| (Tensor(a), Tensor(b), Tensor(c)))
    }

    fn many<const N: usize>(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<[Core; N]>,
    ) -> Result<[Tensor; N]> {
        eager(at, |ops| run(ops, &self.0)).map(|results| results.map(Tensor))
    }
}

/// `fn name(options) -> kind |builder, x| call`, for both kinds of value.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $kind:ident, $method:ident
        |$b:ident, $x:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<V: $crate::values::Values>(x: &V, $($arg: $ty),*) -> V::$kind {
            x.$method(defn_core::Location::caller(), |$b, $x| $body)
        }
    )*};
}
pub(crate) use functions;
