//! Sets of ops that slide a window, axis by axis: a window is the product of its extents.

use super::sets::{EMPTY, Id, Sets};
use super::shape::indices;
use super::{Dependence, Site, axes};
use crate::op::{ConvOp, Window};

/// How a window slides along an axis.
#[derive(Clone, Copy)]
struct Slide {
    /// The size of the axis, and the distance of its elements.
    axis: (usize, usize),
    /// The number of elements of the window, and their distance.
    window: (usize, usize),
    /// The step of the window, and the number of its positions.
    steps: (usize, usize),
    low: i64,
}

impl Slide {
    /// For each position of the window, pairs of an element of the window and the element of the axis under it.
    fn pairs(self) -> Vec<Vec<(usize, usize)>> {
        let Slide { axis: (size, apart), window: (extent, dilation), steps: (step, count), low } = self;
        let under = |position: usize, element: usize| {
            let at = usize::try_from((position * step + element * dilation) as i64 - low).ok()?;
            (at.is_multiple_of(apart) && at / apart < size).then_some((element, at / apart))
        };
        (0..count)
            .map(|position| (0..extent).filter_map(|element| under(position, element)).collect())
            .collect()
    }

    /// For each position of the window, the elements of the axis under it.
    fn elements(self) -> Vec<Vec<usize>> {
        self.pairs().into_iter().map(|pairs| pairs.into_iter().map(|(_, at)| at).collect()).collect()
    }
}

/// How a window slides along each axis of a tensor of these sizes, with so many positions.
fn slides(window: &Window, sizes: &[usize], counts: &[usize]) -> Vec<Slide> {
    (0..sizes.len())
        .map(|axis| Slide {
            axis: (sizes[axis], 1),
            window: (window.sizes[axis], window.dilations[axis]),
            steps: (window.strides[axis], counts[axis]),
            low: window.padding[axis].0,
        })
        .collect()
}

/// The union of the elements under each position of the windows along all axes.
fn under(sets: &mut Sets, x: &[Id], sizes: &[usize], first: usize, slides: &[Slide]) -> Vec<Id> {
    let (mut found, mut sizes) = (x.to_vec(), sizes.to_vec());
    for (axis, slide) in (first..).zip(slides) {
        found = axes::join(sets, &found, &sizes, axis, &slide.elements());
        sizes[axis] = slide.steps.1;
    }
    found
}

/// The elements of each window.
pub(super) fn window(site: &mut Site<'_, '_, '_>, window: &Window) -> Dependence {
    let (x, sizes) = (site.inputs[0].clone()?, site.input_sizes(0));
    let slides = slides(window, sizes, site.output_sizes(0));
    Some(under(&mut site.analysis.sets, &x, sizes, 0, &slides).into())
}

/// `(x, init, captures)`: the elements of each window, and all that the function takes.
pub(super) fn fold(site: &mut Site<'_, '_, '_>, window: &Window) -> Dependence {
    let more = site.union_of(1..site.inputs.len());
    let (x, sizes) = (site.all(0), site.input_sizes(0));
    let slides = slides(window, sizes, site.output_sizes(0));
    let mut found = under(&mut site.analysis.sets, &x, sizes, 0, &slides);
    found.iter_mut().for_each(|id| *id = site.analysis.sets.union(*id, more));
    Some(found.into())
}

/// `(x, source, init)`: the values of all windows over an element, any of which may be scattered there.
pub(super) fn scatter(site: &mut Site<'_, '_, '_>, window: &Window) -> Dependence {
    let (sizes, mut counts) = (site.input_sizes(0), site.input_sizes(1).to_vec());
    let mut found = site.all(1).to_vec();
    for (axis, slide) in slides(window, sizes, &counts).into_iter().enumerate() {
        let mut windows = vec![Vec::new(); sizes[axis]];
        for (position, elements) in slide.elements().into_iter().enumerate() {
            elements.into_iter().for_each(|element| windows[element].push(position));
        }
        found = axes::join(&mut site.analysis.sets, &found, &counts, axis, &windows);
        counts[axis] = sizes[axis];
    }
    let init = site.union_of(2..3);
    if init != EMPTY {
        found.iter_mut().for_each(|id| *id = site.analysis.sets.union(*id, init));
    }
    Some(found.into())
}

/// `(x, kernel)`: the elements of the input under the kernel, and those of the kernel over the input.
pub(super) fn conv(site: &mut Site<'_, '_, '_>, op: &ConvOp) -> Dependence {
    let (input, kernel) = (indices(&op.input_permutation), indices(&op.kernel_permutation));
    let sizes =
        |of: &[usize], order: &[usize]| -> Vec<usize> { order.iter().map(|&axis| of[axis]).collect() };
    let (x_sizes, w_sizes) = (sizes(site.input_sizes(0), &input), sizes(site.input_sizes(1), &kernel));
    let output = indices(&op.output_permutation);
    let out_sizes = sizes(site.output_sizes(0), &output);
    let slides: Vec<Slide> = (0..x_sizes.len() - 2)
        .map(|axis| Slide {
            axis: (x_sizes[axis + 2], op.input_dilation[axis]),
            window: (w_sizes[axis + 2], op.kernel_dilation[axis]),
            steps: (op.strides[axis], out_sizes[axis + 2]),
            low: op.padding[axis].0,
        })
        .collect();
    let points: usize = out_sizes[2..].iter().product();
    let (items, features) = (out_sizes[0], out_sizes[1]);

    // The input: items, groups of channels, positions.
    let x = axes::transpose(&site.all(0), site.input_sizes(0), &input);
    let grouped = [&[x_sizes[0], op.feature_groups, w_sizes[1]], &x_sizes[2..]].concat();
    let sets = &mut site.analysis.sets;
    let x = axes::reduce(sets, &x, &grouped, &[2]);
    let grouped = [&[x_sizes[0], op.feature_groups], &x_sizes[2..]].concat();
    let x = under(sets, &x, &grouped, 2, &slides);

    // The kernel: output channels, positions.
    let w = axes::transpose(&site.all(1), site.input_sizes(1), &kernel);
    let sets = &mut site.analysis.sets;
    let mut w = axes::reduce(sets, &w, &w_sizes, &[1]);
    let mut extents = [&w_sizes[..1], &w_sizes[2..]].concat();
    for (axis, slide) in (1..).zip(&slides) {
        let over: Vec<Vec<usize>> = slide
            .pairs()
            .into_iter()
            .map(|pairs| pairs.into_iter().map(|(element, _)| element).collect())
            .collect();
        w = axes::join(sets, &w, &extents, axis, &over);
        extents[axis] = slide.steps.1;
    }

    let mut found = Vec::with_capacity(items * features * points);
    let groups = op.feature_groups.max(op.batch_groups);
    for item in 0..items {
        for feature in 0..features {
            let group = feature / (features / groups);
            let (item, group) = match op.batch_groups > 1 {
                true => (group * items + item, 0),
                false => (item, group),
            };
            let from = &x[(item * op.feature_groups + group) * points..][..points];
            let by = &w[feature * points..][..points];
            found.extend(from.iter().zip(by).map(|(&x, &w)| sets.union(x, w)));
        }
    }
    let mut back = vec![0; output.len()];
    output.iter().enumerate().for_each(|(role, &axis)| back[axis] = role);
    Some(axes::transpose(&found, &out_sizes, &back).into())
}
