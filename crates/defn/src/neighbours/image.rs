//! Images of the crate `image`, as tensors of shape `[height][width][channels]`.

use defn_core::{DType, Error, ErrorKind, Location, Result, Shape};
use image::{DynamicImage, ImageBuffer, Luma, LumaA, Pixel, Rgb, Rgba};

use super::sizes;
use crate::nested::from_owned;
use crate::{Element, Tensor, host};

const OP: &str = "image";

/// The shape is `[height][width][channels]`, the dtype that of the channels. The image becomes the memory of a tensor
/// on the CPU, without a copy.
///
/// ```
/// use defn::Tensor;
/// use image::{Rgb, RgbImage};
///
/// let image = RgbImage::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8, 7]));
/// let address = image.as_ptr();
/// let x = Tensor::try_from(image)?;
/// assert_eq!(x.ty().to_string(), "u8[2][3][3]");
/// assert_eq!(x.host_slice::<u8>()?.as_ptr(), address);
/// assert_eq!(x.at(1)?.at(2)?.to_vec::<u8>()?, [2, 1, 7]);
/// # Ok::<(), defn::Error>(())
/// ```
impl<P: Pixel<Subpixel: Element>> TryFrom<ImageBuffer<P, Vec<P::Subpixel>>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(image: ImageBuffer<P, Vec<P::Subpixel>>) -> Result<Tensor> {
        let location = Location::caller();
        of_image(image).map_err(|error| error.at(Some(location)))
    }
}

/// The shape is `[height][width][channels]`, of 1 to 4 channels; the dtype is u8, u16 or f32, as in the image. The
/// image becomes the memory of a tensor on the CPU, without a copy.
///
/// ```
/// use defn::Tensor;
/// use image::DynamicImage;
///
/// let x = Tensor::try_from(DynamicImage::new_luma_a16(4, 2))?;
/// assert_eq!(x.ty().to_string(), "u16[2][4][2]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A kind of image that this version does not know (`DType`).
impl TryFrom<DynamicImage> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(image: DynamicImage) -> Result<Tensor> {
        let location = Location::caller();
        of_dynamic(image).map_err(|error| error.at(Some(location)))
    }
}

/// A tensor of shape `[height][width][channels]`, with the channels and the dtype of the image. The elements are
/// copied.
///
/// ```
/// use defn::Tensor;
/// use image::{Rgb, RgbImage};
///
/// let x = Tensor::from_vec(vec![1u8, 2, 3, 4, 5, 6], &[1, 2, 3])?;
/// assert_eq!(RgbImage::try_from(&x)?.get_pixel(1, 0), &Rgb([4, 5, 6]));
/// let error = RgbImage::try_from(&x.reshape(&[2, 3])?).unwrap_err();
/// assert!(error.to_string().starts_with("image: the operand is u8[2][3], "));
/// # Ok::<(), defn::Error>(())
/// ```
impl<P: Pixel<Subpixel: Element>> TryFrom<&Tensor> for ImageBuffer<P, Vec<P::Subpixel>> {
    type Error = Error;

    #[track_caller]
    fn try_from(tensor: &Tensor) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
        let location = Location::caller();
        to_image(tensor).map_err(|error| error.at(Some(location)))
    }
}

/// A tensor of shape `[height][width][channels]`: u8 or u16 of 1 to 4 channels, or f32 of 3 or 4. The elements are
/// copied.
///
/// ```
/// use defn::{DType, Tensor};
/// use image::DynamicImage;
///
/// let x = Tensor::full(&[2, 4, 3], DType::F32, 0.5)?;
/// assert!(matches!(DynamicImage::try_from(&x)?, DynamicImage::ImageRgb32F(_)));
/// assert!(DynamicImage::try_from(&x.as_type(DType::F64)?).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
impl TryFrom<&Tensor> for DynamicImage {
    type Error = Error;

    #[track_caller]
    fn try_from(tensor: &Tensor) -> Result<DynamicImage> {
        let location = Location::caller();
        to_dynamic(tensor).map_err(|error| error.at(Some(location)))
    }
}

from_owned! {
    [P: Pixel<Subpixel: Element>] ImageBuffer<P, Vec<P::Subpixel>>;
    [] DynamicImage;
}

