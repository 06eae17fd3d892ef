//! Loops of random programs: what a program computes are the next arguments.

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{BinaryOp, Op, WhileOp};
use defn_core::region::Region;
use defn_core::{DType, Number, Scalar, Shape, TensorType};

use super::RandomProgram;

/// How often the program runs.
const TRIPS: i128 = 3;

impl RandomProgram {
    /// A loop of the program: each argument becomes a result of its type, if there is one. What is left of the results
    /// is not computed. None where no argument becomes anything.
    pub(super) fn looped(&self) -> Option<RandomProgram> {
        let count = self.region.inputs().len();
        let counter = TensorType { dtype: DType::S32, shape: Shape::new(&[]) };
        let states: Vec<TensorType> = self.region.inputs().iter().cloned().chain([counter]).collect();
        let (mut graph, _, _, results) = self.region.as_ref().clone().into_parts();
        let mut left: Vec<Value> = results.to_vec();
        let mut next = Values::new();
        for (index, ty) in states[..count].iter().enumerate() {
            let at = left.iter().position(|&value| graph.ty(value) == ty);
            next.push(match at {
                Some(at) => left.remove(at),
                None => graph.parameter(index, ty.clone()),
            });
        }
        if left.len() == results.len() {
            return None;
        }
        let counted = graph.parameter(count, states[count].clone());
        let one = number(&mut graph, 1)?;
        next.push(graph.push(Op::Binary(BinaryOp::ADD), &[counted, one]).ok()?[0]);
        let body = Arc::new(Region::new(graph, states.clone(), states.len(), next));
        let mut graph = Graph::new();
        let counted = graph.parameter(count, states[count].clone());
        let trips = number(&mut graph, TRIPS)?;
        let goes_on = graph.push(Op::Binary(BinaryOp::LESS), &[counted, trips]).ok()?;
        let cond = Arc::new(Region::new(graph, states.clone(), states.len(), goes_on));
        let mut graph = Graph::new();
        let mut operands: Vec<Value> =
            self.region.inputs().iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        operands.push(number(&mut graph, 0)?);
        let op = Op::While(WhileOp { state: states.len(), trips: None, snapshots: None, cond, body });
        let results = graph.push(op, &operands).ok()?;
        let region = Arc::new(Region::new(graph, self.region.inputs().to_vec(), count, results));
        Some(RandomProgram { region, arguments: self.arguments.clone(), ..*self })
    }
}

fn number(graph: &mut Graph, number: i128) -> Option<Value> {
    let scalar = Scalar::new(DType::S32, Number::Int(number)).ok()?;
    Some(graph.push(Op::Constant(scalar), &[]).ok()?[0])
}
