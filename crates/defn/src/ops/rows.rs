//! What the documentation says of the elementwise ops of the catalogue: types and errors from the facts in each row,
//! and for each op its gradient and an example.

/// The list items on the shape and the types of a unary op.
macro_rules! unary_types {
    (bitwise_not $domain:ident $rule:ident) => {
        unary_types!("integers and bools; unchanged")
    };
    ($name:ident Any Same) => {
        unary_types!("any; unchanged")
    };
    ($name:ident Number Same) => {
        unary_types!("any but bool; unchanged")
    };
    ($name:ident Real Same) => {
        unary_types!("any but complex; unchanged")
    };
    ($name:ident Integer Same) => {
        unary_types!("integers; unchanged")
    };
    ($name:ident Any Magnitude) => {
        unary_types!("any; unchanged, but complex numbers become floats of half the width")
    };
    ($name:ident Any Float) => {
        unary_types!("any; integers and bools become f32")
    };
    ($name:ident Real Float) => {
        unary_types!("any but complex; integers and bools become f32")
    };
    ($name:ident Any Real) => {
        unary_types!("any; complex numbers become floats of half the width, integers and bools become f32")
    };
    ($name:ident Any Complex) => {
        unary_types!("any; the result is c64, or c128 for f64 and c128")
    };
    ($name:ident Any Predicate) => {
        unary_types!("any; the result is bool")
    };
    ($dtypes:literal) => {
        concat!("- Shape: unchanged; axis names are kept.\n- Dtypes: ", $dtypes, ".")
    };
}

/// The list items on the shape and the types of a binary op.
macro_rules! binary_types {
    (add $domain:ident $rule:ident) => {
        binary_types!("any; promoted. Of two bools it is `logical_or`")
    };
    (multiply $domain:ident $rule:ident) => {
        binary_types!("any; promoted. Of two bools it is `logical_and`")
    };
    (bitwise_and $domain:ident $rule:ident) => {
        binary_types!("integers and bools; promoted")
    };
    (bitwise_or $domain:ident $rule:ident) => {
        binary_types!("integers and bools; promoted")
    };
    (bitwise_xor $domain:ident $rule:ident) => {
        binary_types!("integers and bools; promoted")
    };
    ($name:ident Number Merge) => {
        binary_types!("any, but not two bools; promoted")
    };
    ($name:ident RealNumber Merge) => {
        binary_types!("any but complex, but not two bools; promoted")
    };
    ($name:ident Real Merge) => {
        binary_types!("any but complex; promoted")
    };
    ($name:ident Integer Merge) => {
        binary_types!("integers; promoted")
    };
    ($name:ident Any Float) => {
        binary_types!("any; promoted, integers and bools to f32")
    };
    ($name:ident Real Float) => {
        binary_types!("any but complex; promoted, integers and bools to f32")
    };
    ($name:ident Any Predicate) => {
        binary_types!("any; the result is bool")
    };
    ($name:ident Real Predicate) => {
        binary_types!("any but complex; the result is bool")
    };
    ($name:ident Real Complex) => {
        binary_types!("any but complex; the result is c64, or c128 if an operand is f64")
    };
    ($dtypes:literal) => {
        concat!(
            "- Shape: both operands broadcast together; axis names merge.\n- Dtypes: ",
            $dtypes,
            ". A plain number takes the dtype of the tensor that it meets."
        )
    };
}

/// The errors of an op that accepts every tensor.
macro_rules! no_own_errors {
    () => {
        "Elements that were freed (`Backend`), and too little memory (`OutOfMemory`)."
    };
}

/// The errors of a unary op.
macro_rules! unary_errors {
    (bitwise_not $domain:ident) => {
        "A float or complex operand (`DType`)."
    };
    ($name:ident Any) => {
        no_own_errors!()
    };
    ($name:ident Number) => {
        "A bool operand (`DType`)."
    };
    ($name:ident Real) => {
        "A complex operand (`DType`)."
    };
    ($name:ident Integer) => {
        "An operand that has no integer dtype (`DType`)."
    };
}

