use defn::prelude::*;

#[derive(Tree)]
union Model<T: Copy> {
    weight: T,
}

fn main() {}
