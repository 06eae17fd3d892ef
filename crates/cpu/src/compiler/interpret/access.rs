//! Loads and stores between memory, which is not aligned, and registers.

use super::scalars::Element;

/// Moves `count` elements between an address, whose elements are so many bytes apart, and a register.
pub(super) type MoveFn = unsafe fn(address: *mut u8, stride: i64, register: *mut u8, count: usize);

/// Loads `count` elements at positions, which are in a register.
pub(super) type GatherFn =
    unsafe fn(address: *mut u8, stride: i64, positions: *const u8, register: *mut u8, count: usize);

/// Whether elements are without gaps.
fn is_dense<T>(stride: i64) -> bool {
    stride == size_of::<T>() as i64
}

/// Loads elements.
///
/// # Safety
/// All are in memory, and the register has room.
pub(super) unsafe fn load<T: Element>(address: *mut u8, stride: i64, register: *mut u8, count: usize) {
    let to = register.cast::<T>();
    if is_dense::<T>(stride) {
        // SAFETY: as the caller says; no buffer is a register.
        unsafe { std::ptr::copy_nonoverlapping(address, register, count * size_of::<T>()) };
        return;
    }
    for lane in 0..count {
        let from = address.wrapping_offset((lane as i64).wrapping_mul(stride) as isize).cast::<T>();
        // SAFETY: as the caller says.
        unsafe { to.add(lane).write(from.read_unaligned()) };
    }
}

/// Stores elements, in order.
///
/// # Safety
/// All are in memory, and the register has them.
pub(super) unsafe fn store<T: Element>(address: *mut u8, stride: i64, register: *mut u8, count: usize) {
    let from = register.cast::<T>().cast_const();
    if is_dense::<T>(stride) {
        // SAFETY: as the caller says; no buffer is a register.
        unsafe { std::ptr::copy_nonoverlapping(register, address, count * size_of::<T>()) };
        return;
    }
    for lane in 0..count {
        let to = address.wrapping_offset((lane as i64).wrapping_mul(stride) as isize).cast::<T>();
        // SAFETY: as the caller says.
        unsafe { to.write_unaligned(from.add(lane).read()) };
    }
}

/// Stores a scalar to all elements.
///
/// # Safety
/// All are in memory, and the register has the scalar.
pub(super) unsafe fn fill<T: Element>(address: *mut u8, stride: i64, register: *mut u8, count: usize) {
    // SAFETY: as the caller says.
    let value = unsafe { register.cast::<T>().read() };
    for lane in 0..count {
        let to = address.wrapping_offset((lane as i64).wrapping_mul(stride) as isize).cast::<T>();
        // SAFETY: as the caller says.
        unsafe { to.write_unaligned(value) };
    }
}

/// A type of positions: signed.
pub(super) trait Position: Element {
    fn signed(self) -> i64;
}

impl Position for u32 {
    #[inline(always)]
    fn signed(self) -> i64 {
        i64::from(self as i32)
    }
}

impl Position for u64 {
    #[inline(always)]
    fn signed(self) -> i64 {
        self as i64
    }
}

/// Loads the elements at positions.
///
/// # Safety
/// All are in memory, and the registers have so many.
pub(super) unsafe fn gather<T: Element, P: Position>(
    address: *mut u8,
    stride: i64,
    positions: *const u8,
    register: *mut u8,
    count: usize,
) {
    let (to, positions) = (register.cast::<T>(), positions.cast::<P>());
    for lane in 0..count {
        // SAFETY: as the caller says.
        let position = unsafe { positions.add(lane).read() }.signed();
        let offset =
            position.wrapping_mul(size_of::<T>() as i64).wrapping_add((lane as i64).wrapping_mul(stride));
        let from = address.wrapping_offset(offset as isize).cast::<T>();
        // SAFETY: as the caller says.
        unsafe { to.add(lane).write(from.read_unaligned()) };
    }
}
