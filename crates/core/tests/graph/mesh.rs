//! Meshes, shardings, and legal programs for meshes.

use std::sync::Arc;

use defn_core::builder::{BuildCollective, BuildElementwise, Builder};
use defn_core::graph::{Graph, Value};
use defn_core::mesh::{self, Mesh, Spec};
use defn_core::op::{AllReduceOp, CondOp, DeviceGroups, Op, WhileOp};
use defn_core::region::Region;
use defn_core::{DType, Name, Result, Shape, TensorType, grad};

fn names(names: &[&str]) -> Vec<Name> {
    names.iter().map(|&name| name.into()).collect()
}

fn mesh_of(axes: &[(&str, usize)]) -> Result<Mesh> {
    Mesh::new(axes.iter().map(|&(name, size)| (name.into(), size)).collect())
}

fn cube() -> Mesh {
    mesh_of(&[("x", 2), ("y", 3), ("z", 2)]).unwrap()
}

fn f32s(sizes: &[usize]) -> TensorType {
    TensorType::new(DType::F32, Shape::new(sizes)).unwrap()
}

fn region(ty: TensorType, body: impl FnOnce(&mut Graph, Value) -> Result<Vec<Value>>) -> Region {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let results = body(&mut graph, x).unwrap();
    Region::new(graph, vec![ty], 1, results.into_iter().collect())
}

#[test]
fn groups_hold_the_devices_along_their_axes() {
    let mesh = cube();
    let groups = |axes: &[&str]| -> Vec<Vec<u32>> {
        mesh.device_groups("test", &names(axes)).unwrap().groups().map(<[u32]>::to_vec).collect()
    };
    assert_eq!(groups(&["z"]), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]);
    assert_eq!(groups(&["x"]), [[0, 6], [1, 7], [2, 8], [3, 9], [4, 10], [5, 11]]);
    assert_eq!(groups(&["y", "x"]), [[0, 6, 2, 8, 4, 10], [1, 7, 3, 9, 5, 11]]);
    assert_eq!(groups(&["x", "y"]), [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]);
    assert_eq!(groups(&[]), [(0..12).collect::<Vec<u32>>()]);
    assert_eq!(&**mesh.device_groups("test", &[]).unwrap().axes(), "x, y, z");
    assert!(mesh.device_groups("test", &names(&["w"])).unwrap_err().to_string().contains("no axis \"w\""));
    assert!(mesh.device_groups("test", &names(&["x", "x"])).is_err());
}

#[test]
fn every_device_is_in_one_group() {
    let groups = |devices: &[u32], size| DeviceGroups::new("x".into(), devices, size);
    assert_eq!(groups(&[1, 0, 3, 2], 2).unwrap().size(), 2);
    assert_eq!(
        groups(&[0, 1, 2], 2).unwrap_err(),
        "3 devices in groups of 2, groups of one size are required"
    );
    for wrong in [&[0, 0][..], &[0, 2], &[1, 2]] {
        assert!(groups(wrong, 2).unwrap_err().contains("each of 0..2 once is required"), "{wrong:?}");
    }
    assert!(groups(&[], 0).is_err());
    assert!(mesh_of(&[]).is_err());
    assert!(mesh_of(&[("x", 2), ("x", 2)]).is_err());
    assert!(mesh_of(&[("x", 0)]).is_err());
    assert!(mesh_of(&[("x", 1 << 15), ("y", 4)]).is_err());
    assert!(mesh_of(&[("x", usize::MAX), ("y", 2)]).is_err());
}

#[test]
fn blocks_make_up_the_whole() {
    let mesh = cube();
    let whole =
        TensorType::new(DType::U8, Shape::named(&[12, 5, 6], &[Some("row"), None, Some("column")]).unwrap())
            .unwrap();
    let spec = Spec(vec![names(&["x", "y"]), Vec::new(), names(&["z"])]);
    let block = spec.block(&mesh, "x", &whole).unwrap();
    assert_eq!(block.to_string(), "u8[row: 2][5][column: 3]");
    assert_eq!(spec.whole(&mesh, "x", &block).unwrap(), whole);
    let positions: Vec<Vec<usize>> =
        (0..12).map(|device| spec.block_position(&mesh, device).unwrap()).collect();
    assert_eq!(positions[0], [0, 0, 0]);
    assert_eq!(positions[5], [2, 0, 1]);
    assert_eq!(positions[10], [5, 0, 0]);
    let mut distinct = positions.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 12);
    assert_eq!(spec.to_string(), "((\"x\", \"y\"), None, \"z\")");
    let ragged = spec.block(&mesh, "w", &f32s(&[8, 5, 6])).unwrap_err().to_string();
    assert!(
        ragged.starts_with("shard: axis 0 of w, which is f32[8][5][6], is laid over the 6 devices along")
    );
    assert!(spec.block(&mesh, "w", &f32s(&[12])).unwrap_err().to_string().contains("at most one entry"));
    let huge = TensorType { dtype: DType::U8, shape: Shape::new(&[usize::MAX / 2]) };
    assert!(Spec(vec![names(&["y"])]).whole(&mesh, "w", &huge).is_err());
    assert_eq!(Spec(vec![Vec::new(), Vec::new()]).trimmed(), Spec::default());
}

