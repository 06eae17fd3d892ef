"""A ray marcher: renders a sphere on a plane, with one ray for each pixel.

    python examples/ray_marcher.py

Each ray advances by the distance to the nearest surface (sphere tracing, Hart 1996). All rays
advance together until every one has stopped; normals are gradients of the distance.
"""

from __future__ import annotations

import numpy as np

import defn as dn

LIGHT = (0.5, 0.8, -0.4)


def distance(points):
    """The distance of points {n, 3} to a sphere of radius 1 and the plane below it."""
    sphere = dn.sqrt(dn.sum(points * points, axes=-1)) - 1.0
    plane = points[:, 1] + 1.0
    return dn.min(sphere, plane)


@dn.defn
def render(directions, origin, light):
    """The brightness of each ray {n, 3}; 0 if it hits nothing."""
    travelled = dn.broadcast(dn.as_type(0.0, "f64"), (directions.shape[0],))
    step = travelled + 1.0
    count = 0
    while dn.any((step > 1e-6) & (travelled < 20.0)) and count < 200:
        points = origin + directions * dn.new_axis(travelled, -1)
        step = dn.select(travelled < 20.0, distance(points), 0.0)
        travelled = travelled + step
        count = count + 1
    points = origin + directions * dn.new_axis(travelled, -1)
    normals = dn.grad(lambda p: dn.sum(distance(p)))(points)
    brightness = dn.clip(dn.sum(normals * light, axes=-1), 0.0, 1.0)
    return dn.select(travelled < 20.0, brightness, 0.0)


def render_numpy(directions, origin, light):
    """The same in NumPy, with normals derived by hand."""
    travelled = np.zeros(len(directions))
    step = travelled + 1
    count = 0
    while np.any((step > 1e-6) & (travelled < 20)) and count < 200:
        points = origin + directions * travelled[:, None]
        sphere = np.sqrt((points * points).sum(-1)) - 1
        step = np.where(travelled < 20, np.minimum(sphere, points[:, 1] + 1), 0)
        travelled = travelled + step
        count += 1
    points = origin + directions * travelled[:, None]
    radius = np.sqrt((points * points).sum(-1))
    on_sphere = (radius - 1 < points[:, 1] + 1)[:, None]
    normals = np.where(on_sphere, points / radius[:, None], np.array([0.0, 1.0, 0.0]))
    brightness = np.clip((normals * light).sum(-1), 0, 1)
    return np.where(travelled < 20, brightness, 0)


def camera(width: int, height: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The directions {height * width, 3} of the rays, their origin, and the light's direction."""
    x, y = np.meshgrid(np.linspace(-1.2, 1.2, width), np.linspace(0.9, -0.6, height))
    directions = np.stack([x, y, np.full_like(x, 1.5)], -1).reshape(-1, 3)
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    light = np.array(LIGHT) / np.linalg.norm(LIGHT)
    return directions, np.array([0.0, 0.3, -3.5]), light


def main() -> None:
    width, height = 72, 28
    picture = render(*camera(width, height)).to_numpy().reshape(height, width)
    shades = " .:-=+*#%@"
    for row in picture:
        print("".join(shades[min(int(value * len(shades)), len(shades) - 1)] for value in row))


if __name__ == "__main__":
    main()
