use defn::prelude::*;

fn main() {
    let _ = jit(|x: Expr| x * 2usize);
}
