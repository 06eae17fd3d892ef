//! Reductions that leave out NaN, and quantiles.

use defn_core as core;
use defn_core::builder::{Arg, BuildMissing, BuildQuantile, QuantileMethod};
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

defn_core::missing_functions!(shared);
