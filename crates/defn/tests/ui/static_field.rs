use defn::prelude::*;

struct Settings;

#[derive(Tree)]
struct Model<T> {
    weight: T,
    #[tree(static)]
    settings: Settings,
}

fn main() {}
