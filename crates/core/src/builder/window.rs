//! Windows that slide over a tensor, and convolutions.

use smallvec::SmallVec;

use super::{Arg, Builder};
use crate::compose;
use crate::error::{ErrorKind, Result};
use crate::op::{ConvOp, Op, Window, WindowOp, WindowScatterOp};
use crate::shape::{Axes, AxisList, Shape, Sizes, TensorType};

/// A number for each axis, or one for all of them.
///
/// ```
/// use defn_core::builder::PerAxis;
/// assert_eq!(PerAxis::from(2), PerAxis::All(2));
/// assert_eq!(PerAxis::from(vec![2, 1]), PerAxis::Each(vec![2, 1]));
/// assert_eq!(PerAxis::default(), PerAxis::All(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PerAxis {
    /// The same for every axis.
    All(i64),
    /// One number for each axis.
    Each(Vec<i64>),
}

impl Default for PerAxis {
    fn default() -> PerAxis {
        PerAxis::All(1)
    }
}

impl From<i64> for PerAxis {
    fn from(entry: i64) -> PerAxis {
        PerAxis::All(entry)
    }
}

impl From<Vec<i64>> for PerAxis {
    fn from(entries: Vec<i64>) -> PerAxis {
        PerAxis::Each(entries)
    }
}

/// The padding around a tensor under a sliding window.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildWindow, Builder, WindowOptions, WindowPadding};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[4]), DType::F32, None)?;
/// let options = WindowOptions { padding: WindowPadding::Same, ..WindowOptions::default() };
/// let y = graph.window_sum(x, &[2], &options)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[4]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum WindowPadding {
    /// No padding.
    #[default]
    Valid,
    /// The padding for which the result has the tensor's sizes if the strides are 1; the smaller half comes first.
    Same,
    /// The number of elements before and after, for each axis; negative numbers crop.
    Each(Vec<(i64, i64)>),
}

/// How a window slides.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildWindow, Builder, WindowOptions};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[6]), DType::F32, None)?;
/// let options = WindowOptions { strides: 2.into(), ..WindowOptions::default() };
/// let y = graph.window_sum(x, &[2], &options)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[3]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowOptions {
    /// The step of the window; 1 by default.
    pub strides: PerAxis,
    /// The padding around the tensor.
    pub padding: WindowPadding,
    /// The distance of neighbours in the window; 1 by default.
    pub dilations: PerAxis,
}

/// How a kernel slides, and the roles of the axes.
///
/// The roles of the input's and the result's axes are batch, channels, then the spatial ones; those of the kernel's
/// are output channels, input channels, then the spatial ones. Entry i of a permutation is the axis with role i;
/// [`Axes::All`] keeps their order.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildWindow, Builder, ConvOptions};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let images = graph.iota(Shape::new(&[1, 3, 8, 8]), DType::F32, None)?;
/// let kernel = graph.iota(Shape::new(&[5, 3, 2, 2]), DType::F32, None)?;
/// let options = ConvOptions { strides: 2.into(), ..ConvOptions::default() };
/// let y = graph.conv(images, kernel, &options)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[1][5][4][4]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// The step of the kernel along the spatial axes.
    pub strides: PerAxis,
    /// Zeros around the spatial axes of the dilated input.
    pub padding: WindowPadding,
    /// The distance of neighbours in the input, with zeros between them.
    pub input_dilation: PerAxis,
    /// The distance of neighbours in the kernel.
    pub kernel_dilation: PerAxis,
    /// The number of channel groups, each with its own kernels.
    pub feature_group_size: i64,
    /// The number of batch groups, each with its own kernels.
    pub batch_group_size: i64,
    /// The roles of the input's axes.
    pub input_permutation: Axes,
    /// The roles of the kernel's axes.
    pub kernel_permutation: Axes,
    /// The roles of the result's axes.
    pub output_permutation: Axes,
}

impl Default for ConvOptions {
    fn default() -> ConvOptions {
        ConvOptions {
            strides: PerAxis::default(),
            padding: WindowPadding::default(),
            input_dilation: PerAxis::default(),
            kernel_dilation: PerAxis::default(),
            feature_group_size: 1,
            batch_group_size: 1,
            input_permutation: Axes::All,
            kernel_permutation: Axes::All,
            output_permutation: Axes::All,
        }
    }
}

