use super::*;

/// The distance in bytes between the elements of a row of this type, from the start of a buffer on.
fn row(buffer: u16, elem: Elem) -> Access {
    Access { buffer, offset: 0, terms: SmallVec::new(), lane: elem.bytes() as i64, is_streaming: false }
}

#[test]
fn functions_print_as_they_were_built() {
    let mut b = Builder::new(2, 1, 0);
    let extent = b.param(0, Elem::Index);
    b.begin_lanes(extent);
    let x = b.load(Elem::F32, row(0, Elem::F32));
    let (two, one) = (b.f32(2.0), b.f32(1.0));
    let y = b.mul(x, two);
    let y = b.add(y, one);
    assert_eq!(b.f32(2.0), two);
    b.store(y, row(1, Elem::F32));
    b.end_lanes();
    let text = b.finish().to_string();
    let expected = "function(buffers 2, params 1, kernels 0)
  %0 = param 0 : index
  lanes %0
    %2 = load b0[0 + lane * 4] : <f32>
    %3 = 2.0 : f32
    %4 = 1.0 : f32
    %5 = mul %2 %3 : <f32>
    %6 = add %5 %4 : <f32>
    store %6 to b1[0 + lane * 4]
  end
";
    assert_eq!(text, expected);
}

#[test]
fn a_value_ends_with_its_block() {
    let mut b = Builder::new(0, 1, 0);
    let trips = b.param(0, Elem::Index);
    let zero = b.index(0);
    let (counter, carried) = b.begin_loop(Some(trips), &[(zero, false)]);
    let next = b.add(carried[0], counter);
    b.end_loop(&[(carried[0], next)]);
    let mut function = b.finish();
    assert!(verify(&function).is_ok());
    // What is carried is visible behind the loop; the sum in it is not.
    let ty = Ty::scalar(Elem::Index);
    function.insts.push(Inst { op: Op::Add, ty, args: [carried[0], zero, Val::NONE] });
    assert!(verify(&function).is_ok());
    function.insts.push(Inst { op: Op::Add, ty, args: [next, zero, Val::NONE] });
    assert!(verify(&function).unwrap_err().contains("is not visible"));
}

/// The text of what is built of an integer, `%1`, after that line.
fn text_of(build: impl Fn(&mut Builder, Val)) -> String {
    let mut b = Builder::new(2, 0, 0);
    let x = b.load(Elem::I32, Access { lane: 0, ..row(0, Elem::I32) });
    build(&mut b, x);
    let text = b.finish().to_string();
    text.lines().skip(2).map(|line| line.trim().to_owned() + "\n").collect()
}

#[test]
fn the_floored_remainder_by_a_constant_has_no_comparison() {
    let text = text_of(|b, x| {
        let [zero, one, seven] = [0, 1, 7].map(|number| b.bits(Elem::I32, number));
        let quotient = b.op(Op::DivS, [x, seven]);
        let product = b.mul(quotient, seven);
        let remainder = b.sub(x, product);
        let (left, right) = (b.compare(Cmp::Lt, remainder, zero), b.bits(Elem::Bit, 0));
        let (differ, some) = (b.op(Op::Xor, [left, right]), b.compare(Cmp::Ne, remainder, zero));
        let up = b.op(Op::And, [some, differ]);
        let up = b.select(up, one, zero);
        let up = b.mul(up, seven);
        let modulo = b.add(remainder, up);
        b.store(modulo, Access { lane: 0, ..row(1, Elem::I32) });
    });
    // Dead instructions have no code.
    let expected = "%1 = 0 : i32
%2 = 1 : i32
%3 = 7 : i32
%4 = divs %0 %3 : i32
%5 = mul %4 %3 : i32
%6 = sub %0 %5 : i32
%7 = lt %6 %1 : bit
%8 = 0 : bit
%9 = ne %6 %1 : bit
%10 = sar_by 31 %6 : i32
%11 = and %10 %2 : i32
%12 = and %10 %3 : i32
%13 = add %6 %12 : i32
store %13 to b1[0]
";
    assert_eq!(text, expected);
}

#[test]
fn remainders_of_what_is_not_negative_need_no_clamp() {
    let text = text_of(|b, x| {
        b.set_range(x, (0, 9_999));
        let [zero, ten] = [0, 10].map(|number| b.bits(Elem::I32, number));
        let quotient = b.op(Op::DivS, [x, ten]);
        let product = b.mul(quotient, ten);
        let remainder = b.sub(x, product);
        assert_eq!(b.range(remainder), Some((0, 9)));
        let is_negative = b.computed(Op::Compare(Cmp::Lt), Elem::Bit, [remainder, zero, Val::NONE]);
        assert_eq!(b.constant_bits(is_negative), Some(0));
        let clamped = b.computed(Op::Max, Elem::I32, [remainder, zero, Val::NONE]);
        assert_eq!(clamped, remainder);
        b.store(clamped, Access { lane: 0, ..row(1, Elem::I32) });
    });
    assert!(!text.contains("max"), "{text}");
}
