//! Exchanges between the devices of a mesh, and between the positions of a mapped axis.

use defn_core::builder::BuildCollective;
use defn_core::vectorize::named;
use defn_core::{AxisRef, Location, Name};

use crate::Expr;
use crate::expr::record;
use crate::mesh::{AllReduceOp, DeviceGroups};

/// What an exchange is between: the devices of a mesh, or the positions of an axis that
/// [`VmapOptions::with_axis_name`](crate::VmapOptions::with_axis_name) gives a name, here also called devices.
///
/// Methods take `impl Into<Along>`, so it is seldom named: groups of devices, a name or an array of names, whose last is the
/// fastest. A name that no mapped axis around the call has is an error: `Axis`, or `Trace` where no axis has a name. So is an
/// exchange in a branch or loop to which not all positions come equally often (`Trace`).
///
/// ```
/// use defn::mesh::{AllReduceOp, Along};
/// use defn::prelude::*;
/// use defn::VmapOptions;
///
/// fn mean(x: &Expr, along: impl Into<Along>) -> Expr {
///     let along = along.into();
///     x.all_reduce(AllReduceOp::Sum, &along) / Expr::mesh_size(&along) as i32
/// }
/// let f = jit(|x: Expr| {
///     let (rows, columns) = ("rows", "columns");
///     VmapOptions::new().with_axis_name(rows).vmap(x, |x| {
///         VmapOptions::new().with_axis_name(columns).vmap(x, |x| &x - mean(&x, [rows, columns]))
///     })
/// });
/// assert_eq!(f.call(tensor![[1.0, 2.0], [3.0, 6.0]]?)?.to_vec::<f32>()?, [-2.0, -1.0, 0.0, 3.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along(Between);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Between {
    Devices(DeviceGroups),
    Positions(Vec<Name>),
}

impl From<DeviceGroups> for Along {
    fn from(groups: DeviceGroups) -> Along {
        Along(Between::Devices(groups))
    }
}

impl From<&DeviceGroups> for Along {
    fn from(groups: &DeviceGroups) -> Along {
        groups.clone().into()
    }
}

impl From<&Along> for Along {
    fn from(along: &Along) -> Along {
        along.clone()
    }
}

impl From<&str> for Along {
    fn from(name: &str) -> Along {
        [name].into()
    }
}

impl From<&[&str]> for Along {
    fn from(names: &[&str]) -> Along {
        Along(Between::Positions(names.iter().map(|&name| name.into()).collect()))
    }
}

impl<const N: usize> From<[&str; N]> for Along {
    fn from(names: [&str; N]) -> Along {
        names.as_slice().into()
    }
}

