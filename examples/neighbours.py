"""Tensors and arrays together with other libraries: each function is a complete program.

python examples/neighbours.py
"""

from __future__ import annotations

import importlib
import io

import defn as dn
import defn.array_api as xp


@dn.jit
def standardised(x):
    """A column with mean 0 and standard deviation 1."""
    return (x - dn.mean(x)) / dn.standard_deviation(x)


def pandas():
    """Columns of a frame go in as they are; a tensor comes back as a column by ``to_numpy``."""
    import pandas as pd

    frame = pd.DataFrame({"name": ["a", "b", "c"], "size": [1.0, 2.0, 6.0]})
    frame["z"] = standardised(dn.tensor(frame["size"])).to_numpy()
    return frame


def polars():
    """The same with polars."""
    import polars as pl

    frame = pl.DataFrame({"name": ["a", "b", "c"], "size": [1.0, 2.0, 6.0]})
    z = standardised(dn.tensor(frame["size"]))
    return frame.with_columns(pl.Series("z", z.to_numpy()))


def matplotlib():
    """A plot takes tensors and arrays where it takes NumPy's. The bytes of a picture in SVG."""
    from matplotlib.figure import Figure

    x = dn.linspace(0.0, 6.0, n=50)
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(x, dn.sin(x))
    axes.fill_between(xp.asarray(x), xp.asarray(dn.cos(x)), alpha=0.3)
    axes.imshow(dn.reshape(x, (5, 10)), extent=(0, 6, -1, 1), aspect="auto")
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def xarray():
    """Labelled axes over our arrays: selections, means that skip NaN, and differences by label."""
    import xarray as xr

    values = xp.asarray([[1.0, 2.0, xp.nan], [4.0, 5.0, 6.0]])
    days = xr.DataArray(values, dims=("place", "day"), coords={"place": ["Bonn", "Oslo"]})
    anomalies = days - days.mean("day")
    return anomalies.where(~anomalies.isnull(), 0.0).sel(place="Oslo")


def einops():
    """Rearranged axes. The functions are those of ``einops.array_api``."""
    from einops import array_api

    images = xp.reshape(xp.arange(24.0), (2, 4, 3))
    pattern = "image (block row) column -> (image block) row column"
    rows = array_api.rearrange(images, pattern, row=2)
    return array_api.reduce(rows, "block row column -> block column", "mean")


def torch():
    """Memory is shared with PyTorch in both directions. The addresses are equal."""
    pt = importlib.import_module("torch")

    theirs = pt.arange(4, dtype=pt.float64)
    ours = xp.from_dlpack(theirs)
    back = pt.from_dlpack(ours)
    return theirs.data_ptr(), dn.to_pointer(dn.tensor(ours)).address, back.data_ptr()


def jax():
    """JAX's memory is shared. JAX itself copies, since it cannot be told that ours is read-only."""
    jnp = importlib.import_module("jax.numpy")

    theirs = jnp.arange(4, dtype=jnp.float32)
    ours = xp.from_dlpack(theirs)
    back = jnp.from_dlpack(ours)
    return theirs.unsafe_buffer_pointer(), dn.to_pointer(dn.tensor(ours)).address, back.tolist()


def main():
    for library in (pandas, polars, matplotlib, xarray, einops, torch, jax):
        try:
            out = library()
        except ImportError:
            print(f"{library.__name__} is not installed")
            continue
        shown = f"{len(out)} bytes" if isinstance(out, bytes) else out
        print(f"{library.__name__}:\n{shown}\n")


if __name__ == "__main__":
    main()
