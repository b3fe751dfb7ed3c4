//! The steps of a run, and the thread that writes them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use msprobe_tensor::files::{npy, write_bits};
use msprobe_tensor::{DType, GradientFigures, GradientWork, TensorView, crc32, measure_gradient};

use super::sketches::{self, GradientSketch, SKETCHES_FILE};
use super::summary::{self, Row};
use crate::config::{Bound, GradLevel, GradProbe};
use crate::names::{Rank, Step};
use crate::write::{LayoutError, Target, TensorPool, WriteError, check_path, create_dir, is_plain_name};

/// Writes the gradients of one process.
#[derive(Debug)]
pub struct GradientWriter {
    pool: TensorPool,
    settings: GradProbe,
    bounds: Vec<f32>,
    dump_path: PathBuf,
}

/// A step being recorded.
#[derive(Debug)]
pub struct GradientStep {
    csv: PathBuf,
    replaces: bool,
    directions: PathBuf,
    has_directory: bool,
    /// By the position of the parameter in the model.
    rows: BTreeMap<usize, Row>,
    /// Likewise, with the names, if sketches stand for directions.
    sketches: BTreeMap<usize, (String, GradientSketch)>,
}

/// What there is of a gradient that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Everything.
    All,
    /// A row without figures: there is no order among complex numbers.
    NoFigures,
    /// A row, but no directions: no file can have that name.
    NoDirections(LayoutError),
    /// Nothing: nothing is written any more.
    Nothing,
}

impl GradientWriter {
    /// A writer that keeps at most so many bytes of directions.
    pub fn new(settings: GradProbe, dump_path: PathBuf, budget_bytes: usize) -> io::Result<GradientWriter> {
        let bounds = match settings.level {
            GradLevel::L2 => settings.bounds.iter().map(Bound::value).collect(),
            GradLevel::L0 | GradLevel::L1 => Vec::new(),
        };
        // One thread: a summary that is written again replaces the first one.
        let pool = TensorPool::new(1, budget_bytes)?;
        Ok(GradientWriter { pool, settings, bounds, dump_path })
    }

    /// Begins a step of a rank. `None` when nothing is written any more.
    pub fn begin(&self, rank: Rank, step: Step) -> Option<GradientStep> {
        let directory = self.dump_path.join(rank.to_string());
        if !self.pool.is_open() || !self.make(&directory) {
            return None;
        }
        let csv = directory.join(format!("grad_summary_{}.csv", step.0));
        let replaces = csv.exists();
        let directions = directory.join(step.to_string());
        Some(GradientStep {
            csv,
            replaces,
            directions,
            has_directory: false,
            rows: BTreeMap::new(),
            sketches: BTreeMap::new(),
        })
    }

    /// Measures the gradient of the parameter at this position of the model, and has its directions written; a sketch that
    /// stands for them is written with the summary. It may be changed afterwards. Large ones use the threads of the current rayon pool.
    pub fn add(
        &self,
        step: &mut GradientStep,
        position: usize,
        name: &str,
        gradient: &TensorView<'_>,
    ) -> Kept {
        let (figures, kept) = match gradient.dtype() {
            _ if self.keeps_sketches() => self.measure_with_sketch(step, gradient),
            DType::C64 | DType::C128 => (Some(self.without_figures(gradient)), Kept::NoFigures),
            _ if self.settings.level == GradLevel::L0 => {
                let work = GradientWork { crc32: true, ..GradientWork::default() };
                (measure_gradient(gradient, work), Kept::All)
            }
            _ => match self.direction_target(step, name) {
                Ok(Some(target)) => (self.save_directions(target, gradient), Kept::All),
                Ok(None) => (None, Kept::Nothing),
                Err(error) => {
                    let work = GradientWork { bounds: &self.bounds, ..GradientWork::default() };
                    (measure_gradient(gradient, work), Kept::NoDirections(error))
                }
            },
        };
        let Some(figures) = figures else { return Kept::Nothing };
        if let Some(sketch) = GradientSketch::new(&figures, gradient.shape()) {
            step.sketches.insert(position, (name.to_owned(), sketch));
        }
        step.rows.insert(position, summary::row(self.settings.level, name, &figures, gradient.shape()));
        kept
    }