macro_rules! windows {
    ($($(#[$doc:meta])* $method:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`BuildWindow::window`].
        fn $method(
            &mut self,
            x: impl Into<Arg<Self::V>>,
            window: &[i64],
            options: &WindowOptions,
        ) -> Result<Self::V> {
            self.window(WindowOp::$op, x, window, options)
        }
    )*};
}

/// Windows and convolutions. Results keep their operand's names.
pub trait BuildWindow: Builder + Sized {
    /// `op` over the elements in each position of a window. `window` has a size for each axis.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildWindow, Builder, WindowOptions, WindowPadding};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[4, 5]), DType::F32, None)?;
    /// let options = WindowOptions { strides: vec![1, 2].into(), ..WindowOptions::default() };
    /// let y = graph.window_max(x, &[2, 3], &options)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[3][2]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of entries than axes, entries below 1, a window larger than the padded tensor, and, for maximum
    /// and minimum, complex elements.
    fn window(
        &mut self,
        op: WindowOp,
        x: impl Into<Arg<Self::V>>,
        window: &[i64],
        options: &WindowOptions,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let window = options.resolve(op.name(), &self.ty(&x), window)?;
        self.emit_one(Op::Window { op, window: Box::new(window) }, &[x])
    }

    windows! {
        /// The sum of each window, wrapping for integers; padding counts as 0.
        window_sum => WindowSum;
        /// The product of each window, wrapping for integers; padding counts as 1.
        window_product => WindowProduct;
        /// The greatest element of each window; NaN if any is. Padding is never above an element.
        window_max => WindowMax;
        /// The least element of each window; NaN if any is. Padding is never below an element.
        window_min => WindowMin;
    }

    /// The mean of each window, a float or complex. Padding counts as elements that are zero. The sum is computed in
    /// f64 or c128, and in f32 for floats of 8 and 16 bits except bf16.
    ///
    /// # Errors
    /// As [`BuildWindow::window`].
    fn window_mean(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        window: &[i64],
        options: &WindowOptions,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::window::window_mean(self, &x, window, options)
    }

    /// `init` everywhere, plus each element of `source`, added at the position of the greatest element of its window
    /// in `x`, the last of several equal ones. Padding counts as `init` and receives nothing; `options` has no
    /// dilations.
    ///
    /// # Errors
    /// As [`BuildWindow::window`], a source whose shape is not that of the window's positions, and an initial value
    /// that is no scalar.
    fn window_scatter_max(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        source: impl Into<Arg<Self::V>>,
        init: impl Into<Arg<Self::V>>,
        window: &[i64],
        options: &WindowOptions,
    ) -> Result<Self::V> {
        let operands = [x.into(), source.into(), init.into()];
        scatter(self, WindowScatterOp::WindowScatterMax, operands, window, options)
    }

    /// Like [`BuildWindow::window_scatter_max`], for the least element.
    ///
    /// # Errors
    /// As [`BuildWindow::window_scatter_max`].
    fn window_scatter_min(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        source: impl Into<Arg<Self::V>>,
        init: impl Into<Arg<Self::V>>,
        window: &[i64],
        options: &WindowOptions,
    ) -> Result<Self::V> {
        let operands = [x.into(), source.into(), init.into()];
        scatter(self, WindowScatterOp::WindowScatterMin, operands, window, options)
    }

    /// For each position of the kernel on `x`, the sum of products of its elements and the elements under it. The
    /// kernel is not flipped. The result is a float or complex.
    ///
    /// # Errors
    /// Rank below 3 or ranks that differ, options with another number of entries than spatial axes, channels or a
    /// batch that the groups do not divide, groups of both kinds, and a kernel larger than the padded input.
    fn conv(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        kernel: impl Into<Arg<Self::V>>,
        options: &ConvOptions,
    ) -> Result<Self::V> {
        let (x, kernel) = self.weak_pair("conv", x, kernel)?;
        let op = options.resolve(&self.ty(&x), &self.ty(&kernel))?;
        self.emit_one(Op::Conv(Box::new(op)), &[x, kernel])
    }
}

impl<B: Builder> BuildWindow for B {}

fn scatter<B: Builder>(
    b: &mut B,
    op: WindowScatterOp,
    operands: [Arg<B::V>; 3],
    window: &[i64],
    options: &WindowOptions,
) -> Result<B::V> {
    let [x, source, init] = operands;
    // The source and the initial value determine the result's dtype; `x` only determines positions.
    let (source, init) = b.weak_pair(op.name(), source, init)?;
    let operands = [b.operand(x)?, source, init];
    let window = options.resolve(op.name(), &b.ty(&operands[0]), window)?;
    b.emit_one(Op::WindowScatter { op, window: Box::new(window) }, &operands)
}

impl WindowOptions {
    /// The window of the given sizes over a tensor.
    ///
    /// # Errors
    /// Another number of entries than axes, and entries below 1.
    pub(crate) fn resolve(&self, op: &'static str, x: &TensorType, window: &[i64]) -> Result<Window> {
        let entries = AxisOptions { op, got: x, count: x.shape.rank(), axes: "axes" };
        entries.check_count("the window", window.len())?;
        let sizes = window.iter().map(|&size| entries.one("the window", size)).collect::<Result<Sizes>>()?;
        let strides = entries.per_axis("strides", &self.strides)?;
        let dilations = entries.per_axis("window_dilations", &self.dilations)?;
        let padding = entries.padding(&self.padding, &sizes, &dilations)?;
        Ok(Window { sizes, strides, padding, dilations })
    }
}

impl ConvOptions {
    fn resolve(&self, x: &TensorType, kernel: &TensorType) -> Result<ConvOp> {
        let rank = x.shape.rank();
        if rank < 3 || kernel.shape.rank() != rank {
            let problem = format!("{rank} and {} axes", kernel.shape.rank());
            let required = "both sides must have equally many, at least 3";
            let (left, right) = (x.clone(), kernel.clone());
            return Err(ErrorKind::Conv { left, right, problem, required }.into());
        }
        let input_permutation = permutation("input_permutation", &x.shape, &self.input_permutation)?;
        let kernel_permutation = permutation("kernel_permutation", &kernel.shape, &self.kernel_permutation)?;
        let output_permutation = permutation("output_permutation", &x.shape, &self.output_permutation)?;
        let extents: Sizes = kernel_permutation[2..].iter().map(|&axis| kernel.shape[axis]).collect();
        let entries = AxisOptions { op: "conv", got: x, count: rank - 2, axes: "spatial axes" };
        let kernel_dilation = entries.per_axis("kernel_dilation", &self.kernel_dilation)?;
        Ok(ConvOp {
            strides: entries.per_axis("strides", &self.strides)?,
            padding: entries.padding(&self.padding, &extents, &kernel_dilation)?,
            input_dilation: entries.per_axis("input_dilation", &self.input_dilation)?,
            kernel_dilation,
            feature_groups: entries.one("feature_group_size", self.feature_group_size)?,
            batch_groups: entries.one("batch_group_size", self.batch_group_size)?,
            input_permutation,
            kernel_permutation,
            output_permutation,
        })
    }
}

/// A permutation of all axes of the shape.
fn permutation(option: &'static str, shape: &Shape, axes: &Axes) -> Result<AxisList> {
    let resolved = shape.resolve_all("conv", axes)?;
    if resolved.len() == shape.rank() {
        return Ok(resolved);
    }
    let given = format!("{} axes", resolved.len());
    let required = format!("a permutation of all {} axes", shape.rank());
    Err(ErrorKind::OptionValue { op: "conv", option, given, required }.into())
}

/// Reads options with one entry for each of some axes.
struct AxisOptions<'a> {
    op: &'static str,
    got: &'a TensorType,
    count: usize,
    axes: &'static str,
}

