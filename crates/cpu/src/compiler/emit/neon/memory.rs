//! Loads and stores of vectors.

use super::super::AllocatedInst;
use super::super::mir::Elem;
use super::words as w;
use super::{OTHER, SCRATCH, SCRATCH_V, Shape, Writer, size_of};

/// The bytes of all lanes, as a power of two.
fn vector_size(inst: &AllocatedInst) -> u32 {
    (usize::from(inst.lanes) * inst.elem.bytes()).trailing_zeros()
}

impl Writer<'_> {
    /// All lanes.
    pub(super) fn load(&mut self, inst: &AllocatedInst) {
        let size = vector_size(inst);
        self.access(w::ldr_v(size), size, inst.dst, inst.mem);
    }

    pub(super) fn store(&mut self, inst: &AllocatedInst) {
        let size = vector_size(inst);
        self.access(w::str_v(size), size, inst.src[0].reg(), inst.mem);
    }

    /// One element for all lanes.
    pub(super) fn load_splat(&mut self, inst: &AllocatedInst) {
        if inst.lanes == 1 {
            return self.load(inst);
        }
        let base = self.address(inst.mem);
        let shape = Shape::of(inst.elem, inst.lanes);
        self.push(w::dn(w::LD1R | shape.q | shape.size << 10, inst.dst, base));
    }

    /// The first `count` elements. Each bit of the count is a piece of so many elements, the largest pieces
    /// first in memory. They are loaded from the last to the first, and each shifts those before it up.
    pub(super) fn load_part(&mut self, inst: &AllocatedInst, count: u8) {
        let (size, top) = (size_of(inst.elem), u32::from(inst.lanes).trailing_zeros());
        self.address_to(OTHER, inst.mem);
        self.push(w::add_shifted(OTHER, OTHER, count, size));
        self.push(w::movi(inst.dst, 0b1_1110, 0));
        for bit in 0..=top {
            let piece = size + bit;
            let (load, bytes) = (w::ldr_v(piece), 1 << piece);
            if bit == top {
                // All elements: nothing else has been loaded.
                self.push(w::tbz(count, bit, 2));
                self.push(w::at_near(load, inst.dst, OTHER, -bytes));
            } else {
                self.push(w::tbz(count, bit, 3));
                self.push(w::at_before(load, SCRATCH_V, OTHER, -bytes));
                self.push(w::dnm(w::V_ZIP1 | w::Q | piece << 22, inst.dst, SCRATCH_V, inst.dst));
            }
        }
    }

    /// Stores the first `count` elements, piece by piece as [`Writer::load_part`], from the first to the
    /// last.
    pub(super) fn store_part(&mut self, inst: &AllocatedInst, count: u8) {
        let (size, top) = (size_of(inst.elem), u32::from(inst.lanes).trailing_zeros());
        self.address_to(OTHER, inst.mem);
        let mut from = inst.src[0].reg();
        for bit in (0..=top).rev() {
            let piece = size + bit;
            let (store, bytes) = (w::str_v(piece), 1 << piece);
            if bit == top || bit == 0 {
                // All elements, or the last one: nothing else follows.
                self.push(w::tbz(count, bit, 2));
                self.push(w::at_near(store, from, OTHER, 0));
            } else {
                // The copy is made whether or not this piece is stored.
                self.move_vector(SCRATCH_V, from);
                self.push(w::tbz(count, bit, 3));
                self.push(w::at_after(store, SCRATCH_V, OTHER, bytes));
                self.push(w::ext(SCRATCH_V, SCRATCH_V, SCRATCH_V, bytes as u32));
                from = SCRATCH_V;
            }
        }
    }

    /// An element for each lane, at a position that a lane has.
    pub(super) fn gather(&mut self, inst: &AllocatedInst, from: Elem) {
        let (size, positions) = (size_of(inst.elem), inst.src[0].reg());
        let base = self.address(inst.mem);
        for lane in 0..u32::from(inst.lanes) {
            self.lane_to_general(SCRATCH, positions, from, lane);
            if lane == 0 {
                self.push(w::at_index(w::ldr_v(size), inst.dst, base, SCRATCH, size != 0));
            } else {
                self.push(w::add_shifted(SCRATCH, base, SCRATCH, size));
                self.push(w::ld1_lane(inst.dst, SCRATCH, size, lane));
            }
        }
    }
}
