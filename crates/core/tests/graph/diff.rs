//! Differences of graphs, as text and as data.

use crate::common::regions;
use defn_core::diff::{Aspect, Change, Difference, diff};
use defn_core::form::name;
use defn_core::region::Region;
use defn_core::{DType, TensorType, pass};
use insta::assert_snapshot;
use proptest::prelude::*;

fn parse(text: &str) -> Region {
    Region::from_text(&format!("defn-ir 1\n{text}")).unwrap()
}

const OLD: &str = r#"(f32, f32[2]) {
    %0 = parameter {index: 0} : f32
    %1 = parameter {index: 1} : f32[2]
    %2 = sin %0 : f32
    %3 = multiply %2 %1 : f32[2]
    %4 = sum %3 {axes: [0], keep_axes: false} : f32
    %5 = exp %4 : f32
    return %5
}"#;

#[test]
fn a_change_is_told_once() {
    assert!(diff(&parse(OLD), &parse(OLD)).is_empty());
    let new = OLD.replace("sin", "cos");
    let difference = diff(&parse(OLD), &parse(&new));
    assert_snapshot!(difference.to_string(), @r"
    - %2 = sin %0 : f32
    + %2 = cos %0 : f32
    ");
    let new = OLD.replace("axes: [0], keep_axes: false} : f32", "axes: [0], keep_axes: true} : f32[1]");
    let new = new.replace("exp %4 : f32", "exp %4 : f32[1]");
    let difference = diff(&parse(OLD), &parse(&new));
    assert_snapshot!(difference.to_string(), @r"
    - %4 = sum %3 {axes: [0], keep_axes: false} : f32
    + %4 = sum %3 {axes: [0], keep_axes: true} : f32[1]
    - %5 = exp %4 : f32
    + %5 = exp %4 : f32[1]
    ");
    let aspects = |change: &Change| match change {
        Change::Changed { aspects, .. } => aspects.clone(),
        Change::Added(_) | Change::Removed(_) => Vec::new(),
    };
    let aspects: Vec<_> = difference.nodes.iter().map(aspects).collect();
    assert_eq!(aspects, [vec![Aspect::Attributes, Aspect::Types], vec![Aspect::Types]]);
}

#[test]
fn nodes_come_and_go() {
    let new = r#"(f32, f32[2]) {
        %0 = parameter {index: 0} : f32
        %1 = parameter {index: 1} : f32[2]
        %2 = sin %0 : f32
        %3 = negate %2 : f32
        %4 = multiply %3 %1 : f32[2]
        %5 = sum %4 {axes: [0], keep_axes: false} : f32
        return %5
    }"#;
    let difference = diff(&parse(OLD), &parse(new));
    assert_snapshot!(difference.to_string(), @r"
    + %3 = negate %2 : f32
    - %3 = multiply %2 %1 : f32[2]
    + %4 = multiply %3 %1 : f32[2]
    - %5 = exp %4 : f32
    - return %5
    + return %5
    ");
    assert_eq!(difference.equal, 2);
}

#[test]
fn operands_inputs_and_results_differ() {
    let new = r#"(f32; f32[3]) {
        %0 = parameter {index: 0} : f32
        %1 = parameter {index: 1} : f32[3]
        %2 = sin %0 : f32
        %3 = multiply %1 %2 : f32[3]
        %4 = sum %3 {axes: [0], keep_axes: false} : f32
        %5 = exp %4 : f32
        return %5 %2
    }"#;
    assert_snapshot!(diff(&parse(OLD), &parse(new)).to_string(), @r"
    - 2 parameters
    + 1 parameter
    - input 1 : f32[2]
    + input 1 : f32[3]
    - %3 = multiply %2 %1 : f32[2]
    + %3 = multiply %1 %2 : f32[3]
    - return %5
    + return %5 %2
    ");
    let fewer = "(f32) {
        %0 = parameter {index: 0} : f32
        return %0
    }";
    assert_snapshot!(diff(&parse(OLD), &parse(fewer)).to_string(), @r"
    - 2 parameters
    + 1 parameter
    - input 1 : f32[2]
    - %2 = sin %0 : f32
    - %3 = multiply %2 %1 : f32[2]
    - %4 = sum %3 {axes: [0], keep_axes: false} : f32
    - %5 = exp %4 : f32
    - return %5
    + return %0
    ");
}

#[test]
fn what_has_only_moved_is_equal() {
    let old = "(f32) {
        %0 = parameter {index: 0} : f32
        %1 = sin %0 : f32
        %2 = cos %0 : f32
        %3 = exp %0 : f32
        %4 = add %1 %2 : f32
        %5 = add %4 %3 : f32
        return %5
    }";
    let new = "(f32) {
        %0 = parameter {index: 0} : f32
        %1 = exp %0 : f32
        %2 = cos %0 : f32
        %3 = sin %0 : f32
        %4 = add %3 %2 : f32
        %5 = add %4 %1 : f32
        return %5
    }";
    let difference = diff(&parse(old), &parse(new));
    assert!(difference.is_empty(), "{difference}");
    assert_eq!(difference.equal, 5);
    // The order of effects can be observed.
    let hooks = |first: usize| {
        format!(
            "(f32) {{
                %0 = parameter {{index: 0}} : f32
                %1 = hook %0 {{slot: {first}, name: none}} : f32
                %2 = hook %0 {{slot: {}, name: none}} : f32
                return %0
            }}",
            1 - first
        )
    };
    assert!(!diff(&parse(&hooks(0)), &parse(&hooks(1))).is_empty());
}

