use defn_core::builder::{
    BuildFourier, BuildWindow, ConvOptions, FFT_EPS, FftLength, FftNorm, PerAxis, WindowOptions,
    WindowPadding,
};
use defn_core::op::WindowOp;
use defn_core::{Axes, DType};

use super::check;

fn options(strides: impl Into<PerAxis>, padding: WindowPadding) -> WindowOptions {
    WindowOptions { strides: strides.into(), padding, ..WindowOptions::default() }
}

#[test]
fn windows_keep_dtype_and_names() {
    for &op in WindowOp::ALL {
        for &dtype in DType::ALL {
            let got = check(&[&format!("{dtype}[x: 4][5]")], |b, v| {
                b.window(op, v[0], &[2, 3], &WindowOptions::default())
            });
            let ordered = match op {
                WindowOp::WindowMax | WindowOp::WindowMin => true,
                WindowOp::WindowSum | WindowOp::WindowProduct => false,
            };
            if ordered && dtype.is_complex() {
                let name = op.name();
                assert!(got.starts_with(&format!("{name}: the operand is {dtype}[x: 4][5]")), "{got}");
            } else if !ordered && dtype.is_bool() {
                assert_eq!(got, "s32[x: 3][3]", "bools are counted");
            } else {
                assert_eq!(got, format!("{dtype}[x: 3][3]"));
            }
        }
    }
    let mean = |ty: &str| check(&[ty], |b, v| b.window_mean(v[0], &[2], &WindowOptions::default()));
    assert_eq!([mean("u8[3]"), mean("f16[3]"), mean("c128[3]")], ["f32[2]", "f16[2]", "c128[2]"]);
}

#[test]
fn places_follow_strides_padding_and_dilations() {
    let positions = |options: &WindowOptions| check(&["f32[10]"], |b, v| b.window_sum(v[0], &[4], options));
    assert_eq!(positions(&options(3, WindowPadding::Valid)), "f32[3]");
    // "Same" padding does not depend on the stride.
    assert_eq!(positions(&options(3, WindowPadding::Same)), "f32[4]");
    assert_eq!(positions(&options(1, WindowPadding::Same)), "f32[10]");
    assert_eq!(positions(&options(vec![2], WindowPadding::Each(vec![(-3, 1)]))), "f32[3]");
    let dilated = WindowOptions { dilations: 3.into(), ..WindowOptions::default() };
    assert_eq!(positions(&dilated), "f32[1]");
    let wide = WindowOptions { dilations: 4.into(), ..WindowOptions::default() };
    assert_eq!(
        positions(&wide),
        "window_sum: the window spans 13 of 10 elements on axis 0 of f32[10] with padding (0, 0), it must fit at \
         least once"
    );
    let far = options(i64::MAX, WindowPadding::Valid);
    assert_eq!(positions(&far), "f32[1]");
}

#[test]
fn entries_are_checked() {
    let sum = |window: &[i64], options: &WindowOptions| {
        check(&["f32[4][5]"], |b, v| b.window_sum(v[0], window, options))
    };
    let plain = WindowOptions::default();
    assert_eq!(
        sum(&[2], &plain),
        "window_sum: the window has 1 entries for f32[4][5], one for each of its 2 axes is required"
    );
    assert_eq!(sum(&[2, -1], &plain), "window_sum: the window is -1, it must be an integer of at least 1");
    assert_eq!(
        sum(&[1, 1], &options(vec![1, 1, 1], WindowPadding::Valid)),
        "window_sum: strides has 3 entries for f32[4][5], one for each of its 2 axes is required"
    );
    assert_eq!(
        sum(&[1, 1], &options(1, WindowPadding::Each(vec![(i64::MIN, i64::MAX), (0, 0)]))),
        "window_sum: padding is (-9223372036854775808, 9223372036854775807), it must be between \
         -281474976710656 and 281474976710656"
    );
    // The length of a dilated window may overflow, and so may "same" padding.
    let huge = WindowOptions { padding: WindowPadding::Same, dilations: i64::MAX.into(), ..plain };
    assert!(sum(&[3, 1], &huge).starts_with("window_sum: padding is"), "{}", sum(&[3, 1], &huge));
}

#[test]
fn sources_have_an_element_for_each_place() {
    let scatter = |types: &[&str]| {
        check(types, |b, v| b.window_scatter_max(v[0], v[1], v[2], &[2, 2], &WindowOptions::default()))
    };
    assert_eq!(scatter(&["s8[x: 3][3]", "u8[2][y: 2]", "f16"]), "f16[x: 3][3]");
    assert_eq!(
        scatter(&["s8[3][3]", "u8[3][3]", "f16"]),
        "window_scatter_max: the source is u8[3][3] and the window on s8[3][3] has the positions [2][2], their \
         shapes must be equal"
    );
    assert_eq!(
        scatter(&["s8[3][3]", "u8[2][2]", "f16[1]"]),
        "window_scatter_max: the initial value is f16[1], it must be a scalar"
    );
}

