//! Sorting.

use defn_core::op::Direction;
use defn_core::{Axis, DType, Kind};

use super::reduce::RegionResult;
use super::text::{RegionText, Ssa, Ty, Writer};
use super::{Lowering, Operands};
use crate::element::ElementType as E;

impl Writer {
    /// Whether element `a` sorts before `b`, both in the compute type; NaN is above every number.
    fn comes_before(&mut self, a: &Ssa, b: &Ssa, kind: Kind, direction: Direction) -> Ssa {
        let (order, first, second) = match direction {
            Direction::Asc => ("LT", b, a),
            Direction::Desc => ("GT", a, b),
        };
        let before = self.compare(a, b, order);
        if kind != Kind::Float {
            return before;
        }
        let (nan, number) = (self.compare(first, first, "NE"), self.compare(second, second, "EQ"));
        let both = self.op("and", &[&nan, &number], "", nan.ty.clone());
        self.op("or", &[&before, &both], "", nan.ty.clone())
    }
}

impl Lowering {
    pub(super) fn sort(&mut self, x: &Operands<'_>, axis: Axis, direction: Direction) -> Ssa {
        let mut sorted = self.sorted(&[&x.values[0]], x.types[0].dtype, axis, direction);
        sorted.remove(0)
    }

    pub(super) fn argsort(
        &mut self,
        x: &Operands<'_>,
        axis: Axis,
        direction: Direction,
        dtype: DType,
    ) -> Ssa {
        let value = &x.values[0];
        let positions = self.writer.iota(value.ty.of(E::S64), axis.index());
        let sorted = self.sorted(&[value, &positions], x.types[0].dtype, axis, direction);
        self.writer.cast(&sorted[1], DType::S64, dtype)
    }

    /// Sorts all operands by the first one's elements. The sort is stable.
    fn sorted(&mut self, operands: &[&Ssa], dtype: DType, axis: Axis, direction: Direction) -> Vec<Ssa> {
        let w = &mut self.writer;
        let types: Vec<Ty> = operands.iter().map(|operand| operand.ty.clone()).collect();
        let arguments =
            types.iter().flat_map(|ty| [Ty::scalar(ty.element), Ty::scalar(ty.element)]).collect::<Vec<_>>();
        let region = RegionText {
            arguments,
            write: Box::new(move |w: &mut Writer, arguments: &[Ssa]| -> RegionResult<Vec<Ssa>> {
                let (a, b) = (w.load(&arguments[0], dtype), w.load(&arguments[1], dtype));
                Ok(vec![w.comes_before(&a, &b, dtype.kind(), direction)])
            }),
        };
        let attributes = format!("dimension = {} : i64, is_stable = true", axis.index());
        w.op_with("sort", operands, &attributes, vec![region], &types)
            .expect("comparisons are always written")
    }
}
