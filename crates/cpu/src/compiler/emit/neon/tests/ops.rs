//! Every op, against its meaning for one lane.

use super::super::super::mir::{Cmp, Cond, Conv};
use super::reference::{are_nan_halves, is_same, lane, low, special};
use super::*;

/// How many vectors a case tries.
const SETS: usize = 24;
/// The bytes of a vector in the data, more than it has so that what is behind it is seen.
const CELL: usize = 32;

/// How an op is tried: with these types of its sources, and the sources that are masks.
struct Trial {
    op: Op,
    elem: Elem,
    lanes: u8,
    sources: Vec<Elem>,
    masks: u8,
}

impl Trial {
    /// One whose sources have the type of the result.
    fn of(op: Op, elem: Elem, lanes: u8, sources: usize) -> Trial {
        Trial { op, elem, lanes, sources: vec![elem; sources], masks: 0 }
    }

    /// Registers that the target allows.
    fn registers(&self, random: &mut Random) -> (u8, Vec<u8>, u8) {
        // Few, so that they coincide often.
        const REGISTERS: [u8; 5] = [0, 3, 9, 15, 30];
        let asked = constraint(self.op, self.elem, self.lanes);
        assert_eq!((asked.slot, asked.pool), (0, 0));
        loop {
            let mut pick = || REGISTERS[random.below(REGISTERS.len())];
            let src: Vec<u8> = self.sources.iter().map(|_| pick()).collect();
            let (dst, temp) = (pick(), pick());
            let is_tied = |(source, &reg): (usize, &u8)| asked.tied >> source & 1 == 1 && reg == dst;
            // What shares a register has one type, and is a mask or not.
            let differ = |i: usize, j: usize| {
                self.sources[i] != self.sources[j] || (self.masks >> i ^ self.masks >> j) & 1 == 1
            };
            let is_shared = (0..src.len()).any(|i| (0..i).any(|j| src[i] == src[j] && differ(i, j)));
            let is_untied = asked.tied != 0 && !src.iter().enumerate().any(is_tied);
            let is_too_early = asked.is_early && src.contains(&dst);
            let is_temp_taken = asked.vector_temps > 0 && (src.contains(&temp) || temp == dst);
            if !(is_shared || is_untied || is_too_early || is_temp_taken) {
                return (dst, src, temp);
            }
        }
    }

