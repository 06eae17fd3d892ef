//! Images. Their own pixels are the oracle.

use defn::prelude::*;
use defn::{Element, Result};
use image::{DynamicImage, GrayImage, ImageBuffer, Luma, LumaA, Pixel, Rgb, RgbImage, Rgba};

use crate::refused;

/// An image of counted channels goes to a tensor without a copy, and back.
fn moves<
    P: Pixel<Subpixel = T> + PartialEq + std::fmt::Debug,
    T: Element + From<u8> + PartialEq + std::fmt::Debug,
>() -> Result<Tensor> {
    let channels = usize::from(P::CHANNEL_COUNT);
    let elements: Vec<T> = (0..2 * 3 * P::CHANNEL_COUNT).map(T::from).collect();
    let image = ImageBuffer::<P, Vec<T>>::from_raw(3, 2, elements).unwrap();
    let (copy, address) = (image.clone(), image.as_raw().as_ptr());
    let tensor = Tensor::try_from(image)?;
    assert_eq!(tensor.shape().sizes(), [2, 3, channels]);
    let slice = tensor.host_slice::<T>()?;
    assert_eq!(slice.as_ptr(), address);
    for (x, y, pixel) in copy.enumerate_pixels() {
        let at = (y as usize * 3 + x as usize) * channels;
        assert_eq!(slice[at..at + channels], *pixel.channels());
    }
    assert!(ImageBuffer::<P, Vec<T>>::try_from(&tensor)? == copy);
    Ok(tensor)
}

#[test]
fn every_kind_of_image_moves() -> Result<()> {
    let tensors = [
        moves::<Luma<u8>, _>()?,
        moves::<LumaA<u8>, _>()?,
        moves::<Rgb<u8>, _>()?,
        moves::<Rgba<u8>, _>()?,
        moves::<Luma<u16>, _>()?,
        moves::<LumaA<u16>, _>()?,
        moves::<Rgb<u16>, _>()?,
        moves::<Rgba<u16>, _>()?,
        moves::<Rgb<f32>, _>()?,
        moves::<Rgba<f32>, _>()?,
    ];
    for tensor in tensors {
        let image = DynamicImage::try_from(&tensor)?;
        assert_eq!(usize::from(image.color().channel_count()), tensor.shape().sizes()[2]);
        let address = image.as_bytes().as_ptr();
        let same = Tensor::try_from(image)?;
        assert_eq!(same.ty(), tensor.ty());
        assert_eq!(same.core().host_bytes("test")?.bytes(), tensor.core().host_bytes("test")?.bytes());
        assert_eq!(same.core().host_bytes("test")?.bytes().as_ptr(), address);
    }
    moves::<Luma<f32>, _>()?;
    moves::<Luma<f64>, _>().map(drop)
}

#[test]
fn a_vector_that_is_longer_than_the_pixels_is_cut() -> Result<()> {
    let image = GrayImage::from_raw(2, 1, vec![1, 2, 3, 4]).unwrap();
    assert_eq!(Tensor::try_from(image)?.to_vec::<u8>()?, [1, 2]);
    let empty = Tensor::try_from(RgbImage::new(0, 5))?;
    assert_eq!(empty.ty().to_string(), "u8[5][0][3]");
    assert_eq!(RgbImage::try_from(&empty)?.dimensions(), (0, 5));
    Ok(())
}

#[test]
fn other_shapes_and_dtypes_are_refused() -> Result<()> {
    let x = Tensor::full(&[2, 3, 4], DType::U8, 7)?;
    assert_eq!(
        refused(RgbImage::try_from(&x)),
        "image: the number of channels, the size of the last axis, is 4, it must be 3 for RGB"
    );
    assert_eq!(
        refused(RgbImage::try_from(&x.reshape(&[2, 12])?)),
        "image: the operand is u8[2][12], an image must have the axes [height][width][channels]; reshape or \
         transpose it"
    );
    assert!(refused(DynamicImage::try_from(&x.reshape(&[2, 2, 6])?)).ends_with("is 6, it must be 1 to 4"));
    let floats = x.reshape(&[2, 6, 2])?.as_type(DType::F32)?;
    assert!(refused(DynamicImage::try_from(&floats)).ends_with("is 2, it must be 3 or 4 for f32"));
    assert_eq!(
        refused(DynamicImage::try_from(&x.as_type(DType::F64)?)),
        "image: the operand is f64[2][3][4], it must be u8, u16 or f32; convert it with as_type"
    );
    assert!(
        refused(RgbImage::try_from(&x.as_type(DType::U16)?.reshape(&[2, 4, 3])?)).contains("it must be u8")
    );
    let wide = Tensor::full(&[0, 1 << 33, 3], DType::U8, 0)?;
    assert_eq!(
        refused(RgbImage::try_from(&wide)),
        "image: the shape is u8[0][8589934592][3], it must be one whose sizes fit u32"
    );
    let batched = Tensor::full(&[2, 1, 3], DType::U8, 7)?.vectorize(&["row"])?;
    assert_eq!(RgbImage::try_from(&batched)?.dimensions(), (1, 2));
    Ok(())
}
