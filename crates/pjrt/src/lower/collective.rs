//! Collectives over the devices of a mesh: each device is a replica, and groups are lists of replicas.

use defn_core::op::{AllReduceOp, Collective, CollectiveOp, DeviceGroups};
use defn_core::{DType, TensorType};

use super::extreme::{Extreme, GREATEST, LEAST, bits_of};
use super::reduce::{RegionResult, combine};
use super::text::{Dims, Ssa, Ty, Writer};
use super::value::{compute_type, storage_type};
use super::{Lowering, Operands, tensor};
use crate::element::ElementType as E;

/// A matrix of integers as an attribute.
fn matrix(rows: &[Vec<u32>], width: usize) -> String {
    let ty = format!("tensor<{}x{width}xi64>", rows.len());
    if rows.is_empty() {
        return format!("dense<> : {ty}");
    }
    let row = |row: &Vec<u32>| {
        let entries: Vec<String> = row.iter().map(u32::to_string).collect();
        format!("[{}]", entries.join(", "))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("dense<[{}]> : {ty}", rows.join(", "))
}

fn groups(device_groups: &DeviceGroups) -> String {
    let rows: Vec<Vec<u32>> = device_groups.groups().map(<[u32]>::to_vec).collect();
    format!("replica_groups = {}", matrix(&rows, device_groups.size()))
}

/// The type in which elements are added and compared between devices: collective libraries have no 16-bit integers.
fn reduction_type(dtype: DType) -> E {
    match dtype {
        DType::Bool => E::U8,
        DType::U16 => E::U32,
        DType::S16 => E::S32,
        DType::U2
        | DType::U4
        | DType::U8
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S32
        | DType::S64
        | DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F16
        | DType::BF16
        | DType::F32
        | DType::F64
        | DType::C64
        | DType::C128 => compute_type(dtype),
    }
}

/// The type as which elements are moved: their bits, where a collective might not support their own type.
fn transfer_type(dtype: DType) -> Option<E> {
    match dtype {
        DType::Bool | DType::F8E5M2 | DType::F8E4M3FN => Some(E::U8),
        DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::F16
        | DType::BF16
        | DType::F32
        | DType::F64
        | DType::C64
        | DType::C128 => None,
    }
}

impl Writer {
    /// A collective that reduces.
    fn reduce_across(&mut self, name: &str, fold: &'static str, x: &Ssa, attributes: &str, ty: Ty) -> Ssa {
        let region = combine(x.element(), fold);
        let reduced: RegionResult<Vec<Ssa>> = self.op_with(name, &[x], attributes, vec![region], &[ty]);
        reduced.expect("an operation of two operands is always written").remove(0)
    }
}

impl Lowering {
    pub(super) fn collective(&mut self, op: &CollectiveOp, x: &Operands<'_>, out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        if out.size() == 0 {
            return w.literal(tensor(out), &[]);
        }
        let groups = groups(&op.groups);
        match &op.kind {
            Collective::AllReduce { op: AllReduceOp::Sum } => {
                let loaded = w.load(&x.values[0], out.dtype);
                let wide = w.convert(&loaded, reduction_type(out.dtype));
                let sum = w.reduce_across("all_reduce", "add", &wide, &groups, wide.ty.clone());
                let sum = w.convert(&sum, compute_type(out.dtype));
                w.store(&sum, out.dtype)
            }
            Collective::AllReduce { op: AllReduceOp::Max } => self.extreme(x, out, GREATEST, &groups),
            Collective::AllReduce { op: AllReduceOp::Min } => self.extreme(x, out, LEAST, &groups),
            Collective::AllGather { axis } => {
                let attributes = format!("all_gather_dim = {} : i64, {groups}", axis.index());
                self.move_elements("all_gather", x, out, &attributes)
            }
            Collective::ReduceScatter { axis } => {
                let loaded = w.load(&x.values[0], out.dtype);
                let wide = w.convert(&loaded, reduction_type(out.dtype));
                let attributes = format!("scatter_dimension = {} : i64, {groups}", axis.index());
                let ty = Ty::new(wide.element(), out.shape.sizes());
                let sum = w.reduce_across("reduce_scatter", "add", &wide, &attributes, ty);
                let sum = w.convert(&sum, compute_type(out.dtype));
                w.store(&sum, out.dtype)
            }
            Collective::CollectivePermute { pairs } => {
                let rows: Vec<Vec<u32>> = pairs.iter().map(|&(from, to)| vec![from, to]).collect();
                if rows.is_empty() {
                    let zero =
                        w.literal(Ty::scalar(storage_type(out.dtype)), &vec![0; out.dtype.storage_bytes()]);
                    return w.splat(&zero, out.shape.sizes());
                }
                let attributes = format!("source_target_pairs = {}", matrix(&rows, 2));
                self.move_elements("collective_permute", x, out, &attributes)
            }
            Collective::MeshIndex => self.position_in_group(&op.groups),
        }
    }

    /// A collective that moves elements in their storage type.
    fn move_elements(&mut self, name: &str, x: &Operands<'_>, out: &TensorType, attributes: &str) -> Ssa {
        let (w, value) = (&mut self.writer, &x.values[0]);
        let Some(bits) = transfer_type(out.dtype) else {
            return w.op(name, &[value], attributes, tensor(out));
        };
        // A predicate has no bits to reinterpret as a byte.
        let conversion = if out.dtype.is_bool() { "convert" } else { "bitcast_convert" };
        let converted = w.op(conversion, &[value], "", value.ty.of(bits));
        let received = w.op(name, &[&converted], attributes, tensor(out).of(bits));
        w.op(conversion, &[&received], "", tensor(out))
    }

    /// The greatest or the least over all devices. Floats are compared by their bits, with NaN beyond every number: the
    /// result of a collective on NaN is unspecified.
    fn extreme(&mut self, x: &Operands<'_>, out: &TensorType, extreme: Extreme, groups: &str) -> Ssa {
        let w = &mut self.writer;
        let loaded = w.load(&x.values[0], out.dtype);
        let Some(integer) = bits_of(loaded.element()) else {
            let wide = w.convert(&loaded, reduction_type(out.dtype));
            let reduced = w.reduce_across("all_reduce", extreme.name, &wide, groups, wide.ty.clone());
            let reduced = w.convert(&reduced, compute_type(out.dtype));
            return w.store(&reduced, out.dtype);
        };
        let keys = w.ordered_keys(&loaded, integer, extreme);
        let reduced = w.reduce_across("all_reduce", extreme.name, &keys, groups, keys.ty.clone());
        let number = w.unordered_keys(&reduced, loaded.element());
        w.store(&number, out.dtype)
    }

    /// A device's position in its group, from a table.
    fn position_in_group(&mut self, device_groups: &DeviceGroups) -> Ssa {
        let w = &mut self.writer;
        let mut positions = vec![0_i32; device_groups.devices().len()];
        for group in device_groups.groups() {
            for (&device, position) in group.iter().zip(0_i32..) {
                positions[device as usize] = position;
            }
        }
        let bytes: Vec<u8> = positions.iter().flat_map(|position| position.to_le_bytes()).collect();
        let table = w.literal(Ty::new(E::S32, &[positions.len()]), &bytes);
        let id = w.op("replica_id", &[], "", Ty::scalar(E::U32));
        let id = w.convert(&id, E::S32);
        let one = Ty { element: E::S32, dims: Dims::from_slice(&[1]) };
        let entry = w.op("dynamic_slice", &[&table, &id], "slice_sizes = array<i64: 1>", one);
        w.reshape(&entry, &[])
    }
}
