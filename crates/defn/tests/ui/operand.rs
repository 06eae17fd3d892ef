use defn::prelude::*;

fn main() {
    let _ = jit(|x: Expr| x.max("one"));
}
