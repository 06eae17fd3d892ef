//! Values in containers that are no tensors.

#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a static field of a container",
    note = "implement `defn::Static` for it, or leave out `#[tree(static)]` if it holds tensors"
)]
/// A value in a container that is no tensor: a field that is marked `#[tree(static)]`. A compiled function is compiled
/// again for another value.
///
/// ```
/// use defn::Static;
///
/// #[derive(Clone)]
/// enum Activation {
///     Relu,
///     Leaky(f64),
/// }
///
/// impl Static for Activation {
///     fn words(&self, words: &mut Vec<usize>) {
///         match self {
///             Activation::Relu => words.push(0),
///             Activation::Leaky(slope) => {
///                 words.push(1);
///                 slope.words(words);
///             }
///         }
///     }
/// }
/// let mut words = Vec::new();
/// Activation::Leaky(0.5).words(&mut words);
/// assert_eq!(words[0], 1);
/// ```
pub trait Static: Clone {
    /// Appends words that no other value appends.
    ///
    /// ```
    /// use defn::Static;
    ///
    /// let mut words = Vec::new();
    /// true.words(&mut words);
    /// assert_eq!(words, [1, 0]);
    /// ```
    fn words(&self, words: &mut Vec<usize>);
}

/// Values by their bits, the lower half first: a word may have 32 bits.
macro_rules! by_bits {
    ($($ty:ty: |$value:ident| $bits:expr;)*) => {$(
        impl Static for $ty {
            fn words(&self, words: &mut Vec<usize>) {
                let $value = *self;
                let bits: u64 = $bits;
                words.extend([(bits & 0xffff_ffff) as usize, (bits >> 32) as usize]);
            }
        }
    )*};
}
by_bits! {
    bool: |value| value.into();
    char: |value| u32::from(value).into();
    u8: |value| value.into();
    u16: |value| value.into();
    u32: |value| value.into();
    u64: |value| value;
    usize: |value| value as u64;
    i8: |value| value as u64;
    i16: |value| value as u64;
    i32: |value| value as u64;
    i64: |value| value as u64;
    isize: |value| value as u64;
    f32: |value| value.to_bits().into();
    f64: |value| value.to_bits();
}

impl Static for () {
    fn words(&self, _words: &mut Vec<usize>) {}
}

impl Static for &str {
    fn words(&self, words: &mut Vec<usize>) {
        words.push(self.len());
        words.extend(self.bytes().map(usize::from));
    }
}

impl Static for String {
    fn words(&self, words: &mut Vec<usize>) {
        self.as_str().words(words);
    }
}

impl<S: Static> Static for Option<S> {
    fn words(&self, words: &mut Vec<usize>) {
        words.push(self.is_some().into());
        self.iter().for_each(|value| value.words(words));
    }
}

impl<S: Static> Static for Vec<S> {
    fn words(&self, words: &mut Vec<usize>) {
        words.push(self.len());
        self.iter().for_each(|value| value.words(words));
    }
}

impl<S: Static, const N: usize> Static for [S; N] {
    fn words(&self, words: &mut Vec<usize>) {
        self.iter().for_each(|value| value.words(words));
    }
}

impl<A: Static, B: Static> Static for (A, B) {
    fn words(&self, words: &mut Vec<usize>) {
        self.0.words(words);
        self.1.words(words);
    }
}
