//! The tuples that traits of the crate are implemented for.

/// Passes the tuples of up to eight items to a macro, each as the names and the positions of its items.
macro_rules! for_tuples {
    ($then:ident) => {
        $then! {
            (A 0)
            (A 0, B 1)
            (A 0, B 1, C 2)
            (A 0, B 1, C 2, D 3)
            (A 0, B 1, C 2, D 3, E 4)
            (A 0, B 1, C 2, D 3, E 4, F 5)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
        }
    };
}
