//! Properties of every graph: it is legal, its text parses back, and passes keep its signature.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::{regions, regions_of_devices, scalars, smooth_regions};
use defn_core::backend::{Checks, Compiler};
use defn_core::evaluator::Evaluator;
use defn_core::form::{all_names, name};
use defn_core::print::display;
use defn_core::region::Region;
use defn_core::{grad, jvp, pass, verify};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn is_legal(region: &Region) -> Result<(), TestCaseError> {
    verify::verify(region).map_err(|problem| TestCaseError::fail(format!("{problem}\n{}", region.to_text())))
}

fn same_signature(old: &Region, new: &Region) -> Result<(), TestCaseError> {
    is_legal(new)?;
    prop_assert_eq!(old.inputs(), new.inputs());
    prop_assert_eq!(old.parameter_count(), new.parameter_count());
    prop_assert!(old.result_types().eq(new.result_types()));
    prop_assert_eq!(old.has_effects() || !new.has_effects(), true, "a pass made an effect");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn text_parses_back_to_an_equal_region(region in regions_of_devices()) {
        is_legal(&region)?;
        let text = region.to_text();
        let back = Region::from_text(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert!(back == region, "{}", text);
        prop_assert_eq!(back.structural_hash(), region.structural_hash());
        prop_assert_eq!(back.to_text(), text);
        let located = Region::from_text(&region.to_text_with_locations());
        prop_assert!(located.unwrap() == region);
    }

    #[test]
    fn passes_keep_the_signature(region in regions_of_devices()) {
        verify::set_always(true);
        for pass in [pass::dce, pass::cse] {
            let new = pass(&region).unwrap();
            same_signature(&region, &new)?;
            prop_assert!(new.graph().len() <= region.graph().len());
            prop_assert!(pass(&new).unwrap() == new, "a second time changes nothing");
        }
        same_signature(&region, &pass::fold(&region, &scalars()).unwrap())?;
        same_signature(&region, &pass::simplify(&region, &scalars()).unwrap())?;
    }

    /// Includes folds with arbitrary functions.
    #[test]
    fn every_region_compiles(region in regions()) {
        let compiled = Evaluator::new(scalars()).compile(Arc::new(region.clone()), Checks::default());
        prop_assert!(compiled.is_ok(), "{:?} in {}", compiled, region.to_text());
    }

    #[test]
    fn every_region_prints(region in regions_of_devices()) {
        let lines = display(&region, region.results());
        // The types begin in one column, after at least three spaces.
        let columns: BTreeSet<usize> =
            lines.lines().map(|line| line.chars().count() - line.rsplit("   ").next().unwrap().chars().count()).collect();
        prop_assert!(columns.len() <= 1, "{}", lines);
    }

    #[test]
    fn a_damaged_text_is_refused_or_legal(region in regions_of_devices(), cut in 0usize..4000, put in "[ -~\n]{0,4}") {
        let mut text: Vec<char> = region.to_text().chars().collect();
        let cut = cut % text.len();
        let end = (cut + 2).min(text.len());
        text.splice(cut..end, put.chars());
        let text: String = text.into_iter().collect();
        if let Ok(region) = Region::from_text(&text) {
            is_legal(&region)?;
        }
    }
}

/// The random graphs must contain every op.
#[test]
fn random_graphs_reach_every_op() {
    fn collect(region: &Region, names: &mut BTreeSet<&'static str>) {
        for node in region.graph().nodes() {
            names.insert(name(&node.op));
            node.op.regions().iter().for_each(|inner| collect(inner, names));
        }
    }
    let mut runner = TestRunner::deterministic();
    let mut names = BTreeSet::new();
    for _ in 0..4000 {
        collect(&regions_of_devices().new_tree(&mut runner).unwrap().current(), &mut names);
    }
    assert_eq!(names, all_names().into_iter().collect());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn gradients_are_legal(region in smooth_regions()) {
        let wrt: Vec<usize> = (0..region.parameter_count()).collect();
        verify::set_always(true);
        // Some ops refuse. Otherwise the gradient is a legal graph with the same inputs, repeatedly.
        let mut current = region;
        for _ in 0..2 {
            let Ok(new) = grad::value_and_grad(&current, 0, &wrt) else { break };
            is_legal(&new)?;
            prop_assert_eq!(current.inputs(), new.inputs());
            for (&at, gradient) in wrt.iter().zip(new.result_types().skip(current.results().len())) {
                prop_assert_eq!(&gradient.shape, &current.inputs()[at].shape);
            }
            same_signature(&new, &pass::simplify(&new, &scalars()).unwrap())?;
            // The next graph is the gradient with respect to the first input.
            let Some(&first) = new.results().get(current.results().len()) else { break };
            current = Region::new(
                new.graph().clone(),
                new.inputs().to_vec(),
                new.parameter_count(),
                std::iter::once(first).collect(),
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn tangents_are_legal(region in smooth_regions()) {
        let wrt: Vec<usize> = (0..region.parameter_count()).collect();
        verify::set_always(true);
        // The tangent of a function, and of its gradient, which has other ops and loops.
        let gradient = grad::value_and_grad(&region, 0, &wrt);
        for program in std::iter::once(region).chain(gradient) {
            let of: Vec<usize> = (0..program.results().len()).collect();
            let Ok(new) = jvp::jvp_region(&program, &wrt, &of) else { continue };
            is_legal(&new)?;
            let inputs = program.inputs().iter().cloned();
            let tangents = wrt.iter().map(|&at| jvp::tangent_type(&program.inputs()[at]));
            prop_assert_eq!(new.inputs(), &inputs.chain(tangents).collect::<Vec<_>>()[..]);
            for (value, tangent) in program.result_types().zip(new.result_types().skip(of.len())) {
                prop_assert_eq!(tangent, &jvp::tangent_type(value));
            }
            same_signature(&new, &pass::simplify(&new, &scalars()).unwrap())?;
        }
    }
}

/// A window with one position still has an axis, which functions that are not element-wise do not accept; and
/// the padding has the type of the elements.
#[test]
fn a_window_of_one_place_is_folded_by_any_function() {
    let region = Region::from_text(
        "defn-ir 1
        (u8[2], s32) {
          %0 = parameter {index: 0} : u8[2]
          %1 = parameter {index: 1} : s32
          %2 = window_reduce %0 %1 {window: [3], strides: [1], padding: [(0, 1, 0)], window_dilations: [1]} : s32[1]
            fun (u8, s32) {
              %0 = parameter {index: 0} : u8
              %1 = parameter {index: 1} : s32
              %2 = cond %0 %0 %1 : s32
                branch (; u8, s32) {
                  %0 = parameter {index: 0} : u8
                  %1 = parameter {index: 1} : s32
                  %2 = add %0 %1 : s32
                  return %2
                }
                branch (; u8, s32) {
                  %0 = parameter {index: 1} : s32
                  return %0
                }
              return %2
            }
          return %2
        }",
    );
    let compiled = Evaluator::new(scalars()).compile(Arc::new(region.unwrap()), Checks::default());
    assert!(compiled.is_ok(), "{compiled:?}");
}
