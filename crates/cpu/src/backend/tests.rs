//! Ops write the bits that they give into memory that is chosen for them, in an operand's place too.

#[path = "../../../core/tests/common/mod.rs"]
mod graphs;

use std::sync::Arc;

use defn_core::backend::{Buffer, HostMemory};
use defn_core::graph::Graph;
use defn_core::{Number, Result, Scalar, TensorType};
use proptest::prelude::*;

use super::*;

/// A value that an op takes.
type Given = (TensorType, Arc<dyn Buffer>);

/// Some elements, different for each position.
fn elements(index: usize, ty: &TensorType) -> Arc<dyn Buffer> {
    let element = |position: usize| {
        let number = match ty.dtype.is_integer() {
            true => Number::Int((position * 7 + index) as i128 % 2),
            false => Number::Float(((11 * position + 3 * index) % 7) as f64 / 4.0 - 0.6),
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    cpu_backend().from_host(ty, HostMemory::from(bytes)).unwrap()
}

fn bytes(ty: &TensorType, buffer: &dyn Buffer) -> Vec<u8> {
    let mut bytes = vec![0; ty.byte_size()];
    buffer.read(&mut bytes).unwrap();
    bytes
}

/// Runs an op into memory that held something else. `over` are operands that lie where the result goes, the first of
/// which is said to.
fn into_memory(
    op: &Op,
    given: &[Given],
    outputs: &[TensorType],
    over: &[usize],
    checked: bool,
) -> Result<Vec<Vec<u8>>> {
    let windows: Vec<Window> = given
        .iter()
        .map(|(ty, buffer)| window("test", &Operand { ty: ty.clone(), buffer: buffer.clone() }).unwrap())
        .collect();
    let mut storages: Vec<Storage> =
        outputs.iter().map(|ty| Storage::allocate("test", ty.byte_size()).unwrap()).collect();
    let starts: Vec<*mut u8> = storages.iter_mut().map(|storage| storage.start_mut().unwrap()).collect();
    for (start, ty) in starts.iter().zip(outputs) {
        // SAFETY: the storage has room for the type.
        unsafe { start.write_bytes(0xA5, ty.byte_size()) };
    }
    for &index in over {
        let from = windows[index].bytes();
        // SAFETY: the operand has as many bytes as the only result.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), starts[0], given[index].0.byte_size()) };
    }
    let views: Vec<View<'_>> = given
        .iter()
        .zip(&windows)
        .enumerate()
        .map(|(index, ((ty, _), window))| {
            if over.contains(&index) {
                // SAFETY: the elements were just written.
                unsafe { View::of_part(ty, starts[0]) }
            } else {
                View::new(ty, window.bytes())
            }
        })
        .collect();
    let results: Vec<ViewMut<'_>> = outputs
        .iter()
        .zip(&starts)
        // SAFETY: each storage has room for its type, and nothing else reaches it but operands that are overwritten.
        .map(|(ty, &start)| unsafe { ViewMut::new(ty, start) })
        .collect();
    let par = parallel(given.iter().map(|(ty, _)| ty).chain(outputs));
    run_into(op, &views, &results, over.first().copied(), par, checked, &|| Ok(()))?;
    let read = |(ty, &start): (&TensorType, &*mut u8)| {
        // SAFETY: all of it was written.
        unsafe { std::slice::from_raw_parts(start, ty.byte_size()) }.to_vec()
    };
    Ok(outputs.iter().zip(&starts).map(read).collect())
}

/// Checks an op in every place where its result may be, and gives its results.
fn check(op: &Op, given: &[Given], outputs: &[TensorType]) -> Option<Vec<Arc<dyn Buffer>>> {
    let operands =
        || given.iter().map(|(ty, buffer)| Operand { ty: ty.clone(), buffer: buffer.clone() }).collect();
    let backend = cpu_backend();
    let mut results = None;
    for checked in [true, false] {
        let want = if checked {
            backend.run(op, operands(), outputs)
        } else {
            backend.run_unchecked(op, operands(), outputs)
        };
        let types: Vec<&TensorType> = given.iter().map(|(ty, _)| ty).collect();
        let alone = may_overwrite(op, &types, outputs);
        let same = |&index: &usize| given[index].0 == given[alone[0]].0;
        let together: Vec<usize> = alone.iter().copied().filter(same).collect();
        let mut places: Vec<(Vec<usize>, Vec<Given>)> = vec![(Vec::new(), given.to_vec())];
        places.extend(alone.iter().map(|&index| (vec![index], given.to_vec())));
        let shown = || format!("{op:?} of {types:?} to {outputs:?}");
        let want = want.map(|want| {
            let read = |(ty, buffer): (&TensorType, &Arc<dyn Buffer>)| bytes(ty, &**buffer);
            (outputs.iter().zip(&want).map(read).collect::<Vec<_>>(), want)
        });
        for (over, given) in places {
            let got = into_memory(op, &given, outputs, &over, checked);
            match (&want, got) {
                (Ok((want, _)), Ok(got)) => assert!(*want == got, "{} over {over:?}", shown()),
                (Err(want), Err(got)) => assert_eq!(want.to_string(), got.to_string(), "{}", shown()),
                (want, got) => panic!("{want:?} and {got:?}: {}", shown()),
            }
        }
        if together.len() > 1 && want.is_ok() {
            let one: Vec<Given> = (0..given.len())
                .map(|index| given[if together.contains(&index) { together[0] } else { index }].clone())
                .collect();
            let want = into_memory(op, &one, outputs, &[], checked).ok();
            let got = into_memory(op, &one, outputs, &together, checked).ok();
            assert_eq!(want, got, "{} over {together:?}", shown());
        }
        results = want.ok().map(|(_, buffers)| buffers.into_iter().collect());
    }
    results
}

/// Checks every node of a region, on what the nodes before have given.
fn check_all(graph: &Graph) {
    let mut values: Vec<Vec<Given>> = Vec::new();
    for (position, node) in graph.nodes().iter().enumerate() {
        let given: Vec<Given> = node
            .inputs
            .iter()
            .map(|input| values[input.node as usize][input.output as usize].clone())
            .collect();
        // Folds by any other function are loops by then.
        let foreign = if let Op::Fold(fold) = &node.op { !folding::is_native(fold) } else { false };
        let results = if foreign { None } else { check(&node.op, &given, &node.outputs) };
        let results =
            results.unwrap_or_else(|| node.outputs.iter().map(|ty| elements(position, ty)).collect());
        values.push(node.outputs.iter().cloned().zip(results).collect());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn ops_write_where_they_are_told(region in graphs::regions()) {
        check_all(region.graph());
    }
}