impl Expr {
    /// The elements at the same position on all devices of a group, reduced to their sum, greatest or least. Each
    /// device gets the result.
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any, but not complex for the greatest and the least; unchanged. Integers wrap.
    /// - Gradient: the sum of the devices' cotangents, or in equal shares to the elements that are the extreme one.
    ///
    /// ```
    /// # use defn::mesh::{AllReduceOp, Mesh};
    /// # use defn::prelude::*;
    /// let pair = Mesh::new(vec![("data".into(), 2)])?.device_groups("all_reduce", &["data".into()])?;
    /// let f = jit(|x: Expr| {
    ///     let result = x.all_reduce(AllReduceOp::Sum, &pair);
    ///     assert_eq!(result.ty().unwrap().to_string(), "s32[2]");
    ///     result
    /// });
    /// // The CPU is one device: `pjrt::mesh_compiler` compiles for several.
    /// let error = f.call(Tensor::from_slice(&[1, 2], &[2])?).unwrap_err();
    /// assert!(error.to_string().starts_with("all_reduce: the CPU runs a program on one device"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Complex elements for the greatest or the least (`DType`); a compiler for one device and a group of several
    /// (`Compile`); a name that is not known here ([`Along`]). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn all_reduce(&self, op: AllReduceOp, along: impl Into<Along>) -> Expr {
        let along = along.into();
        self.apply(|ops, x| match &along.0 {
            Between::Devices(groups) => ops.all_reduce(x, op, groups),
            Between::Positions(names) => named::all_reduce(ops, x, op, names),
        })
    }

    /// The blocks of all devices of a group, one after the other along an axis. Each device gets the result.
    ///
    /// - Shape: the size of the axis is multiplied by the number of devices.
    /// - Dtypes: any; unchanged.
    /// - Gradient: [`reduce_scatter`](Expr::reduce_scatter) of `g`.
    ///
    /// ```
    /// # use defn::mesh::Mesh;
    /// # use defn::prelude::*;
    /// let pair = Mesh::new(vec![("data".into(), 2)])?.device_groups("all_gather", &["data".into()])?;
    /// let f = jit(|x: Expr| {
    ///     let result = x.all_gather(0, &pair);
    ///     assert_eq!(result.ty().unwrap().to_string(), "s32[4]");
    ///     result
    /// });
    /// // The CPU is one device: `pjrt::mesh_compiler` compiles for several.
    /// let error = f.call(Tensor::from_slice(&[1, 2], &[2])?).unwrap_err();
    /// assert!(error.to_string().starts_with("all_gather: the CPU runs a program on one device"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the expression does not have (`Axis`); a compiler for one device and a group of several
    /// (`Compile`); a name that is not known here ([`Along`]). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn all_gather(&self, axis: impl Into<AxisRef>, along: impl Into<Along>) -> Expr {
        let along = along.into();
        self.apply(|ops, x| match &along.0 {
            Between::Devices(groups) => ops.all_gather(x, axis, groups),
            Between::Positions(names) => named::all_gather(ops, x, &axis.into(), names),
        })
    }

    /// The sum of the tensors of all devices of a group; each device gets its part along an axis.
    ///
    /// - Shape: the size of the axis is divided by the number of devices.
    /// - Dtypes: any; unchanged. Integers wrap.
    /// - Gradient: [`all_gather`](Expr::all_gather) of `g`.
    ///
    /// ```
    /// # use defn::mesh::Mesh;
    /// # use defn::prelude::*;
    /// let pair = Mesh::new(vec![("data".into(), 2)])?.device_groups("reduce_scatter", &["data".into()])?;
    /// let f = jit(|x: Expr| {
    ///     let result = x.reduce_scatter(0, &pair);
    ///     assert_eq!(result.ty().unwrap().to_string(), "s32[1]");
    ///     result
    /// });
    /// // The CPU is one device: `pjrt::mesh_compiler` compiles for several.
    /// let error = f.call(Tensor::from_slice(&[1, 2], &[2])?).unwrap_err();
    /// assert!(error.to_string().starts_with("reduce_scatter: the CPU runs a program on one device"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the expression does not have (`Axis`), or whose size the devices do not divide (`Shape`); a
    /// compiler for one device and a group of several (`Compile`); a name that is not known here ([`Along`]). The
    /// error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn reduce_scatter(&self, axis: impl Into<AxisRef>, along: impl Into<Along>) -> Expr {
        let along = along.into();
        self.apply(|ops, x| match &along.0 {
            Between::Devices(groups) => ops.reduce_scatter(x, axis, groups),
            Between::Positions(names) => named::reduce_scatter(ops, x, &axis.into(), names),
        })
    }

    /// The tensor of another device: each pair sends that of the first device to the second, by their positions in the
    /// group. A device that receives nothing gets zeros.
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g` in the opposite direction.
    ///
    /// ```
    /// # use defn::mesh::Mesh;
    /// # use defn::prelude::*;
    /// let pair = Mesh::new(vec![("data".into(), 2)])?.device_groups("collective_permute", &["data".into()])?;
    /// let f = jit(|x: Expr| {
    ///     let result = x.collective_permute(&[(0, 1), (1, 0)], &pair);
    ///     assert_eq!(result.ty().unwrap().to_string(), "s32[2]");
    ///     result
    /// });
    /// // The CPU is one device: `pjrt::mesh_compiler` compiles for several.
    /// let error = f.call(Tensor::from_slice(&[1, 2], &[2])?).unwrap_err();
    /// assert!(error.to_string().starts_with("collective_permute: the CPU runs a program on one device"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A position out of range, and two pairs with the same source or target (`Option`); a compiler for one device
    /// and a group of several (`Compile`); a name that is not known here ([`Along`]). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn collective_permute(&self, pairs: &[(usize, usize)], along: impl Into<Along>) -> Expr {
        let along = along.into();
        self.apply(|ops, x| match &along.0 {
            Between::Devices(groups) => ops.collective_permute(x, pairs, groups),
            Between::Positions(names) => named::permute(ops, x, pairs, names),
        })
    }

    /// The position in its group of the device that runs the function, from 0 on.
    ///
    /// - Shape: a scalar.
    /// - Dtypes: s32.
    ///
    /// ```
    /// # use defn::mesh::Mesh;
    /// # use defn::prelude::*;
    /// let pair = Mesh::new(vec![("data".into(), 2)])?.device_groups("mesh_index", &["data".into()])?;
    /// let f = jit(|x: Expr| {
    ///     let result = x + Expr::mesh_index(&pair);
    ///     assert_eq!(result.ty().unwrap().to_string(), "s32");
    ///     result
    /// });
    /// // The CPU is one device: `pjrt::mesh_compiler` compiles for several.
    /// let error = f.call(Tensor::scalar(5)?).unwrap_err();
    /// assert!(error.to_string().starts_with("mesh_index: the CPU runs a program on one device"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A compiler for one device and a group of several (`Compile`); a name that is not known here ([`Along`]). The
    /// error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn mesh_index(along: impl Into<Along>) -> Expr {
        let along = along.into();
        Expr::make(Location::caller(), |ops| match &along.0 {
            Between::Devices(groups) => ops.mesh_index(groups),
            Between::Positions(names) => named::index(ops, names),
        })
    }

    /// The number of devices of a group. After an error it is 1, so that a program may go on to where the error comes out.
    ///
    /// ```
    /// # use defn::mesh::Mesh;
    /// # use defn::prelude::*;
    /// use defn::VmapOptions;
    ///
    /// let pair = Mesh::new(vec![("data".into(), 2)])?.device_groups("mesh_size", &["data".into()])?;
    /// assert_eq!(Expr::mesh_size(&pair), 2);
    /// let parts = jit(|x: Expr| {
    ///     VmapOptions::new().with_axis_name("i").vmap(x, |x| x / Expr::mesh_size("i") as i32)
    /// });
    /// assert_eq!(parts.call(tensor![3.0, 6.0, 9.0]?)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name that is not known here ([`Along`]). The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn mesh_size(along: impl Into<Along>) -> usize {
        match along.into().0 {
            Between::Devices(groups) => groups.size(),
            Between::Positions(names) => record(Location::caller(), |_| named::size(&names)).unwrap_or(1),
        }
    }
}
