use defn::prelude::*;

struct Line<T> {
    slope: T,
    offset: T,
}

fn main() {
    let _ = jit(|(line, x): (Line<Expr>, Expr)| line.slope * x + line.offset)
        .call((Line { slope: Tensor::scalar(1.0).unwrap(), offset: Tensor::scalar(0.0).unwrap() }, Tensor::scalar(2.0).unwrap()));
}
