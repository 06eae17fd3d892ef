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
