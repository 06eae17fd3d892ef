"""Wrong calls of sets, positions and of Fourier transforms along several axes."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("positions without a size in a definition", "dn.jit(dn.nonzero)(v)"),
    ("distinct elements of each example", "dn.vmap(dn.unique)(x)"),
    ("a negative number of positions", "dn.flatnonzero(v, size=-1)"),
    ("a number of positions that is no integer", "dn.argwhere(v, size=2.5)"),
    ("positions of a scalar", "dn.nonzero(1.0)"),
    ("a fill of several elements", "dn.unique(v, size=5, fill_value=v)"),
    ("a fill of another kind", "dn.setdiff1d(i, 3, size=5, fill_value=0.5)"),
    ("a number that is in no set of the dtype", "dn.isin(i.as_type('u8'), 300)"),
    ("a transform with an unknown norm", "dn.fft(v, norm='unitary')"),
    ("a transform with two lengths for one axis", "dn.fftn(x, axes=[0], lengths=[2, 2])"),
    ("a transform with a text for lengths", "dn.fftn(x, lengths='long')"),
    ("a transform of length zero among others", "dn.ifftn(x, lengths=[2, 0])"),
    ("a transform along an axis twice among others", "dn.fftn(x, axes=[1, -1])"),
    ("a transform of complex numbers as real ones, several axes", "dn.rfftn(c)"),
    ("a transform of real numbers along no axis", "dn.rfftn(x, axes=[])"),
    ("a transform back to real numbers along no axis", "dn.irfftn(x, axes=[])"),
    ("a transform of a vector of real numbers along two axes", "dn.rfft2(v)"),
    ("a transform back of a vector along two axes", "dn.irfft2(v)"),
    ("a transform to a half of complex numbers", "dn.ihfft(c)"),
    ("a real spectrum of one element", "dn.hfft(c)"),
    ("a shift of frequencies along an axis twice", "dn.fftshift(x, axes=[0, 0])"),
    ("a shift back of frequencies beyond the axes", "dn.ifftshift(v, axes=1)"),
    ("frequencies of no element", "dn.fftfreq(0)"),
    ("frequencies as integers", "dn.rfftfreq(4, dtype='s32')"),
    ("frequencies at several distances", "dn.fftfreq(4, v)"),
    ("frequencies at a complex distance", "dn.fftfreq(4, 1j)"),
]