    /// A case, and the results that it must give.
    fn case(&self, random: &mut Random) -> (Case, Vec<u64>) {
        let (dst, src, temp) = self.registers(random);
        let mut actions = vec![
            general(Op::Argument(0), 1, &[]),
            general(Op::Number(0), 2, &[]),
            general(Op::Number(SETS as i64), 3, &[]),
            Action::Label(0),
        ];
        for (position, (&elem, &reg)) in self.sources.iter().zip(&src).enumerate() {
            actions.push(at(Op::Load, elem, self.lanes, reg, near(1, (position * CELL) as i32)));
        }
        let Action::Inst(mut inst) = on(self.op, self.elem, self.lanes, dst, &src) else { unreachable!() };
        inst.vector_temps = [temp; 2];
        actions.push(Action::Inst(inst));
        actions.push(at(Op::Store, self.elem, self.lanes, dst, near(1, 3 * CELL as i32)));
        actions.push(general(Op::AddNumber(4 * CELL as i32), 1, &[1]));
        actions.push(general(Op::AddNumber(1), 2, &[2]));
        actions.push(Action::JumpIf {
            cond: Cond::Lt,
            a: OperandLocation::Reg(2),
            b: OperandLocation::Reg(3),
            to: 0,
        });

        let mut data = vec![0xee; 4 * CELL * SETS];
        let mut expected = Vec::new();
        for set in 0..SETS {
            for element in 0..usize::from(self.lanes) {
                let values: Vec<u64> = (0..src.len()).map(|source| self.value(source, random)).collect();
                for (source, value) in values.iter().enumerate() {
                    let bytes = self.sources[source].bytes();
                    let start = (4 * set + source) * CELL + element * bytes;
                    data[start..start + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
                // Of sources in one register the last is loaded.
                let mut operands = [0; 3];
                for source in 0..src.len() {
                    let last = (0..src.len()).rfind(|&other| src[other] == src[source]).unwrap_or(source);
                    operands[source] = values[last];
                }
                expected.push(lane(self.op, self.elem, operands));
            }
        }
        let words = vec![Word::Data(0)];
        (Case { code: code(actions, vec![], self.lanes), words, data, fpcr: 0 }, expected)
    }

    fn value(&self, source: usize, random: &mut Random) -> u64 {
        let elem = self.sources[source];
        if self.masks >> source & 1 == 1 {
            return low(elem, (random.next() & 1).wrapping_neg());
        }
        let special = special(elem);
        match random.below(4) {
            0 => low(elem, random.next()),
            // Random exponents rarely meet: small numbers, too.
            1 if elem == Elem::F32 => u64::from(((random.next() as i32) as f32 / 65536.0).to_bits()),
            1 if elem == Elem::F64 => ((random.next() as i64) as f64 / 65536.0).to_bits(),
            1 => low(elem, random.next() >> random.below(64)),
            _ => special[random.below(special.len())],
        }
    }
}

/// Runs each trial with several choices of registers.
fn check(trials: &[Trial]) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut cases = Vec::new();
    for trial in trials {
        for _ in 0..6 {
            let (case, expected) = trial.case(&mut random);
            cases.push((trial, case, expected));
        }
    }
    let jobs: Vec<Case> = cases.iter().map(|(_, case, _)| case.clone()).collect();
    let Some(outcomes) = neon_run::run(&jobs) else { return };
    for ((trial, case, expected), outcome) in cases.iter().zip(outcomes) {
        let (op, elem, lanes) = (trial.op, trial.elem, trial.lanes);
        let text = || neon_run::disassemble(&case.code).unwrap_or_default().join("\n");
        assert_eq!(outcome.end, End::Status(0), "{op:?} {elem:?} {lanes}\n{}", text());
        let (bytes, lanes) = (elem.bytes(), usize::from(lanes));
        for (position, &expected) in expected.iter().enumerate() {
            let (set, element) = (position / lanes, position % lanes);
            let start = (4 * set + 3) * CELL;
            let mut found = [0; 8];
            found[..bytes].copy_from_slice(&outcome.data[start + element * bytes..][..bytes]);
            let found = u64::from_le_bytes(found);
            let is_right = is_same(elem, found, expected)
                || op == Op::Convert(Conv::ToHalf, Elem::F32) && are_nan_halves(found, expected);
            let sources = &outcome.data[4 * set * CELL..start];
            assert!(
                is_right,
                "{op:?} {elem:?} {lanes}: {found:x}, not {expected:x}, of {sources:x?}\n{}",
                text()
            );
            let behind = &outcome.data[start + lanes * bytes..start + CELL];
            assert!(behind.iter().all(|&byte| byte == 0xee), "{op:?} {elem:?} {lanes} stores too much");
        }
    }
}

/// Trials of an op with every type and length that the target has.
fn all(op: Op, sources: usize) -> Vec<Trial> {
    let elems = ELEMS.into_iter().filter(|&elem| Neon.has(op, elem));
    elems.flat_map(|elem| lane_counts(elem).map(move |lanes| Trial::of(op, elem, lanes, sources))).collect()
}

#[test]
fn arithmetic_is_that_of_its_lanes() {
    let one =
        [Op::Not, Op::Sqrt, Op::Floor, Op::Ceil, Op::Trunc, Op::Nearest, Op::PopCount, Op::LeadingZeros];
    let two = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Min,
        Op::Max,
        Op::MinU,
        Op::MaxU,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::AndNot,
        Op::Shl,
        Op::Shr,
        Op::Sar,
    ];
    let three = [Op::Fma, Op::Fnma, Op::Flip];
    let trials = one.iter().flat_map(|&op| all(op, 1)).chain(two.iter().flat_map(|&op| all(op, 2)));
    check(&trials.chain(three.iter().flat_map(|&op| all(op, 3))).collect::<Vec<_>>());
}

