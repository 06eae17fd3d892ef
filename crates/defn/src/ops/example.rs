//! The examples of the op tables as documentation: one entry serves the method of a tensor and that of an expression.
//!
//! An entry reads `(x = s32[2] "1, -2") x.negate() == s32[2] "-1, 2"`: the operands, a call, and what it computes.
//! Elements and arguments are text, so that they are printed as they are written.

/// The Rust type of an element type, by its name.
macro_rules! element_type {
    (bool) => {
        "bool"
    };
    (u8) => {
        "u8"
    };
    (u32) => {
        "u32"
    };
    (s32) => {
        "i32"
    };
    (f32) => {
        "f32"
    };
    (f64) => {
        "f64"
    };
}

/// What every example starts with, hidden.
macro_rules! imports {
    () => {
        "```
# use defn::{Axes, ConvOptions, DType, Direction, Expr, FftLength, FftNorm, PadMode, PerAxis, Tensor};
# use defn::{Overlap, QuantileMethod, Side, WindowOptions, WindowPadding, jit};
"
    };
}

/// The lines that make the operands.
macro_rules! operands {
    ($($name:ident = $dtype:ident $([$size:literal])* $elements:literal),+) => {
        concat!($(
            "let ", stringify!($name), " = Tensor::from_slice::<", element_type!($dtype), ">(&[", $elements, "], &[",
            joined!($($size),*), "])?;\n",
        )+)
    };
}

/// The lines that compare the result.
macro_rules! compared {
    ($dtype:ident $([$size:literal])* $elements:literal) => {
        concat!(
            "assert_eq!(result.ty().to_string(), \"", stringify!($dtype), $("[", $size, "]",)* "\");\n",
            "assert_eq!(result.to_vec::<", element_type!($dtype), ">()?, [", $elements, "]);\n",
            "# Ok::<(), defn::Error>(())\n```"
        )
    };
}

/// The type of one more operand of a closure.
macro_rules! join_type {
    ($name:tt) => {
        ", Expr"
    };
}

/// Words with commas between them.
macro_rules! joined {
    () => { "" };
    (type $first:tt $(, type $next:tt)*) => { concat!("Expr" $(, join_type!($next))*) };
    ($first:tt $(, $next:tt)*) => { concat!(stringify!($first) $(, ", ", stringify!($next))*) };
}

/// The example of a method of [`Tensor`](crate::Tensor).
macro_rules! tensor_example {
    (row $name:ident) => { row!(tensor $name) };
    (($($operands:tt)*) $receiver:ident $(.$method:ident($($arguments:literal)?))+ == $($result:tt)+) => {
        concat!(
            imports!(), operands!($($operands)*),
            "let result = ", stringify!($receiver), $(".", stringify!($method), "(", $($arguments,)? ")?",)+ ";\n",
            compared!($($result)+)
        )
    };
}

/// The example of a method of [`Expr`](crate::Expr).
macro_rules! expr_example {
    (row $name:ident) => { row!(expr $name) };
    (($name:ident = $dtype:ident $([$size:literal])* $elements:literal)
        $receiver:ident $(.$method:ident($($arguments:literal)?))+ == $($result:tt)+) => {
        concat!(
            imports!(),
            "let f = jit(|", stringify!($name), ": Expr| ",
            stringify!($receiver), $(".", stringify!($method), "(", $($arguments,)? ")",)+ ");\n",
            operands!($name = $dtype $([$size])* $elements),
            "let result = f.call(", stringify!($name), ")?;\n",
            compared!($($result)+)
        )
    };
    (($($name:ident = $dtype:ident $([$size:literal])* $elements:literal),+)
        $receiver:ident $(.$method:ident($($arguments:literal)?))+ == $($result:tt)+) => {
        concat!(
            imports!(),
            "let f = jit(|(", joined!($($name),+), "): (", joined!($(type $name),+), ")| ",
            stringify!($receiver), $(".", stringify!($method), "(", $($arguments,)? ")",)+ ");\n",
            operands!($($name = $dtype $([$size])* $elements),+),
            "let result = f.call((", joined!($($name),+), "))?;\n",
            compared!($($result)+)
        )
    };
}

/// The section on the errors of a method of [`Tensor`](crate::Tensor).
macro_rules! tensor_errors {
    ($errors:expr) => {
        concat!("\n# Errors\n\n", $errors)
    };
}

/// The section on the errors of a method of [`Expr`](crate::Expr).
macro_rules! expr_errors {
    ($errors:expr) => {
        concat!("\n# Errors\n\n", $errors, "\n\nThe error comes out of [`Jit::call`](crate::Jit::call).")
    };
}
