use defn::prelude::*;

fn main() {
    let _ = jit(|x: Expr| hook(x, |x: Tensor| x.item::<f32>().unwrap() > 0.0));
}