/// The errors of a binary op.
macro_rules! binary_errors {
    ($name:ident $domain:ident $($refused:ident)?) => {
        concat!(
            "Shapes that do not broadcast (`Shape`), axis names that differ (`Axis`), and a plain integer that the \
             dtype does not hold (`Range`).",
            binary_refusal!($name $domain), $(refused_integers!($refused))?
        )
    };
}

/// The dtypes that a binary op refuses.
macro_rules! binary_refusal {
    (add $domain:ident) => {
        ""
    };
    (multiply $domain:ident) => {
        ""
    };
    (bitwise_and $domain:ident) => {
        " Float and complex operands (`DType`)."
    };
    (bitwise_or $domain:ident) => {
        " Float and complex operands (`DType`)."
    };
    (bitwise_xor $domain:ident) => {
        " Float and complex operands (`DType`)."
    };
    ($name:ident Any) => {
        ""
    };
    ($name:ident Number) => {
        " Two bools (`DType`)."
    };
    ($name:ident Real) => {
        " Complex operands (`DType`)."
    };
    ($name:ident RealNumber) => {
        " Complex operands and two bools (`DType`)."
    };
    ($name:ident Integer) => {
        " Operands that have no integer dtype (`DType`)."
    };
}

/// The integers that an op refuses in its second operand.
macro_rules! refused_integers {
    (ZeroDivisor) => {
        " On tensors an integer divisor of 0 (`Division`); a compiled function computes the quotient -1 and the \
         remainder `a` instead."
    };
    (NegativeExponent) => { " On tensors a negative exponent of an integer (`Option`)." };
    (NegativeShift) => { " On tensors a negative number of bits (`Option`)." };
}

/// Defines `row!`, which looks up the gradient and the example of an op. `g` is the cotangent of the result `y`.
macro_rules! rows {
    ($($name:ident: $gradient:literal, $example:tt)*) => {
        macro_rules! row {
            $(
                (gradient $name) => { concat!("- Gradient: ", $gradient, ".") };
                (tensor $name) => { tensor_example! $example };
                (expr $name) => { expr_example! $example };
            )*
        }
    };
}

