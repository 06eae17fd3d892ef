use defn::prelude::*;

fn main() {
    let _ = Tensor::from_slice(&["one", "two"], &[2]);
}
