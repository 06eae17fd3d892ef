//! Exchanges between the devices of a mesh.

use defn_core::builder::BuildCollective;
use defn_core::{AxisRef, Location};

use crate::Expr;
use crate::mesh::{AllReduceOp, DeviceGroups};

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
    /// (`Compile`). The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn all_reduce(&self, op: AllReduceOp, groups: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.all_reduce(x, op, groups))
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
    /// (`Compile`). The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn all_gather(&self, axis: impl Into<AxisRef>, groups: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.all_gather(x, axis, groups))
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
    /// compiler for one device and a group of several (`Compile`). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn reduce_scatter(&self, axis: impl Into<AxisRef>, groups: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.reduce_scatter(x, axis, groups))
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
    /// A position out of range, and two pairs with the same source or target (`Option`); a compiler for one device and
    /// a group of several (`Compile`). The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn collective_permute(&self, pairs: &[(usize, usize)], groups: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.collective_permute(x, pairs, groups))
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
    /// A compiler for one device and a group of several (`Compile`). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn mesh_index(groups: &DeviceGroups) -> Expr {
        Expr::make(Location::caller(), |ops| ops.mesh_index(groups))
    }
}
