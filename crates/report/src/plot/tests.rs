//! What is drawn, and that the file can be read.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::*;

fn plot(points: &[(f64, f64)]) -> LinePlot<'_> {
    LinePlot { title: "fc2.weight_similarities", x_label: "steps", y_label: "similarities", points, ..BARE }
}

const BARE: LinePlot<'_> =
    LinePlot { title: "", x_label: "", y_label: "", points: &[], note: "", marks: &[], limits: &[] };

/// Chunks of a PNG file by name, after their checksums were found right.
fn chunks(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        let (kind, data) = (&rest[4..8], &rest[8..8 + length]);
        let checksum = u32::from_be_bytes(rest[8 + length..12 + length].try_into().unwrap());
        assert_eq!(crc32fast::hash(&rest[4..8 + length]), checksum);
        found.push((kind, data));
        rest = &rest[12 + length..];
    }
    found
}

/// Whether the line covers at least half of the pixel.
fn is_line(canvas: &Canvas, x: f32, y: f32) -> bool {
    let pixel = canvas.pixel(x as usize, y as usize);
    (31..=143).contains(&pixel[0]) && (119..=187).contains(&pixel[1]) && (180..=218).contains(&pixel[2])
}

#[test]
fn the_file_holds_the_pixels() {
    let points = [(0.0, 1.0), (1.0, 1.0), (2.0, 0.833_333_333_333_333_4), (3.0, 1.0)];
    let mut file = Vec::new();
    line_plot_png(&plot(&points), &mut file).unwrap();
    let chunks = chunks(&file);
    let names: Vec<_> = chunks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(names, [b"IHDR", b"pHYs", b"IDAT", b"IEND"]);
    // 640 x 480, eight bits, red green blue and opacity.
    assert_eq!(chunks[0].1, [0, 0, 2, 128, 0, 0, 1, 224, 8, 6, 0, 0, 0]);
    let mut data = Vec::new();
    ZlibDecoder::new(chunks[2].1).read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), HEIGHT * (1 + WIDTH * 4));
    let canvas = drawn(&plot(&points));
    let mut above = vec![0u8; WIDTH * 4];
    for (line, row) in data.chunks_exact(1 + WIDTH * 4).zip(canvas.rows()) {
        assert_eq!(line[0], 2);
        for (pixel, difference) in above.iter_mut().zip(&line[1..]) {
            *pixel = pixel.wrapping_add(*difference);
        }
        assert_eq!(above, row);
    }
    assert!(file.len() < 40_000, "{}", file.len());
}

#[test]
fn the_line_passes_its_points() {
    let points = [(0.0, 1.0), (1.0, 1.0), (2.0, 0.833_333_333_333_333_4), (3.0, 1.0)];
    let canvas = drawn(&plot(&points));
    // Places in the recorded picture of these values.
    for (x, y) in [(103.0, 74.0), (178.0, 74.0), (253.0, 74.0), (328.0, 242.0), (403.0, 410.0), (553.0, 74.0)]
    {
        assert!(is_line(&canvas, x, y), "{x},{y}");
    }
    assert!(!is_line(&canvas, 328.0, 74.0));
    for (x, y) in [(80, 200), (576, 200), (300, 58), (300, 427), (76, 427), (103, 431)] {
        assert_eq!(canvas.pixel(x, y), [0, 0, 0, 255], "{x},{y}");
    }
    assert_eq!(canvas.pixel(0, 0), [255; 4]);
}

#[test]
fn missing_values_are_gaps_and_lone_ones_dots() {
    let points =
        [(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, f64::INFINITY), (5.0, 0.0), (6.0, 0.0)];
    let canvas = drawn(&plot(&points));
    let x = View::of_counts([0.0, 6.0].into_iter());
    let frame = Frame { left: LEFT, x, y: View::of([0.0, 1.0].into_iter()) };
    assert!(is_line(&canvas, frame.x_px(0.5), frame.y_px(0.5)));
    assert!(!is_line(&canvas, frame.x_px(2.0), frame.y_px(1.0)));
    assert!(is_line(&canvas, frame.x_px(3.0), frame.y_px(1.0) - 2.0));
    assert!(is_line(&canvas, frame.x_px(5.5), frame.y_px(0.0)));
    assert!(!is_line(&canvas, frame.x_px(5.5), frame.y_px(0.0) - 2.0));
    let single = drawn(&plot(&[(7.0, 0.5)]));
    assert!(is_line(&single, 328.0, 242.0));
}

#[test]
fn nothing_leaves_the_picture() {
    let long = "权".repeat(10_000);
    let points: Vec<_> = (0..20).map(|step| (1e9 + step as f64, 1.0 - 1e-9 * step as f64)).collect();
    let wild = [(f64::MIN, f64::MAX), (f64::MAX, f64::MIN), (0.0, -0.0), (f64::NAN, 1.0)];
    for points in [&points[..], &wild, &[]] {
        let plot = LinePlot { title: &long, x_label: &long, y_label: &long, points, note: &long, ..BARE };
        let canvas = drawn(&plot);
        // No letter is cut off at an edge.
        for at in 0..WIDTH {
            assert_eq!((canvas.pixel(at, 0), canvas.pixel(at, HEIGHT - 1)), (&[255; 4][..], &[255; 4][..]));
        }
        for at in 0..HEIGHT {
            assert_eq!((canvas.pixel(0, at), canvas.pixel(WIDTH - 1, at)), (&[255; 4][..], &[255; 4][..]));
        }
    }
}

#[test]
fn limits_are_drawn_where_the_line_comes_below_them() {
    let has = |canvas: &Canvas, ink: Ink| {
        (0..WIDTH * HEIGHT).any(|at| canvas.pixel(at % WIDTH, at / WIDTH)[..3] == ink)
    };
    let points = [(0.0, 1.0), (1.0, 0.96), (2.0, 0.85)];
    let far = drawn(&LinePlot { limits: &[(0.0, 2.0, 0.5)], ..plot(&points) });
    assert!(!has(&far, LIMIT_INK) && !has(&far, MARK_INK));
    let crossed = LinePlot { limits: &[(0.0, 2.0, 0.9)], marks: &points[2..], ..plot(&points) };
    assert!(has(&drawn(&crossed), LIMIT_INK) && has(&drawn(&crossed), MARK_INK));
    // Above the whole line: it is the line that is too low.
    let begins_low = LinePlot { limits: &[(0.0, 0.0, 1.2)], ..plot(&points) };
    assert!(has(&drawn(&begins_low), LIMIT_INK));
    let odd = LinePlot { limits: &[(f64::NAN, 2.0, 0.9), (0.0, 2.0, f64::NAN)], ..plot(&points) };
    assert!(!has(&drawn(&odd), LIMIT_INK));
}