    /// Has the summary written. A step that gets more rows afterwards is to be finished again.
    pub fn finish(&self, step: &GradientStep) {
        // Before the summary, as directions are: what it names is there.
        if !step.sketches.is_empty() {
            let text = sketches::document(step.sketches.values());
            let target = Target { path: step.directions.join(SKETCHES_FILE), modified: None };
            self.pool.save_text(target, move || text);
        }
        let text = summary::document(self.settings.level, &self.settings.bounds, step.rows.values());
        let target = Target { path: step.csv.clone(), modified: None };
        self.pool.save_text(target, move || text);
    }

    /// Waits until everything is on disk.
    pub fn flush(&self) {
        self.pool.wait();
    }

    /// The first failure, once; after it nothing is written any more.
    pub fn take_failure(&self) -> Option<WriteError> {
        self.pool.take_failure()
    }

    fn without_figures(&self, gradient: &TensorView<'_>) -> GradientFigures {
        let nan = f32::NAN;
        GradientFigures {
            max: nan,
            min: nan,
            norm: nan,
            // Fractions of nothing.
            count: 0,
            zeros: 0,
            at_most: vec![0; self.bounds.len()],
            not_finite: 0,
            crc32: (self.settings.level == GradLevel::L0).then(|| crc32(gradient)),
            sketch: None,
        }
    }

    /// Whether sketches stand for directions. The lowest level has neither.
    fn keeps_sketches(&self) -> bool {
        self.settings.sketch && self.settings.level != GradLevel::L0
    }

    fn measure_with_sketch(
        &self,
        step: &mut GradientStep,
        gradient: &TensorView<'_>,
    ) -> (Option<GradientFigures>, Kept) {
        if !self.has_directory(step) {
            return (None, Kept::Nothing);
        }
        if matches!(gradient.dtype(), DType::C64 | DType::C128) {
            return (Some(self.without_figures(gradient)), Kept::NoFigures);
        }
        let work = GradientWork { bounds: &self.bounds, sketch: true, ..GradientWork::default() };
        (measure_gradient(gradient, work), Kept::All)
    }

    /// Whether the directory of a step is there, or could be made.
    fn has_directory(&self, step: &mut GradientStep) -> bool {
        if !step.has_directory {
            step.has_directory = self.make(&step.directions);
        }
        step.has_directory
    }

    /// The file of a parameter's directions, in a directory that is there. `None` if it cannot be made.
    fn direction_target(&self, step: &mut GradientStep, name: &str) -> Result<Option<Target>, LayoutError> {
        let extension = if self.settings.compact_direction { "bits" } else { "npy" };
        let file = format!("{name}.{extension}");
        let path = step.directions.join(&file);
        if !is_plain_name(&file) {
            check_path(&path)?;
            return Err(LayoutError::SpecialCharacters(path));
        }
        Ok(self.has_directory(step).then_some(Target { path, modified: None }))
    }

    fn save_directions(&self, target: Target, gradient: &TensorView<'_>) -> Option<GradientFigures> {
        // Arrays keep the order of their elements in memory where numpy's format can say so.
        let is_transposed = !self.settings.compact_direction && is_column_major(gradient);
        let ordered = if is_transposed { gradient.transposed() } else { gradient.clone() };
        let mut figures = None;
        let fill = |directions: &mut [u8]| {
            let work = GradientWork {
                bounds: &self.bounds,
                directions: Some(directions),
                ..GradientWork::default()
            };
            figures = measure_gradient(&ordered, work);
        };
        let is_compact = self.settings.compact_direction;
        let write = move |file: &mut File, directions: &TensorView<'_>| match (is_compact, is_transposed) {
            (true, _) => write_bits(file, directions),
            (false, true) => npy::write_transposed(file, directions),
            (false, false) => npy::write(file, directions),
        };
        self.pool.save_filled(target, DType::Bool, ordered.shape(), fill, write);
        figures
    }

    /// Makes a directory. Where that is impossible, nothing is written any more.
    fn make(&self, directory: &Path) -> bool {
        match create_dir(directory) {
            Ok(()) => true,
            Err(error) => {
                self.pool.fail(WriteError::unmade(directory, &error));
                false
            }
        }
    }
}