rows! {
    negate: "`-g`", { (x = s32[2] "1, -2") x.negate() == s32[2] "-1, 2" }
    abs: "`g * sign(x)`; for a complex `z` it is `real(g) * conj(z) / abs(z)`",
        { (x = f32[2] "-1.5, 2.0") x.abs() == f32[2] "1.5, 2.0" }
    sign: "zero", { (x = f32[3] "-2.5, 0.0, 7.0") x.sign() == f32[3] "-1.0, 0.0, 1.0" }
    floor: "zero", { (x = f32[2] "-1.5, 1.5") x.floor() == f32[2] "-2.0, 1.0" }
    ceil: "zero", { (x = f32[2] "-1.5, 1.5") x.ceil() == f32[2] "-1.0, 2.0" }
    round: "zero", { (x = f32[3] "-0.5, 0.5, 2.5") x.round() == f32[3] "-1.0, 1.0, 3.0" }
    exp: "`g * y`", { (x = f32[2] "0.0, f32::NEG_INFINITY") x.exp() == f32[2] "1.0, 0.0" }
    expm1: "`g * (y + 1)`", { (x = f32[2] "0.0, 1e-10") x.expm1() == f32[2] "0.0, 1e-10" }
    log: "`g / x`", { (x = f32[2] "1.0, 0.0") x.log() == f32[2] "0.0, f32::NEG_INFINITY" }
    log1p: "`g / (1 + x)`", { (x = f32[2] "0.0, 1e-10") x.log1p() == f32[2] "0.0, 1e-10" }
    sigmoid: "`g * y * (1 - y)`", { (x = f32[2] "0.0, 100.0") x.sigmoid() == f32[2] "0.5, 1.0" }
    sin: "`g * cos(x)`", { (x = f32[1] "0.0") x.sin() == f32[1] "0.0" }
    cos: "`-g * sin(x)`", { (x = f32[1] "0.0") x.cos() == f32[1] "1.0" }
    tan: "`g / cos(x)^2`", { (x = f32[1] "0.0") x.tan() == f32[1] "0.0" }
    sinh: "`g * cosh(x)`", { (x = f32[1] "0.0") x.sinh() == f32[1] "0.0" }
    cosh: "`g * sinh(x)`", { (x = f32[1] "0.0") x.cosh() == f32[1] "1.0" }
    tanh: "`g * (1 - y^2)`", { (x = f32[3] "-100.0, 0.0, 100.0") x.tanh() == f32[3] "-1.0, 0.0, 1.0" }
    asin: "`g / sqrt(1 - x^2)`", { (x = f32[1] "0.0") x.asin() == f32[1] "0.0" }
    acos: "`-g / sqrt(1 - x^2)`", { (x = f32[1] "1.0") x.acos() == f32[1] "0.0" }
    atan: "`g / (1 + x^2)`", { (x = f32[1] "0.0") x.atan() == f32[1] "0.0" }
    asinh: "`g / sqrt(x^2 + 1)`", { (x = f32[1] "0.0") x.asinh() == f32[1] "0.0" }
    acosh: "`g / sqrt(x^2 - 1)`", { (x = f32[1] "1.0") x.acosh() == f32[1] "0.0" }
    atanh: "`g / (1 - x^2)`", { (x = f32[1] "0.0") x.atanh() == f32[1] "0.0" }
    sqrt: "`g / (2 * y)`; infinite at 0", { (x = f32[2] "4.0, 9.0") x.sqrt() == f32[2] "2.0, 3.0" }
    rsqrt: "`-g * x^-1.5 / 2`; infinite at 0", { (x = f32[2] "4.0, 0.25") x.rsqrt() == f32[2] "0.5, 2.0" }
    cbrt: "`g / (3 * y^2)`; infinite at 0", { (x = f32[2] "8.0, -8.0") x.cbrt() == f32[2] "2.0, -2.0" }
    erf: "`g * 2 / sqrt(pi) * exp(-x^2)`", { (x = f32[2] "0.0, 10.0") x.erf() == f32[2] "0.0, 1.0" }
    erfc: "`-g * 2 / sqrt(pi) * exp(-x^2)`", { (x = f32[2] "0.0, -10.0") x.erfc() == f32[2] "1.0, 2.0" }
    erf_inv: "`g * sqrt(pi) / 2 * exp(y^2)`",
        { (x = f32[2] "0.0, 1.0") x.erf_inv() == f32[2] "0.0, f32::INFINITY" }
    conjugate: "`conj(g)`; its real part for a real operand",
        { (re = f32[1] "1.0", im = f32[1] "2.0") re.complex("&im").conjugate().imag() == f32[1] "-2.0" }
    real: "`real(g)`", { (re = f32[1] "1.0", im = f32[1] "2.0") re.complex("&im").real() == f32[1] "1.0" }
    imag: "`-i * g`; zero for a real operand",
        { (re = f32[1] "1.0", im = f32[1] "2.0") re.complex("&im").imag() == f32[1] "2.0" }
    bitwise_not: "zero", { (x = s32[2] "0, 5") x.bitwise_not() == s32[2] "-1, -6" }
    population_count: "zero", { (x = s32[3] "0, 5, -1") x.population_count() == s32[3] "0, 2, 32" }
    count_leading_zeros: "zero", { (x = u8[2] "0, 1") x.count_leading_zeros() == u8[2] "8, 7" }
    is_nan: "zero", { (x = f32[2] "1.0, f32::NAN") x.is_nan() == bool[2] "false, true" }
    is_infinity: "zero", { (x = f32[2] "1.0, f32::INFINITY") x.is_infinity() == bool[2] "false, true" }
    complex: "`real(g)` and `real(i * g)`",
        { (re = f32[1] "3.0", im = f32[1] "4.0") re.complex("&im").abs() == f32[1] "5.0" }
    add: "`g` to both", { (x = s32[2] "1, 2") x.add("10") == s32[2] "11, 12" }
    subtract: "`g` and `-g`", { (x = s32[2] "1, 2") x.subtract("10") == s32[2] "-9, -8" }
    multiply: "`g * b` and `g * a`", { (x = s32[2] "1, 2") x.multiply("10") == s32[2] "10, 20" }
    divide: "`g / b` and `-g * y / b`", { (x = s32[2] "1, 2") x.divide("4") == f32[2] "0.25, 0.5" }
    pow: "`g * b * a^(b - 1)` and `g * log(a) * y`; `log(a)` counts as 0 where `a` is 0",
        { (x = s32[2] "2, 3") x.pow("3") == s32[2] "8, 27" }
    atan2: "`g * b / (a^2 + b^2)` and `-g * a / (a^2 + b^2)`",
        { (y = f32[2] "0.0, 0.0", x = f32[2] "1.0, -1.0") y.atan2("&x") == f32[2] "0.0, std::f32::consts::PI" }
    quotient: "none, it is refused; use `divide`, or `stop_grad` the operands",
        { (x = s32[2] "7, -7") x.quotient("2") == s32[2] "3, -3" }
    remainder: "`g` and `-g * floor(a / b)`", { (x = s32[2] "7, -7") x.remainder("4") == s32[2] "3, -3" }
    max: "`g` to the greater operand, half of it to each of two equal ones",
        { (x = s32[2] "1, 5") x.max("3") == s32[2] "3, 5" }
    min: "`g` to the lesser operand, half of it to each of two equal ones",
        { (x = s32[2] "1, 5") x.min("3") == s32[2] "1, 3" }
    bitwise_and: "zero", { (x = s32[2] "6, 5") x.bitwise_and("3") == s32[2] "2, 1" }
    bitwise_or: "zero", { (x = s32[2] "6, 5") x.bitwise_or("3") == s32[2] "7, 7" }
    bitwise_xor: "zero", { (x = s32[2] "6, 5") x.bitwise_xor("3") == s32[2] "5, 6" }
    left_shift: "zero", { (x = s32[2] "1, 2") x.left_shift("3") == s32[2] "8, 16" }
    right_shift: "zero", { (x = s32[2] "16, -16") x.right_shift("3") == s32[2] "2, -2" }
    equal: "zero", { (x = s32[3] "1, 2, 3") x.equal("2") == bool[3] "false, true, false" }
    not_equal: "zero", { (x = s32[3] "1, 2, 3") x.not_equal("2") == bool[3] "true, false, true" }
    greater: "zero", { (x = s32[3] "1, 2, 3") x.greater("2") == bool[3] "false, false, true" }
    greater_equal: "zero", { (x = s32[3] "1, 2, 3") x.greater_equal("2") == bool[3] "false, true, true" }
    less: "zero", { (x = s32[3] "1, 2, 3") x.less("2") == bool[3] "true, false, false" }
    less_equal: "zero", { (x = s32[3] "1, 2, 3") x.less_equal("2") == bool[3] "true, true, false" }
    logical_and: "zero",
        { (a = s32[3] "0, 2, 0", b = s32[3] "0, 3, 1") a.logical_and("&b") == bool[3] "false, true, false" }
    logical_or: "zero",
        { (a = s32[3] "0, 2, 0", b = s32[3] "0, 3, 1") a.logical_or("&b") == bool[3] "false, true, true" }
    logical_xor: "zero",
        { (a = s32[3] "0, 2, 0", b = s32[3] "0, 3, 1") a.logical_xor("&b") == bool[3] "false, false, true" }
}
