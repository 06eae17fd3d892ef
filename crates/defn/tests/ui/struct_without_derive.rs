use defn::prelude::*;

struct Line<T> {
    slope: T,
    offset: T,
}

fn main() {
    let _ = jit(|(line, x): (Line<Expr>, Expr)| line.slope * x + line.offset);
}
