//! Sorting.

use defn_core::op::Direction;
use defn_core::{Axis, DType, Kind, Scalar};

use super::reduce::RegionResult;
use super::text::{RegionText, Ssa, Ty, Writer};
use super::value::little_endian;
use super::{Lowering, Operands};
use crate::element::ElementType as E;

impl Writer {
    /// Whether element `a` sorts before `b`; NaN is above every number. Both are in the storage type.
    fn comes_before(&mut self, a: &Ssa, b: &Ssa, dtype: DType, direction: Direction) -> Ssa {
        if !self.on_host && dtype.kind() == Kind::Float && dtype.bits() > 8 {
            return self.comes_before_in_total_order(a, b, dtype, direction);
        }
        let (a, b) = (self.load(a, dtype), self.load(b, dtype));
        let (order, first, second) = match direction {
            Direction::Asc => ("LT", &b, &a),
            Direction::Desc => ("GT", &a, &b),
        };
        let before = self.compare(&a, &b, order);
        if dtype.kind() != Kind::Float {
            return before;
        }
        let (nan, number) = (self.compare(first, first, "NE"), self.compare(second, second, "EQ"));
        let both = self.op("and", &[&nan, &number], "", nan.ty.clone());
        self.op("or", &[&before, &both], "", nan.ty.clone())
    }

    /// The same in the only form that XLA recognizes: on NVIDIA's GPUs it then sorts by the radix sort of the library
    /// CUB.
    fn comes_before_in_total_order(&mut self, a: &Ssa, b: &Ssa, dtype: DType, direction: Direction) -> Ssa {
        let nan = Scalar::new(dtype, f64::NAN).expect("a float type has NaN");
        let [a, b] = [a, b].map(|x| {
            let zero = self.number_like(x, 0);
            let is_zero = self.compare(x, &zero, "EQ");
            let y = self.choose(&is_zero, &zero, x);
            let nan = self.literal(x.ty.clone(), &little_endian(dtype, nan.to_bytes()));
            let is_nan = self.compare(x, x, "NE");
            self.choose(&is_nan, &nan, &y)
        });
        let direction = match direction {
            Direction::Asc => "LT",
            Direction::Desc => "GT",
        };
        let attributes = format!(
            "comparison_direction = #stablehlo<comparison_direction {direction}>, \
             compare_type = #stablehlo<comparison_type TOTALORDER>"
        );
        self.op("compare", &[&a, &b], &attributes, a.ty.of(E::Pred))
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
                Ok(vec![w.comes_before(&arguments[0], &arguments[1], dtype, direction)])
            }),
        };
        let attributes = format!("dimension = {} : i64, is_stable = true", axis.index());
        w.op_with("sort", operands, &attributes, vec![region], &types)
            .expect("comparisons are always written")
    }
}
