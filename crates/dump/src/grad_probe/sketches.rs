//! `rank{r}/step{n}/sketches.json`: a sketch of each gradient instead of the direction of each of its elements.
//!
//! ```json
//! {"version": 1, "sketches": {"fc1.weight": {"shape": [3, 8], "sketch": "1m…", "not_finite": 2},
//!                             "scale": {"shape": [], "sketch": "1h…", "value": 0.25}}}
//! ```
//!
//! Elements that are not finite count as zero in a sketch, so their number stands beside it; of a single element a sketch
//! has only a hash, so the element does. The file is written whole, and replaced whole when a step gets more rows.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use msprobe_tensor::files::{Links, open_regular};
use msprobe_tensor::{GradientFigures, Sketch};
use serde_json::{Map, Value, json};

/// The name of the file in the directory of a step.
pub const SKETCHES_FILE: &str = "sketches.json";

const VERSION: u64 = 1;

/// What is kept of the direction of one gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientSketch {
    /// The sizes of the gradient.
    pub shape: Vec<usize>,
    /// Its sketch.
    pub sketch: Sketch,
    /// Elements that are NaN or infinite.
    pub not_finite: u64,
    /// The only element, if it is finite.
    pub value: Option<f64>,
}

/// Why a file of sketches cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SketchesError {
    /// It is not there, no ordinary file, or cannot be read.
    #[error("cannot read {path}: {reason}", path = .0.display(), reason = .1)]
    Unreadable(PathBuf, String),
    /// It is of a version that is not known here.
    #[error("{path} is of version {found}, not {VERSION}; compare with the msprobe that wrote it, or a newer one", path = .0.display(), found = .1)]
    Version(PathBuf, String),
    /// It is JSON of another form.
    #[error("{path} has no {missing}; collect the step again", path = .0.display(), missing = .1)]
    Damaged(PathBuf, &'static str),
}

impl GradientSketch {
    /// `None` if the figures have no sketch.
    pub(super) fn new(figures: &GradientFigures, shape: &[usize]) -> Option<GradientSketch> {
        let is_alone = figures.count == 1 && figures.not_finite == 0;
        Some(GradientSketch {
            shape: shape.to_vec(),
            sketch: figures.sketch?,
            not_finite: figures.not_finite,
            value: is_alone.then_some(f64::from(figures.max)).filter(|value| value.is_finite()),
        })
    }

    /// Number of elements; the largest there is for sizes that no gradient has.
    pub fn numel(&self) -> u64 {
        self.shape.iter().fold(1, |numel, &size| u64::saturating_mul(numel, size as u64))
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("shape".to_owned(), json!(self.shape));
        members.insert("sketch".to_owned(), json!(self.sketch.to_string()));
        if self.not_finite > 0 {
            members.insert("not_finite".to_owned(), json!(self.not_finite));
        }
        if let Some(value) = self.value {
            members.insert("value".to_owned(), json!(value));
        }
        Value::Object(members)
    }

    fn from_json(value: &Value) -> Result<GradientSketch, String> {
        let size = |size: &Value| size.as_u64().and_then(|size| usize::try_from(size).ok());
        let shape = value.get("shape").and_then(Value::as_array).ok_or("it has no shape")?;
        let shape: Option<Vec<usize>> = shape.iter().map(size).collect();
        let sketch = value.get("sketch").and_then(Value::as_str).ok_or("it has no sketch")?;
        Ok(GradientSketch {
            shape: shape.ok_or("its shape is damaged")?,
            sketch: sketch.parse().map_err(|error| format!("{error}"))?,
            not_finite: match value.get("not_finite") {
                None => 0,
                Some(count) => {
                    count.as_u64().ok_or("its number of elements that are not finite is damaged")?
                }
            },
            value: value.get("value").and_then(Value::as_f64),
        })
    }
}

/// The text of a file with these sketches.
pub(super) fn document<'a>(sketches: impl Iterator<Item = &'a (String, GradientSketch)>) -> String {
    let members: Map<String, Value> =
        sketches.map(|(name, sketch)| (name.clone(), sketch.to_json())).collect();
    format!("{}\n", json!({ "version": VERSION, "sketches": members }))
}

/// The sketches of a step by parameter. One that is damaged costs itself: its place says why.
pub fn read_sketches(path: &Path) -> Result<HashMap<String, Result<GradientSketch, String>>, SketchesError> {
    let unreadable = |reason: String| SketchesError::Unreadable(path.to_owned(), reason);
    let mut bytes = Vec::new();
    let mut file = open_regular(path, Links::Refuse).map_err(|error| unreadable(error.to_string()))?;
    file.read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    let whole: Value = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    match whole.get("version") {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(other) => return Err(SketchesError::Version(path.to_owned(), other.to_string())),
        None => return Err(SketchesError::Damaged(path.to_owned(), "version")),
    }
    let Some(Value::Object(members)) = whole.get("sketches") else {
        return Err(SketchesError::Damaged(path.to_owned(), "sketches"));
    };
    Ok(members.iter().map(|(name, value)| (name.clone(), GradientSketch::from_json(value))).collect())
}