impl AxisOptions<'_> {
    fn check_count(&self, what: &'static str, given: usize) -> Result<()> {
        if given == self.count {
            return Ok(());
        }
        let &AxisOptions { op, got, count: required, axes } = self;
        Err(ErrorKind::WindowEntries { op, what, given, got: got.clone(), required, axes }.into())
    }

    fn per_axis(&self, option: &'static str, entries: &PerAxis) -> Result<Sizes> {
        match entries {
            PerAxis::All(entry) => Ok(SmallVec::from_elem(self.one(option, *entry)?, self.count)),
            PerAxis::Each(entries) => {
                self.check_count(option, entries.len())?;
                entries.iter().map(|&entry| self.one(option, entry)).collect()
            }
        }
    }

    fn one(&self, option: &'static str, entry: i64) -> Result<usize> {
        match usize::try_from(entry) {
            Ok(entry) if entry >= 1 => Ok(entry),
            Ok(_) | Err(_) => {
                let (op, given) = (self.op, entry.to_string());
                let required = "an integer of at least 1".to_owned();
                Err(ErrorKind::OptionValue { op, option, given, required }.into())
            }
        }
    }

    fn padding(
        &self,
        padding: &WindowPadding,
        sizes: &[usize],
        dilations: &[usize],
    ) -> Result<SmallVec<[(i64, i64); 4]>> {
        match padding {
            WindowPadding::Valid => Ok(SmallVec::from_elem((0, 0), self.count)),
            WindowPadding::Same => Ok(sizes
                .iter()
                .zip(dilations)
                .map(|(&size, &dilation)| {
                    // A saturated value is later refused as excessive padding.
                    let total = size.saturating_sub(1).saturating_mul(dilation).min(i64::MAX as usize) as i64;
                    (total / 2, total - total / 2)
                })
                .collect()),
            WindowPadding::Each(entries) => {
                self.check_count("padding", entries.len())?;
                Ok(entries.iter().copied().collect())
            }
        }
    }
}
