"""Why another Rust library is faster, by workload: `rivals.py` writes it where it still is.

The numbers were measured with one thread, most of them with `perf` or by changing one thing.
"""

MEAN = """A mean adds in f64: the sum converts each element, so that an instruction has half as
many. A sum in f32 of 64 x 1024 elements takes 3.0 us, one in f64 5.2 us, and the mean 8.0 us, with
a quotient and a conversion of 64 elements. For 4096 x 1024 the sum in f32 takes 0.24 ms and the
mean 0.36 ms."""

VECTORS = """{share} of the time rotates the vectors of the QR iteration, and {passes} are passes
over rows that reduce the matrix to {form} form or apply the reflections. faer divides and
conquers."""

REASONS: dict[str, str] = {
    "a + b, 64 K": """A call has a fixed cost of 0.6 us: that is the time for two arrays of 8
elements. The loop takes 8.4 us, and that of Rust 7.0 to 7.6 us. With two threads candle divides the
arrays, and defn does not.""",
    "chain of 8, 64 K": """It takes as long as `a + b, 64 K`, which moves as many bytes, and the
reason is the same.""",
    "a + b, 4 M": """The arrays fit in no cache. A second thread does not make the addition faster,
but it does for the chain of 8 operations on arrays of the same size.""",
    "sum of all, 64 x 1024": """A call has a fixed cost of 0.6 us: that is the time for 8 elements.
The loop takes 2.5 us.""",
    "sum of all, 4096 x 1024": """The loop loads 512 bits at once. With `DEFN_SIMD=avx2`, which
loads 256 bits, it takes 252 us instead of 267 us.""",
    "sum of columns, 64 x 1024": """A call has a fixed cost of 0.6 us: that is the time for 8 x 8
elements. The loop takes 3.6 us, with one thread as with two.""",
    "sum of columns, 4096 x 1024": """The loop reads 53 GB/s, and that of the sum of all elements 62
GB/s. Loads of 256 bits instead of 512 make no difference here.""",
    "mean of rows, 64 x 1024": MEAN,
    "mean of rows, 4096 x 1024": MEAN,
    "layer norm, 64 x 1024": """The mean and the variance add in f64, so that an instruction has
half as many elements. With sums in f32 the same function takes 14 us instead of 18 us.""",
    "matmul 64, f32": """A product has a fixed cost of 1.1 us: that is the time for two matrices of
8 x 8. The product itself takes 4.7 us.""",
    "matrix x vector 256, f32": """`dot` has a fixed cost of 1.3 us: that is the time for 8 x 8, and
twice that of an addition. The loop takes 2.7 us.""",
    "matrix x vector 2048, f32": """The matrix has 16 MB. The loop loads 512 bits at once. With
`DEFN_SIMD=avx2`, which loads 256 bits, it takes 259 us instead of 299 us.""",
    "Cholesky 64, f64": """Half of the time factors the two squares of 32 x 32 on the diagonal,
column by column; this alone takes as long as faer's factorization.""",
    "Cholesky 256, f64": """42 % of the time is the kernel of matrix products, 12 % solves for the
rows of panels, 11 % factors the squares on the diagonal, and 11 % transposes.""",
    "solve 64, f64": """65 % of the time is the LU factorization of one panel, which is the whole
matrix: column by column, each with its pivot.""",
    "QR 256, f64": """42 % of the time adds multiples of Householder vectors to rows, and 40 %
applies blocks of reflections, both as passes over rows. faer's time is in its kernels of matrix
products.""",
    "SVD 256, f64": VECTORS.format(share="33 %", passes="41 %", form="bidiagonal"),
    "eigh 256, f64": VECTORS.format(share="35 %", passes="36 %", form="tridiagonal"),
    "fft 1 M": """defn transforms lines by rustfft too. It splits a line of a megabyte or more into
a matrix and transforms columns, then rows, which threads divide. One thread takes 6.4 ms so, and
4.9 ms without; two take 2.8 ms.""",
    "fft 15,015 = 3 x 5 x 7 x 11 x 13": """defn copies a line of 120 KB before the transform by
rustfft and after it. The program that calls rustfft copies it once.""",
    "take 64 K rows of 64": """90 % of the time is `memmove`, which is called for each row of 256
bytes, at random positions in 16 MB.""",
    "Kalman filter, 4 states, 2000 steps": """A step of defn's loop has 527 instructions, of which
252 read or write memory. nalgebra's has 319, of which 97 do, and calls two products of 4 x 4.""",
}
