#![deny(unused_must_use)]
use defn::prelude::*;

fn main() {
    let _ = jit(|x: Expr| {
        x.exp();
        x
    });
}