#[test]
fn the_mesh_that_is_entered_last_is_the_current_one() {
    assert!(mesh::current("test").unwrap_err().to_string().starts_with("test: there is no mesh here"));
    let outer = mesh::enter(cube());
    {
        let _inner = mesh::enter(mesh_of(&[("data", 2)]).unwrap());
        assert_eq!(mesh::device_groups("test", &names(&["data"])).unwrap().devices(), [0, 1]);
    }
    assert_eq!(mesh::current("test").unwrap(), cube());
    drop(outer);
    assert!(mesh::current("test").is_err());
}

#[test]
fn texts_of_exchanges_that_cannot_be_are_refused() {
    let text = |line: &str| {
        let text = format!(
            "defn-ir 1\n(f32[4]) {{\n  %0 = parameter {{index: 0}} : f32[4]\n  %1 = {line}\n  return %1\n}}"
        );
        Region::from_text(&text)
    };
    let fits = "all_gather %0 {axis: 0, over: \"x\", groups: [0, 1], size: 2} : f32[8]";
    assert!(text(fits).is_ok());
    for (line, problem) in [
        ("all_reduce %0 {op: \"mean\", over: \"x\", groups: [0, 1], size: 2} : f32[4]", "op is \"mean\""),
        ("all_reduce %0 {op: \"sum\", over: \"x\", groups: [0, 1], size: 3} : f32[4]", "groups of 3"),
        ("all_reduce %0 {op: \"sum\", over: none, groups: [0, 1], size: 2} : f32[4]", "over is none"),
        ("all_gather %0 {axis: 1, over: \"x\", groups: [0, 1], size: 2} : f32[8]", "beyond the rank"),
        ("mesh_index %0 {over: \"x\", groups: [0, 1], size: 2} : s32", "none must be given"),
        (
            "collective_permute %0 {pairs: [0, 1, 0], over: \"x\", groups: [0, 1], size: 2} : f32[4]",
            "an even number",
        ),
        (
            "collective_permute %0 {pairs: [0, 1, 1, 1], over: \"x\", groups: [0, 1], size: 2} : f32[4]",
            "two blocks go to device 1",
        ),
        (
            "collective_permute %0 {pairs: [0, 5], over: \"x\", groups: [0, 1], size: 2} : f32[4]",
            "to device 5 of 2",
        ),
    ] {
        let error = text(line).unwrap_err().to_string();
        assert!(error.contains(problem), "{line}: {error}");
    }
}

#[test]
fn every_device_comes_to_every_exchange() {
    let groups = mesh_of(&[("x", 2)]).unwrap().device_groups("test", &[]).unwrap();
    let exchange =
        || Arc::new(region(f32s(&[]), |g, x| Ok(vec![g.all_reduce(x, AllReduceOp::Sum, &groups)?])));
    let holds = Arc::new(region(f32s(&[]), |g, x| Ok(vec![g.less(x, 9)?])));
    let looped = |trips| {
        let op = WhileOp { state: 1, trips, snapshots: None, cond: holds.clone(), body: exchange() };
        region(f32s(&[]), |g, x| Ok(vec![g.emit_one(Op::While(op), &[x])?]))
    };
    assert!(mesh::check(&looped(Some(3)), 2).is_ok());
    let open = mesh::check(&looped(None), 2).unwrap_err().to_string();
    assert!(open.contains("inside a loop that ends by what a device has"), "{open}");
    let other = mesh::check(&looped(Some(3)), 4).unwrap_err().to_string();
    assert!(other.contains("the program is for 2 devices"), "{other}");
    // A counting loop inside a branch.
    let inner = Arc::new(Region::new(
        looped(Some(3)).graph().clone(),
        vec![f32s(&[])],
        0,
        looped(Some(3)).results().iter().copied().collect(),
    ));
    let branched = region(f32s(&[]), |g, x| {
        let op = CondOp { branches: [inner.clone(), inner].into_iter().collect() };
        Ok(vec![g.emit_one(Op::Cond(op), &[x, x])?])
    });
    assert!(mesh::check(&branched, 2).unwrap_err().to_string().contains("inside a branch"));
}

#[test]
fn an_exchange_is_reversed_by_its_transpose() {
    let groups = cube().device_groups("test", &names(&["y"])).unwrap();
    let region = region(f32s(&[6]), |g, x| {
        let gathered = g.all_gather(x, 0, &groups)?;
        let scattered = g.reduce_scatter(gathered, 0, &groups)?;
        let moved = g.collective_permute(scattered, &[(0, 1), (1, 2)], &groups)?;
        Ok(vec![g.all_reduce(moved, AllReduceOp::Sum, &groups)?])
    });
    let reversed = grad::value_and_grad(&region, 0, &[0]).unwrap();
    let text = reversed.to_text();
    let order = ["all_reduce", "collective_permute", "all_gather", "reduce_scatter"];
    let last: Vec<usize> = order.iter().map(|name| text.rfind(&format!("= {name} ")).unwrap()).collect();
    assert!(last.is_sorted(), "{text}");
    let (there, back) = ("pairs: [0, 2, 2, 4, 1, 3, 3, 5, 6, 8, 8, 10, 7, 9, 9, 11]", "pairs: [2, 0, 4, 2");
    assert!(text.contains(there) && text.contains(back), "{text}");
}
