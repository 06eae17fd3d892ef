"""k-means (Lloyd 1982), repeated until no point changes its centre.

python examples/kmeans.py
"""

from __future__ import annotations

import numpy as np

import defn as dn


@dn.defn
def kmeans(points, centres):
    """The centres {k, d}, the nearest centre of each point {n}, and the number of rounds."""
    count = centres.shape[0]
    nearest = dn.broadcast(-1, (points.shape[0],))
    changed = points.shape[0]
    rounds = 0
    while changed > 0:
        gaps = dn.new_axis(points, 1) - dn.new_axis(centres, 0)
        found = dn.argmin(dn.sum(gaps * gaps, axes=-1), axis=1)
        changed = dn.as_type(dn.sum(found != nearest), "s32")
        nearest = found
        for k in dn.range(count):
            own = dn.as_type(nearest == k, points.dtype)
            size = dn.sum(own)
            if size > 0:
                centre = dn.dot(own, points) / size
            else:
                centre = centres[k]
            centres = dn.put_slice(centres, [k, 0], dn.new_axis(centre, 0))
        rounds = rounds + 1
    return centres, nearest, rounds


def kmeans_numpy(points, centres):
    """The same in NumPy."""
    centres, nearest, rounds = centres.copy(), np.full(len(points), -1), 0
    while True:
        found = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
        changed = (found != nearest).sum()
        nearest = found
        for k in range(len(centres)):
            if (nearest == k).any():
                centres[k] = points[nearest == k].mean(0)
        rounds += 1
        if changed == 0:
            return centres, nearest, rounds


def clouds(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points {3 * count, 2} around three centres, and three of the points to start from."""
    random = np.random.default_rng(seed)
    middles = np.array([[0.0, 0.0], [6.0, 1.0], [2.0, 7.0]])
    points = np.concatenate([random.normal(middle, 1.0, (count, 2)) for middle in middles])
    return points, points[::count][:3].copy()


def main() -> None:
    centres, _, rounds = kmeans(*clouds(200))
    print(f"after {int(rounds)} rounds:")
    for x, y in centres.to_list():
        print(f"  ({x:5.2f}, {y:5.2f})")


if __name__ == "__main__":
    main()
