//! Conversions between tensors and the types of other crates, and elements in host memory.

#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "faer")]
mod faer;
mod host;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "rand")]
mod rand;
#[cfg(feature = "serde")]
mod serde;

/// The error of a conversion: it must come with this line's file, and is compared without it.
fn refused<T>(result: defn::Result<T>) -> String {
    let error = result.err().expect("the conversion must be refused");
    let location = error.location().expect("an error has a location").to_string();
    assert!(location.contains("neighbours"), "{location}");
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
