//! A ray marcher: renders a sphere on a plane, with one ray for each pixel, into a PPM file.
//!
//! `cargo run --release -p defn --example ray_marcher -- [FILE]`
//!
//! Each ray advances by the distance to the nearest surface (sphere tracing, Hart 1996). All rays advance together, in
//! one `while_`, until each has stopped; normals are gradients of the distance. Checks the distances along the rays
//! against the analytic intersections. Prints the number of pixels of each surface, the greatest error, and the file.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use defn::prelude::*;

const WIDTH: usize = 320;
const HEIGHT: usize = 200;
const EYE: [f64; 3] = [0.0, 0.3, -3.5];
const LIGHT: [f64; 3] = [0.49, 0.78, -0.39];
/// Rays that are so far have left the scene.
const FAR: f64 = 20.0;
/// Rays that are so near have hit.
const NEAR: f64 = 1e-7;
const MAX_STEPS: i32 = 500;

/// The distance of points, f64[n][3], to the sphere of radius 1 around the origin.
fn sphere(points: &Expr) -> Expr {
    points.pow(2).sum(-1, false).sqrt() - 1.0
}

/// The distance of points to the nearest surface: the sphere, or the plane below it.
fn distance(points: &Expr) -> Expr {
    sphere(points).min(points.at((.., 1)) + 1.0)
}

/// How far rays get, from a point in directions f64[n][3]: more than `FAR` if they hit nothing.
fn march(origin: &Expr, directions: &Expr) -> Expr {
    let start = 0.0 * directions.at((.., 0));
    let (_, travelled, _) = while_(
        (Expr::constant(DType::S32, 0), start.clone(), start + 1.0),
        |(count, travelled, step)| {
            let moves = step.greater(NEAR) & travelled.less(FAR);
            moves.any(Axes::All, false) & count.less(MAX_STEPS)
        },
        |(count, travelled, _)| {
            let points = origin + directions * travelled.new_axis(-1);
            let step = travelled.less(FAR).select(distance(&points), 0.0);
            (count + 1, &travelled + &step, step)
        },
    );
    travelled
}

/// How far rays get, and the colour that they see, u8[n][3].
fn render((directions, eye, light): (Expr, Expr, Expr)) -> (Expr, Expr) {
    let travelled = march(&eye, &directions);
    let points = &eye + &directions * travelled.new_axis(-1);
    // The value of each point depends on that point alone, so that the gradient of the sum has a normal in each row.
    let normals = grad(&points, |points| distance(&points));
    // A ray from a point on a surface begins a little above it.
    let shadow_start = &points + 1e-3 * &normals;
    let in_light = march(&shadow_start, &(&light + points.zeros_like())).greater(FAR);
    let facing = (&normals * &light).sum(-1, false).max(0.0);
    let brightness = 0.15 + 0.85 * in_light.select(facing, 0.0);
    let squares = (points.at((.., 0)).floor() + points.at((.., 2)).floor()).floor_modulo(2.0);
    let on_sphere = sphere(&points).less(1e-6);
    let red = on_sphere.select(0.9, 0.35 + 0.4 * &squares);
    let others = on_sphere.select(0.3, 0.35 + 0.4 * squares);
    let surface = Expr::stack(&[red, others.clone(), others], -1) * brightness.new_axis(-1);
    let sky = Tensor::from_slice(&[0.6, 0.75, 0.9], &[3]);
    let sky = sky.map(Expr::from).unwrap_or_else(|_| points.zeros_like());
    let colours = travelled.less(FAR).new_axis(-1).select(surface, sky);
    (travelled, (colours * 255.0).round().as_type(DType::U8))
}

/// The direction of the ray through each pixel, row by row.
fn rays() -> Vec<[f64; 3]> {
    let pixel = |at: usize| {
        let (row, column) = ((at / WIDTH) as f64, (at % WIDTH) as f64);
        let x = 1.2 * (2.0 * column / (WIDTH - 1) as f64 - 1.0);
        let y = 0.9 - 1.5 * row / (HEIGHT - 1) as f64;
        let length = (x * x + y * y + 1.5 * 1.5).sqrt();
        [x / length, y / length, 1.5 / length]
    };
    (0..WIDTH * HEIGHT).map(pixel).collect()
}

/// The analytic distance along a ray to the sphere, or to the plane; infinite if the ray hits neither. And how close it
/// comes to the edge of the sphere, where a ray needs many steps.
fn intersection(ray: &[f64; 3]) -> (f64, bool, f64) {
    let dot = |a: &[f64; 3], b: &[f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    // |eye + t ray|^2 = 1
    let half = dot(&EYE, ray);
    let root = half * half - dot(&EYE, &EYE) + 1.0;
    if root > 0.0 {
        return (-half - root.sqrt(), true, root);
    }
    let plane = if ray[1] < 0.0 { (-1.0 - EYE[1]) / ray[1] } else { f64::INFINITY };
    (plane, false, -root)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file =
        std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("ray_marcher.ppm"), PathBuf::from);
    let rays = rays();
    let arguments = (Tensor::from_nested(&rays)?, Tensor::from_nested(EYE)?, Tensor::from_nested(LIGHT)?);
    let render = jit(render);
    render.call(arguments.clone())?; // Compiles.
    let now = Instant::now();
    let (travelled, colours) = render.call(arguments)?;
    let (travelled, colours) = (travelled.to_vec::<f64>()?, colours.to_vec::<u8>()?);
    let elapsed = now.elapsed();

    let (mut on_sphere, mut on_plane, mut error) = (0, 0, 0.0f64);
    for (ray, &travelled) in rays.iter().zip(&travelled) {
        let (expected, is_sphere, margin) = intersection(ray);
        if margin < 1e-3 || (FAR - expected).abs() < 1e-6 {
            continue;
        }
        assert_eq!(travelled < FAR, expected < FAR, "{ray:?}: {travelled} {expected}");
        if expected < FAR {
            error = error.max((travelled - expected).abs());
            *(if is_sphere { &mut on_sphere } else { &mut on_plane }) += 1;
        }
    }
    println!("{on_sphere} pixels of the sphere, {on_plane} of the plane, greatest error {error:.1e}");
    assert!(on_sphere > 10_000 && on_plane > 10_000 && error < 1e-5);

    let mut image = format!("P6\n{WIDTH} {HEIGHT}\n255\n").into_bytes();
    image.extend(colours);
    fs::write(&file, image)?;
    println!("{:.1} ms, written to {}", 1e3 * elapsed.as_secs_f64(), file.display());
    Ok(())
}