fn of_image<P: Pixel<Subpixel: Element>>(image: ImageBuffer<P, Vec<P::Subpixel>>) -> Result<Tensor> {
    let (width, height) = image.dimensions();
    let shape = Shape::new(&[height as usize, width as usize, P::CHANNEL_COUNT.into()]);
    let mut elements = image.into_raw();
    // The vector of an image may be longer than its pixels.
    elements.truncate(shape.checked_size().unwrap_or(usize::MAX));
    host::from_vec(OP, elements, shape)
}

fn of_dynamic(image: DynamicImage) -> Result<Tensor> {
    match image {
        DynamicImage::ImageLuma8(image) => of_image(image),
        DynamicImage::ImageLumaA8(image) => of_image(image),
        DynamicImage::ImageRgb8(image) => of_image(image),
        DynamicImage::ImageRgba8(image) => of_image(image),
        DynamicImage::ImageLuma16(image) => of_image(image),
        DynamicImage::ImageLumaA16(image) => of_image(image),
        DynamicImage::ImageRgb16(image) => of_image(image),
        DynamicImage::ImageRgba16(image) => of_image(image),
        DynamicImage::ImageRgb32F(image) => of_image(image),
        DynamicImage::ImageRgba32F(image) => of_image(image),
        // The enum may get further variants.
        other => {
            let required = "its channels must be u8, u16 or f32; convert it, as with to_rgba32f";
            Err(ErrorKind::ForeignElements { op: OP, got: format!("{:?}", other.color()), required }.into())
        }
    }
}

fn to_image<P: Pixel<Subpixel: Element>>(tensor: &Tensor) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
    let [height, width, channels] = image_sizes(tensor)?;
    if channels != usize::from(P::CHANNEL_COUNT) {
        return Err(wrong_channels(channels, format!("{} for {}", P::CHANNEL_COUNT, P::COLOR_MODEL)));
    }
    let elements = tensor.read_vec(OP)?;
    let sides = u32::try_from(width).ok().zip(u32::try_from(height).ok());
    sides.and_then(|(width, height)| ImageBuffer::from_raw(width, height, elements)).ok_or_else(|| {
        let (given, required) = (tensor.core().whole().to_string(), "one whose sizes fit u32".to_owned());
        ErrorKind::OptionValue { op: OP, option: "the shape", given, required }.into()
    })
}

fn to_dynamic(tensor: &Tensor) -> Result<DynamicImage> {
    let [_, _, channels] = image_sizes(tensor)?;
    let dtype = tensor.dtype();
    match (channels, dtype == DType::U8, dtype == DType::U16, dtype == DType::F32) {
        (1, true, _, _) => to_image::<Luma<u8>>(tensor).map(Into::into),
        (2, true, _, _) => to_image::<LumaA<u8>>(tensor).map(Into::into),
        (3, true, _, _) => to_image::<Rgb<u8>>(tensor).map(Into::into),
        (4, true, _, _) => to_image::<Rgba<u8>>(tensor).map(Into::into),
        (1, _, true, _) => to_image::<Luma<u16>>(tensor).map(Into::into),
        (2, _, true, _) => to_image::<LumaA<u16>>(tensor).map(Into::into),
        (3, _, true, _) => to_image::<Rgb<u16>>(tensor).map(Into::into),
        (4, _, true, _) => to_image::<Rgba<u16>>(tensor).map(Into::into),
        (3, _, _, true) => to_image::<Rgb<f32>>(tensor).map(Into::into),
        (4, _, _, true) => to_image::<Rgba<f32>>(tensor).map(Into::into),
        (_, false, false, false) => {
            let (got, required, hint) = (tensor.ty().clone(), "u8, u16 or f32", "; convert it with as_type");
            Err(ErrorKind::OperandDType { op: OP, got, required, hint }.into())
        }
        (_, _, _, is_float) => {
            let required = if is_float { "3 or 4 for f32" } else { "1 to 4" };
            Err(wrong_channels(channels, required.to_owned()))
        }
    }
}

fn image_sizes(tensor: &Tensor) -> Result<[usize; 3]> {
    sizes(OP, tensor, "an image must have the axes [height][width][channels]; reshape or transpose it")
}

#[cold]
fn wrong_channels(channels: usize, required: String) -> Error {
    let (option, given) = ("the number of channels, the size of the last axis,", channels.to_string());
    ErrorKind::OptionValue { op: OP, option, given, required }.into()
}
