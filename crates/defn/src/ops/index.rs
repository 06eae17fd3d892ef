//! Reads and writes at positions held in a tensor.

use defn_core as core;
use defn_core::builder::{Arg, BuildIndex};
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

defn_core::index_functions!(shared);
