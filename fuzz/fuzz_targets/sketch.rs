//! Any bytes at all, cut at the first zero and taken for the texts of two sketches, and for a file of sketches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_dump::grad_probe::{SKETCHES_FILE, read_sketches};
use msprobe_fuzz::written;
use msprobe_tensor::Sketch;

fuzz_target!(|file: &[u8]| {
    let (first, second) = file.split_at(file.iter().position(|&byte| byte == 0).unwrap_or(file.len()));
    let sketches = [first, second.get(1..).unwrap_or_default()]
        .map(|text| std::str::from_utf8(text).ok()?.parse::<Sketch>().ok());
    for (sketch, text) in sketches.iter().zip([first, second]) {
        let Some(sketch) = sketch else { continue };
        let again: Sketch = sketch.to_string().parse().expect("what was written can be read");
        assert_eq!(*sketch, again, "{text:?}");
        assert!(sketch.norm().is_none_or(|norm| norm.is_finite() && norm >= 0.0));
        check(sketch, sketch);
    }
    if let [Some(first), Some(second)] = &sketches {
        check(first, second);
        check(second, first);
    }
    if file.starts_with(b"{") {
        let _ = read_sketches(&written(SKETCHES_FILE, file));
    }
});

/// What two sketches say is in its bounds, whatever they are.
fn check(target: &Sketch, golden: &Sketch) {
    let difference = target.compare(golden);
    assert!(difference.relative_error.is_none_or(|error| error >= 0.0), "{difference:?}");
    assert!(difference.interval.0 <= difference.interval.1, "{difference:?}");
    let (lowest, highest) = difference.cosine_interval;
    assert!(-1.0 <= lowest && lowest <= highest && highest <= 1.0, "{difference:?}");
    assert!(difference.cosine.is_none_or(|cosine| cosine.abs() <= 1.0), "{difference:?}");
}