#[test]
fn regions_are_compared_inside() {
    let of = |op: &str, count: &str| {
        parse(&format!(
            "(f32, f32[2]) {{
                %0 = parameter {{index: 0}} : f32
                %1 = parameter {{index: 1}} : f32[2]
                %2 = while %0 {{state: 1, trips: {count}}} : f32
                  cond (f32) {{
                    %0 = parameter {{index: 0}} : f32
                    return %0
                  }}
                  body (f32) {{
                    %0 = parameter {{index: 0}} : f32
                    %1 = {op} %0 : f32
                    return %1
                  }}
                %3 = tensor {{bytes: x\"0000803f\"}} : f32
                return %2 %3
            }}"
        ))
    };
    assert_snapshot!(diff(&of("sin", "3"), &of("cos", "3")).to_string(), @r"
      %2 = while %0 {state: 1, trips: 3} : f32
        body
    -     %1 = sin %0 : f32
    +     %1 = cos %0 : f32
    ");
    assert_snapshot!(diff(&of("sin", "3"), &of("cos", "4")).to_string(), @r"
    - %2 = while %0 {state: 1, trips: 3} : f32
    + %2 = while %0 {state: 1, trips: 4} : f32
        body
    -     %1 = sin %0 : f32
    +     %1 = cos %0 : f32
    ");
    let branches = |count: usize| {
        let branch = "branch (; f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            return %1
          } ";
        parse(&format!(
            "(u8, f32) {{
                %0 = parameter {{index: 0}} : u8
                %1 = parameter {{index: 1}} : f32
                %2 = cond {} %1 : f32 {}
                return %2
            }}",
            "%0 ".repeat(count - 1),
            branch.repeat(count)
        ))
    };
    assert_snapshot!(diff(&branches(2), &branches(3)).to_string(), @r"
    - %2 = cond %0 %1 : f32
    + %2 = cond %0 %0 %1 : f32
        branch
    +     input 0 : f32
    +     %1 = sin %0 : f32
    -     return
    +     return %1
    ");
}

/// The number of nodes without parameters.
fn count(region: &Region) -> usize {
    region.graph().nodes().iter().filter(|node| name(&node.op) != "parameter").count()
}

/// The numbers of removed, added and changed nodes.
fn counts(difference: &Difference) -> [usize; 3] {
    let mut counts = [0; 3];
    for change in &difference.nodes {
        match change {
            Change::Removed(_) => counts[0] += 1,
            Change::Added(_) => counts[1] += 1,
            Change::Changed { .. } => counts[2] += 1,
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_node_is_accounted_for(old in regions(), new in regions()) {
        prop_assert!(diff(&old, &old).is_empty());
        let difference = diff(&old, &new);
        prop_assert_eq!(difference.is_empty(), difference.to_string().is_empty());
        let [removed, added, changed] = counts(&difference);
        prop_assert_eq!(difference.equal + changed + removed, count(&old));
        prop_assert_eq!(difference.equal + changed + added, count(&new));
        let back = diff(&new, &old);
        prop_assert_eq!(back.is_empty(), difference.is_empty());
    }

    /// Removing nodes changes no other node, and only the removed ones are reported. `cse` removes equal
    /// computations first, since one of these could be mistaken for a removed one.
    #[test]
    fn what_was_dropped_is_told(region in regions()) {
        let region = pass::cse(&region).unwrap();
        let new = pass::dce(&region).unwrap();
        let difference = diff(&region, &new);
        prop_assert_eq!(counts(&difference), [count(&region) - count(&new), 0, 0], "{}", difference);
        prop_assert!(difference.inputs.is_empty() && difference.results.is_none());
    }

    /// Graphs with different texts differ: no difference is overlooked.
    #[test]
    fn only_equal_graphs_have_no_difference(region in regions(), drop in any::<prop::sample::Index>()) {
        let text = region.to_text();
        let names = ["sin", "add", "f32", "true", "1", "axes: [0]"];
        let others = ["cos", "multiply", "f64", "false", "0", "axes: [1]"];
        let which = drop.index(names.len());
        // If the altered text is a legal graph, it differs.
        if let Ok(other) = Region::from_text(&text.replacen(names[which], others[which], 1))
            && other != region
        {
            prop_assert!(!diff(&region, &other).is_empty(), "{}", text);
        }
        let mut inputs = region.inputs().to_vec();
        inputs.push(TensorType::scalar(DType::F32));
        let (graph, _, parameters, results) = region.clone().into_parts();
        let wider = Region::new(graph, inputs, parameters, results);
        prop_assert_eq!(diff(&region, &wider).inputs.len(), 1);
    }
}
