//! One example of each op that has a row, for tests that cover all ops: a new op takes part in them by its row.

use smallvec::{SmallVec, smallvec};

use super::{Direction, Padding, QrMode, Starts, TieBreak, Tolerance, Transform, Window};
use crate::dtype::DType;
use crate::shape::{Axis, AxisList, Name, Shape, Sizes, TensorType};

/// A type of attributes that has a value which many ops accept for an operand.
pub(super) trait Example {
    /// A value for operands of the type `x`.
    fn example(x: &TensorType) -> Self;
}

/// Types whose examples do not depend on the operand.
macro_rules! examples {
    ($($ty:ty = $value:expr;)*) => {
        $(impl Example for $ty {
            fn example(_: &TensorType) -> $ty {
                $value
            }
        })*
    };
}

examples! {
    bool = false;
    Axis = Axis(0);
    Option<Axis> = Some(Axis(0));
    [Axis; 2] = [Axis(0), Axis(1)];
    AxisList = smallvec![Axis(0)];
    DType = DType::U32;
    Option<Name> = None;
    Tolerance = Tolerance(0.0);
    Direction = Direction::Desc;
    QrMode = QrMode::Reduced;
    TieBreak = TieBreak::High;
    Transform = Transform::None;
    // A size and a number of sweeps.
    usize = 2;
    [usize; 2] = [2, 2];
}

impl Example for Sizes {
    fn example(x: &TensorType) -> Sizes {
        x.shape.sizes().into()
    }
}

impl Example for Shape {
    fn example(x: &TensorType) -> Shape {
        x.shape.clone()
    }
}

impl Example for Starts {
    fn example(x: &TensorType) -> Starts {
        Starts::Static(smallvec![0; x.shape.rank()])
    }
}

impl Example for SmallVec<[Padding; 4]> {
    fn example(x: &TensorType) -> Self {
        smallvec![Padding { low: 1, high: 0, interior: 1 }; x.shape.rank()]
    }
}

impl<T: Example> Example for Box<T> {
    fn example(x: &TensorType) -> Box<T> {
        Box::new(T::example(x))
    }
}

impl Example for Window {
    fn example(x: &TensorType) -> Window {
        let rank = x.shape.rank();
        Window {
            sizes: smallvec![2; rank],
            strides: smallvec![1; rank],
            padding: smallvec![(0, 0); rank],
            dilations: smallvec![1; rank],
        }
    }
}