#[test]
fn convolutions_put_roles_where_they_are_told() {
    let conv = |types: &[&str], options: &ConvOptions| check(types, |b, v| b.conv(v[0], v[1], options));
    let plain = ConvOptions::default();
    assert_eq!(conv(&["s8[n: 2][c: 3][x: 9]", "u8[4][3][2]"], &plain), "f32[n: 2][c: 4][x: 8]");
    assert_eq!(conv(&["f64[1][1][9]", "c64[1][1][9]"], &plain), "c128[1][1][1]");
    let last = ConvOptions {
        input_permutation: [0, 2, 1].into(),
        output_permutation: ["c", "x", "n"].into(),
        strides: 2.into(),
        padding: WindowPadding::Each(vec![(1, 1)]),
        input_dilation: 2.into(),
        ..ConvOptions::default()
    };
    // The batch of 2 goes to the axis of "c" in the input, 2; the 4 channels go to 1; the window positions,
    // of which there are floor((17 + 2 - 3) / 2) + 1, go to 0.
    assert_eq!(conv(&["f32[n: 2][x: 9][c: 3]", "f32[4][3][3]"], &last), "f32[x: 9][c: 4][n: 2]");
    let groups = ConvOptions { feature_group_size: 2, ..ConvOptions::default() };
    assert_eq!(conv(&["f32[1][4][5]", "f32[6][2][5]"], &groups), "f32[1][6][1]");
    let batches = ConvOptions { batch_group_size: 2, ..ConvOptions::default() };
    assert_eq!(conv(&["f32[4][2][5]", "f32[6][2][5]"], &batches), "f32[2][6][1]");
    assert_eq!(
        conv(&["f32[4][2][5]", "f32[6][2][0]"], &plain),
        "conv: a kernel that spans 0 elements on spatial axis 0, which has 5 with padding for f32[4][2][5] and \
         f32[6][2][0], it must fit at one position at least"
    );
    assert_eq!(
        conv(&["f32[4][2]", "f32[6][2]"], &plain),
        "conv: 2 and 2 axes for f32[4][2] and f32[6][2], both sides must have equally many, at least 3"
    );
}

#[test]
fn transforms_are_complex_and_as_long_as_they_are_told() {
    let fft = |ty: &str, length| check(&[ty], |b, v| b.fft(v[0], -1, length, FftNorm::Backward, FFT_EPS));
    for &dtype in DType::ALL {
        let got = fft(&format!("{dtype}[x: 5]"), FftLength::Axis);
        assert_eq!(got, format!("{}[x: 5]", dtype.to_complex()));
        let got = check(&[&format!("{dtype}[x: 5]")], |b, v| {
            b.irfft(v[0], "x", FftLength::Axis, FftNorm::Backward, FFT_EPS)
        });
        assert_eq!(got, format!("{}[x: 8]", dtype.to_real()));
        let got = check(&[&format!("{dtype}[x: 5]")], |b, v| {
            b.rfft(v[0], "x", FftLength::Axis, FftNorm::Backward, FFT_EPS)
        });
        if dtype.is_complex() {
            assert!(got.starts_with(&format!("rfft: the operand is {dtype}[x: 5]")), "{got}");
        } else {
            assert_eq!(got, format!("{}[x: 3]", dtype.to_complex()));
        }
    }
    assert_eq!(fft("f32[5]", FftLength::PowerOfTwo), "c64[8]");
    assert_eq!(fft("f32[5]", FftLength::Explicit(3)), "c64[3]");
    assert_eq!(fft("f32[0]", FftLength::Axis), "c64[0]");
    assert_eq!(fft("f32", FftLength::Axis), "fft: the operand is f32, at least one axis is required");
    let both = |axes: Axes| {
        let lengths = [FftLength::Explicit(4), FftLength::Axis];
        check(&["f32[a: 2][b: 3][c: 5]"], |b, v| b.ifft2(v[0], axes, lengths, FftNorm::Backward, FFT_EPS))
    };
    assert_eq!(both([-1, 0].into()), "c64[a: 2][b: 3][c: 4]");
    assert_eq!(both(Axes::All), "ifft2: 3 axes for the shape [a: 2][b: 3][c: 5], two are required");
}
