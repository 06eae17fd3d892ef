//! Products of f32 with an operand of a narrower type: its elements are converted while they are packed.

use defn_core::DType;
use half::{bf16, f16};

use super::gemm::{self, Accumulation, GemmOutput, Operand};
use super::{Dot, Matrices, OperandLayout};
use crate::kernels::SendPtr;
use crate::kernels::epilogue::EpilogueFn;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Multiplications of a product below which both operands are converted beforehand.
const MIN_WORK: usize = 1 << 20;

/// Which operands of the product of a plan, computed in a dtype, [`dot`](super::dot) reads in their own: the larger one.
/// Parts of the other may be packed several times.
pub(crate) fn reads_narrow(plan: &Dot, computed: DType, dtypes: [DType; 2]) -> [bool; 2] {
    let &Dot { m, n, k, .. } = plan;
    if computed != DType::F32
        || plan.is_of_vector()
        || m.saturating_mul(n).saturating_mul(k) < MIN_WORK
        || gemm::reads_in_place::<f32>([m, n, k])
    {
        return [false; 2];
    }
    [m > n && Narrow::of(dtypes[0]).is_some(), m <= n && Narrow::of(dtypes[1]).is_some()]
}

/// The types whose elements are converted while they are packed. Those of 8-bit floats are decoded by a table, which
/// generated code does faster.
#[derive(Clone, Copy, Debug)]
enum Narrow {
    F16,
    Bf16,
    S8,
    U8,
}

impl Narrow {
    fn of(dtype: DType) -> Option<Narrow> {
        let all = [
            (DType::F16, Narrow::F16),
            (DType::BF16, Narrow::Bf16),
            (DType::S8, Narrow::S8),
            (DType::U8, Narrow::U8),
        ];
        all.into_iter().find_map(|(of, narrow)| (of == dtype).then_some(narrow))
    }
}

/// The product of f32 and narrower matrices. The order of additions is that of matrices of f32.
pub(super) fn multiply(
    plan: &Dot,
    (a, b): (View<'_>, View<'_>),
    (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let &Dot { batch, m, n, k, .. } = plan;
    let target = SendPtr::new(out.start().cast::<f32>());
    for index in 0..batch {
        with_operand(a, &plan.a, index, &mut |a| {
            with_operand(b, &plan.b, index, &mut |b| {
                // SAFETY: products are disjoint and inside the result, which has `batch * m * n` elements.
                unsafe {
                    let first = index * m * n;
                    let out = GemmOutput::new(target.at(first), n).with_epilogue(epilogue, first);
                    gemm::multiply([m, n, k], a, b, out, Accumulation::Nothing, scratch.slice(), par);
                }
            });
        });
    }
}

/// Calls `work` with a matrix of a batch.
fn with_operand(view: View<'_>, side: &OperandLayout, index: usize, work: &mut dyn FnMut(&dyn Operand<f32>)) {
    macro_rules! of {
        ($S:ty) => {
            work(&Matrices { elements: view.slice::<$S>(), side }.matrix(index))
        };
    }
    match Narrow::of(view.ty().dtype) {
        None => of!(f32),
        Some(Narrow::F16) => of!(f16),
        Some(Narrow::Bf16) => of!(bf16),
        Some(Narrow::S8) => of!(i8),
        Some(Narrow::U8) => of!(u8),
    }
}
