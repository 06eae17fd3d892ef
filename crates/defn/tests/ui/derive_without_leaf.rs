use defn::prelude::*;

#[derive(Tree)]
struct Model {
    weight: f32,
}

fn main() {}