#[test]
fn shifts_by_constants_are_those_of_their_lanes() {
    let mut trials = Vec::new();
    for elem in INTEGERS {
        let width = 8 * elem.bytes() as u8;
        for n in [0, 1, 3, width / 2, width / 2 + 1, width - 1] {
            for op in [Op::ShlBy(n), Op::ShrBy(n), Op::SarBy(n), Op::RotBy(n)] {
                trials.extend(lane_counts(elem).map(|lanes| Trial::of(op, elem, lanes, 1)));
            }
        }
    }
    check(&trials);
}

#[test]
fn comparisons_and_masks_are_those_of_their_lanes() {
    let mut trials = Vec::new();
    for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::LtU, Cmp::LeU] {
        trials.extend(all(Op::Compare(cmp), 2));
    }
    trials.extend(all(Op::Test, 2));
    for (op, sources) in
        [(Op::MaskAnd, 2), (Op::MaskOr, 2), (Op::MaskXor, 2), (Op::MaskAndNot, 2), (Op::MaskNot, 1)]
    {
        trials.extend(all(op, sources).into_iter().map(|trial| Trial { masks: 0b11, ..trial }));
    }
    let select = |trial: Trial| {
        let sources = vec![trial.elem.integer(), trial.elem, trial.elem];
        Trial { sources, masks: 0b1, ..trial }
    };
    trials.extend(all(Op::Select, 3).into_iter().map(select));
    for (from, to) in INTEGERS.iter().flat_map(|&from| INTEGERS.map(|to| (from, to))) {
        let widest = if from.bytes() > to.bytes() { from } else { to };
        let trial =
            |lanes| Trial { op: Op::MaskResize(from), elem: to, lanes, sources: vec![from], masks: 1 };
        trials.extend(lane_counts(widest).map(trial));
    }
    check(&trials);
}

#[test]
fn conversions_are_those_of_their_lanes() {
    const CONVERSIONS: [Conv; 11] = [
        Conv::ZeroExtend,
        Conv::SignExtend,
        Conv::Truncate,
        Conv::FloatOfS,
        Conv::FloatOfU,
        Conv::ToS,
        Conv::ToU,
        Conv::Float,
        Conv::OfHalf,
        Conv::ToHalf,
        Conv::Bitcast,
    ];
    let mut trials = Vec::new();
    for (from, to) in ELEMS.iter().flat_map(|&from| ELEMS.map(|to| (from, to))) {
        let widest = if from.bytes() > to.bytes() { from } else { to };
        for conv in CONVERSIONS {
            let is_wrong_way = match conv {
                Conv::ZeroExtend | Conv::SignExtend => from.bytes() >= to.bytes(),
                Conv::Truncate => from.bytes() <= to.bytes(),
                Conv::Float => from == to,
                Conv::FloatOfS | Conv::FloatOfU | Conv::ToS | Conv::ToU | Conv::OfHalf | Conv::ToHalf => {
                    false
                }
                Conv::Bitcast | Conv::OfBit | Conv::ToIndex | Conv::OfIndex => false,
            };
            let op = Op::Convert(conv, from);
            if Neon.has(op, to) && !is_wrong_way {
                let trial = |lanes| Trial { op, elem: to, lanes, sources: vec![from], masks: 0 };
                trials.extend(lane_counts(widest).map(trial));
            }
        }
        let trial = |lanes| Trial {
            op: Op::Convert(Conv::OfBit, from),
            elem: to,
            lanes,
            sources: vec![from],
            masks: 1,
        };
        trials.extend(lane_counts(widest).filter(|_| !from.is_float()).map(trial));
    }
    check(&trials);
}