impl GradientStep {
    /// Where the summary is written.
    pub fn csv_path(&self) -> &Path {
        &self.csv
    }

    /// Whether an earlier run left a summary there.
    pub fn replaces(&self) -> bool {
        self.replaces
    }
}

/// Whether numpy would save what is computed from a tensor column by column: its dimensions come in memory in reverse.
fn is_column_major(view: &TensorView<'_>) -> bool {
    let sizes = view.shape().iter().zip(view.strides());
    let strides: Vec<isize> = sizes.filter(|(size, _)| **size > 1).map(|(_, stride)| *stride).collect();
    strides.len() > 1 && strides[0] > 0 && strides.is_sorted_by(|a, b| a < b)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use msprobe_tensor::files::TensorFile;
    use msprobe_tensor::{Endian, sketch};
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Config, Overrides};
    use crate::framework::Framework;
    use crate::grad_probe::read_sketches;

    const BUDGET_BYTES: usize = 1 << 20;

    fn place() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("gradients").tempdir().unwrap()
    }

    fn writer(at: &Path, section: &Value) -> GradientWriter {
        let file = json!({ "task": "grad_probe", "dump_path": "out", "grad_probe": section });
        let resolved =
            Config::from_json(&file.to_string(), &Overrides::default(), &Framework::known()).unwrap();
        GradientWriter::new(resolved.config.grad_probe.unwrap(), at.to_owned(), BUDGET_BYTES).unwrap()
    }

    fn bytes_of(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn vector(bytes: &[u8]) -> TensorView<'_> {
        TensorView::contiguous(DType::F32, vec![bytes.len() / 4], bytes).unwrap()
    }

    #[test]
    fn rows_stand_in_the_order_of_the_model_whenever_they_come() {
        let dir = place();
        let writer = writer(dir.path(), &json!({ "grad_level": "L0" }));
        let bytes = bytes_of(&[1.0, -2.0]);
        let mut step = writer.begin(Rank(Some(3)), Step(7)).unwrap();
        assert!(!step.replaces());
        assert_eq!(writer.add(&mut step, 1, "b", &vector(&bytes)), Kept::All);
        writer.finish(&step);
        assert_eq!(writer.add(&mut step, 0, "a", &vector(&bytes)), Kept::All);
        writer.finish(&step);
        writer.flush();
        assert_eq!(writer.take_failure(), None);
        let text = fs::read_to_string(dir.path().join("rank3/grad_summary_7.csv")).unwrap();
        let crc = format!("{:08x}", crc32(&vector(&bytes)));
        let row = |name: &str| format!("{name},{crc},1.0,-2.0,2.2360680103302,[2]\r\n");
        let rows = format!("\u{feff}param_name,MD5,max,min,norm,shape\r\n{}{}", row("a"), row("b"));
        assert_eq!(text, rows);
        assert_eq!(fs::read_dir(dir.path().join("rank3")).unwrap().count(), 1, "no directory of directions");
        assert!(writer.begin(Rank(Some(3)), Step(7)).unwrap().replaces());
    }

    #[test]
    fn directions_are_saved_in_the_order_of_memory() {
        let dir = place();
        let writer = writer(dir.path(), &json!({ "grad_level": "L2", "bounds": [0] }));
        let bytes = bytes_of(&[1.0, -2.0, 0.0, 4.0, f32::NAN, -0.0]);
        let transposed =
            TensorView::new(DType::F32, vec![2, 3], vec![1, 2], &bytes, 0, Endian::Little).unwrap();
        let mut step = writer.begin(Rank(Some(0)), Step(0)).unwrap();
        assert_eq!(writer.add(&mut step, 0, "t", &transposed), Kept::All);
        let empty = TensorView::contiguous(DType::F32, vec![0, 2], &[]).unwrap();
        assert_eq!(writer.add(&mut step, 1, "e", &empty), Kept::All);
        writer.finish(&step);
        writer.flush();
        let path = dir.path().join("rank0/step0/t.npy");
        let raw = fs::read(&path).unwrap();
        assert!(String::from_utf8_lossy(&raw).contains("'fortran_order': True, 'shape': (2, 3)"));
        assert!(raw.ends_with(&[1, 0, 0, 1, 0, 0]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        let file = TensorFile::open(&path).unwrap();
        let mut row_major = vec![9; 6];
        file.view(0).unwrap().copy_to(&mut row_major);
        assert_eq!(row_major, [1, 0, 0, 0, 1, 0]);
        let text = fs::read_to_string(dir.path().join("rank0/grad_summary_0.csv")).unwrap();
        assert!(text.contains("\r\nt,0.5,0.5,0.3333333333333333,nan,nan,nan,\"[2, 3]\"\r\n"), "{text}");
        assert!(text.ends_with("\r\ne,0,0,0,nan,nan,0.0,\"[0, 2]\"\r\n"), "{text}");
    }

    #[test]
    fn sketches_stand_for_directions() {
        let dir = place();
        let section = json!({ "grad_level": "L2", "bounds": [0], "sketch": true });
        let writer = writer(dir.path(), &section);
        let values = [1.0, -2.0, 0.0, 4.0, f32::NAN, -0.0];
        let bytes = bytes_of(&values);
        let row_major = TensorView::contiguous(DType::F32, vec![2, 3], &bytes).unwrap();
        let scalar_bytes = bytes_of(&[-0.25]);
        let scalar = TensorView::contiguous(DType::F32, vec![], &scalar_bytes).unwrap();
        let empty = TensorView::contiguous(DType::F32, vec![0, 2], &[]).unwrap();
        let pair = bytes_of(&[1.0, 2.0]);
        let complex = TensorView::contiguous(DType::C64, vec![1], &pair).unwrap();
        let mut step = writer.begin(Rank(Some(0)), Step(2)).unwrap();
        // A name that no file can have is none of a sketch's concern.
        assert_eq!(writer.add(&mut step, 3, "a/b c", &row_major), Kept::All);
        writer.finish(&step);
        for (position, name, view) in [(0, "s", &scalar), (1, "e", &empty)] {
            assert_eq!(writer.add(&mut step, position, name, view), Kept::All);
        }
        assert_eq!(writer.add(&mut step, 2, "c", &complex), Kept::NoFigures);
        writer.finish(&step);
        writer.flush();
        assert_eq!(writer.take_failure(), None);
        let path = dir.path().join("rank0/step2").join(SKETCHES_FILE);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let found = read_sketches(&path).unwrap();
        assert_eq!(found.len(), 3);
        let of = |name: &str| found[name].clone().unwrap();
        let finite = bytes_of(&values.map(|value| if value.is_finite() { value } else { 0.0 }));
        let finite = sketch(&TensorView::contiguous(DType::F32, vec![2, 3], &finite).unwrap());
        assert_eq!((of("a/b c").shape, of("a/b c").not_finite, of("a/b c").value), (vec![2, 3], 1, None));
        assert_eq!(of("a/b c").sketch.norm(), finite.norm());
        assert_eq!((of("s").value, of("s").numel(), of("e").numel()), (Some(-0.25), 1, 0));
        let text = fs::read_to_string(dir.path().join("rank0/grad_summary_2.csv")).unwrap();
        assert!(text.contains("\r\na/b c,0.5,0.5,0.3333333333333333,nan,nan,nan,\"[2, 3]\"\r\n"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    }

    #[test]
    fn damaged_sketches_cost_themselves() {
        let dir = place();
        let path = dir.path().join(SKETCHES_FILE);
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            read_sketches(&path)
        };
        let good = sketch(&vector(&bytes_of(&[1.0, 2.0])));
        let found = read(&format!(
            r#"{{"version": 1, "more": 5, "sketches": {{"good": {{"shape": [2], "sketch": "{good}"}},
               "shape": {{"shape": [-1], "sketch": "{good}"}}, "none": {{"shape": []}}, "no": 7,
               "count": {{"shape": [2], "sketch": "{good}", "not_finite": "x"}},
               "large": {{"shape": [4294967296, 4294967296, 4294967296], "sketch": "{good}"}},
               "old": {{"shape": [2], "sketch": "0{good}"}}, "cut": {{"shape": [2], "sketch": "1m"}}}}}}"#
        ))
        .unwrap();
        assert_eq!(found["good"].as_ref().unwrap().sketch, good);
        assert_eq!(found["large"].as_ref().unwrap().numel(), u64::MAX);
        for name in ["shape", "none", "no", "count", "old", "cut"] {
            assert!(found[name].is_err(), "{name}");
        }
        for text in ["", "{", "[]", "{}", r#"{"version": 2, "sketches": {}}"#, r#"{"version": 1}"#, "\u{0}"] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = format!(r#"{{"version": 1, "sketches": {}"#, "[".repeat(100_000));
        assert!(read(&deep).is_err());
        let newer = read(r#"{"version": 2, "sketches": {}}"#).unwrap_err().to_string();
        assert!(newer.contains("is of version 2, not 1"), "{newer}");
        fs::remove_file(&path).unwrap();
        assert!(read_sketches(&path).is_err());
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(read_sketches(&path).is_err(), "links lead out of the dump");
    }

    #[test]
    fn what_cannot_be_had_is_said_and_the_rest_is_kept() {
        let dir = place();
        let writer = writer(dir.path(), &json!({}));
        let mut step = writer.begin(Rank(Some(0)), Step(0)).unwrap();
        let pair = bytes_of(&[1.0, 2.0]);
        let complex = TensorView::contiguous(DType::C64, vec![1], &pair).unwrap();
        assert_eq!(writer.add(&mut step, 0, "c", &complex), Kept::NoFigures);
        for (position, name) in ["with blank", "a/b", "../x", &"x".repeat(300)].into_iter().enumerate() {
            let kept = writer.add(&mut step, 1 + position, name, &vector(&pair));
            assert!(matches!(kept, Kept::NoDirections(_)), "{name}");
        }
        writer.finish(&step);
        writer.flush();
        assert_eq!(writer.take_failure(), None);
        let text = fs::read_to_string(dir.path().join("rank0/grad_summary_0.csv")).unwrap();
        assert!(
            text.contains("\r\nc,nan,nan,nan,[1]\r\nwith blank,2.0,1.0,2.2360680103302,[2]\r\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 6);
        assert!(!dir.path().join("rank0/step0").exists());
    }

    #[test]
    fn a_failure_ends_it_and_is_told_once() {
        let dir = place();
        let writer = writer(dir.path(), &json!({}));
        let bytes = bytes_of(&[1.0]);
        let mut step = writer.begin(Rank(Some(0)), Step(0)).unwrap();
        fs::write(dir.path().join("rank0/step0"), "").unwrap();
        assert_eq!(writer.add(&mut step, 0, "a", &vector(&bytes)), Kept::Nothing);
        writer.finish(&step);
        writer.flush();
        let failure = writer.take_failure().unwrap().to_string();
        assert!(
            failure.contains("rank0/step0") && failure.contains("something else in its place"),
            "{failure}"
        );
        assert_eq!(writer.take_failure(), None);
        assert!(writer.begin(Rank(Some(0)), Step(1)).is_none());
        assert!(!dir.path().join("rank0/grad_summary_0.csv").exists());
    }
}
