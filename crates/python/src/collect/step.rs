//! Steps: their files, and what there is to say when they are written.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use msprobe_collect::{Measured, Occasion, StepPlace};
use msprobe_dump::config::{Level, Task};
use msprobe_dump::names::{Rank, Step};
use msprobe_dump::write::{Files, HeldPlace, LayoutError, StepDir, StepWriter};
use msprobe_tensor::{Number, Statistics};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::Collector;
use super::adapter::{DeviceNumber, DeviceSketch};
use crate::exceptions::layout_exception;

/// JSON and tensor files of an earlier run.
type Earlier = (usize, usize);

#[pymethods]
impl Collector {
    /// Creates the directory and files of a step. Returns the directory, and how many files an earlier run left.
    /// With a flight recorder nothing is created, and there is no directory.
    fn open_step(
        &self,
        py: Python<'_>,
        dump_path: PathBuf,
        step: u64,
        rank: Option<u32>,
    ) -> PyResult<(Option<PathBuf>, Option<Earlier>)> {
        let session = self.session();
        let config = session.collector.config();
        if config.flight_recorder.is_some() {
            let place = HeldPlace { dump_path, step: Step(step), rank: Rank(rank) };
            py.detach(|| session.collector.open_flight_step(place));
            return Ok((None, None));
        }
        let is_debug = config.level == Level::Debug;
        let has_tensors = matches!(config.task, Task::Tensor | Task::OverflowCheck)
            || config.tensor_list.as_ref().is_some_and(|list| !list.is_empty());
        let created = py.detach(|| {
            let dir = StepDir::create(&dump_path, Step(step), Rank(rank))?;
            let tensor_dir = if has_tensors { Some(dir.create_tensor_dir()?) } else { None };
            Ok::<_, LayoutError>((dir, tensor_dir))
        });
        let (dir, tensor_dir) = created.map_err(|error| layout_exception(py, &error))?;
        let header = session.collector.header(tensor_dir.as_deref());
        let files = if is_debug { Files::Debug } else { Files::Dump };
        let pool = tensor_dir.as_ref().map(|_| session.collector.pool());
        let writer = py.detach(|| {
            if session.has_written.swap(true, Ordering::Relaxed) {
                return StepWriter::create_soon(dir.path(), header, files, pool);
            }
            // Whoever cannot write there learns it from the first step at once.
            match pool {
                Some(pool) => StepWriter::create_with_tensors(dir.path(), &header, files, pool),
                None => StepWriter::create(dir.path(), &header, files),
            }
        });
        let writer = writer.map_err(|error| PyOSError::new_err(error.to_string()))?;
        py.detach(|| session.collector.open_step(StepPlace { sink: writer.into(), tensor_dir }));
        let earlier = dir.earlier.map(|earlier| (earlier.json_files, earlier.tensor_files));
        Ok((Some(dir.path().to_owned()), earlier))
    }

    /// Whether a step's files are open.
    fn has_step(&self) -> bool {
        self.session().collector.has_step()
    }

    /// Makes everything recorded so far visible on disk. What went wrong, if anything did.
    fn flush(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let session = self.session();
        let wants_sketch = session.collector.wanted().sketch;
        let sketches = if wants_sketch { session.adapter.fetch_sketches(py)? } else { Vec::new() };
        let statistics = session.adapter.fetch(py)?.into_iter().map(of_device);
        let sketches = sketches.iter().map(DeviceSketch::read).chain(std::iter::repeat(None));
        let fetched: Vec<Measured> = statistics
            .zip(sketches)
            .map(|(stats, sketch)| Measured {
                stats,
                crc32: None,
                sketch: sketch.map(|sketch| sketch.text()),
            })
            .collect();
        let error = py.detach(|| session.collector.flush(&fetched)).err();
        self.tell_of_flight(py);
        Ok(error)
    }

    /// What of this step could not be measured, in one line; `None` if nothing, or nothing new.
    fn unmeasured(&self) -> Option<String> {
        self.session().collector.take_unmeasured()
    }

    /// What to say of filters that nothing in the step so far is named by; each part once in a run.
    fn take_unmatched(&self, py: Python<'_>) -> Vec<String> {
        let session = self.session();
        let unmatched = py.detach(|| session.collector.take_unmatched());
        unmatched.iter().map(ToString::to_string).collect()
    }

    /// Ends the step: files are finished, counters start again.
    fn end_step(&self, py: Python<'_>) {
        let session = self.session();
        session.shared.clear();
        py.detach(|| session.collector.end_step());
        self.tell_of_flight(py);
    }

    /// Whether what the step that runs records gets to disk, now and not only if something goes wrong.
    fn is_on_disk(&self) -> bool {
        self.session().collector.is_on_disk()
    }

    /// Looks whether another rank's flight recorder has written, or somebody asks for what is held.
    fn check_flight(&self, py: Python<'_>, step: u64) {
        py.detach(|| self.session().collector.check_flight(Step(step)));
        self.tell_of_flight(py);
    }

    /// Writes what the flight recorder holds. How many steps that were.
    fn write_flight(&self, py: Python<'_>, has_crashed: bool) -> usize {
        let occasion = if has_crashed { Occasion::Crash } else { Occasion::Demand };
        let steps = py.detach(|| self.session().collector.write_flight(occasion));
        self.tell_of_flight(py);
        steps
    }

    /// Steps, records and bytes that the flight recorder holds.
    fn flight_holding(&self) -> (usize, usize, usize) {
        let held = self.session().collector.flight_holding();
        (held.steps, held.records, held.bytes)
    }

    /// Why writing failed, if it did.
    fn failure(&self) -> Option<String> {
        self.session().collector.failure()
    }

    /// Whether everything that was asked for has been collected.
    fn is_over(&self) -> bool {
        self.session().collector.is_over()
    }

    /// Something a hook could not do.
    fn report(&self, py: Python<'_>, phase: &str, name: &str, error: Bound<'_, PyAny>) {
        self.session().adapter.failed(py, phase, name, &PyErr::from_value(error));
    }

    /// `optimizer` or `clip_grad` begins (or ends: `None`).
    fn set_phase(&self, phase: Option<&str>) {
        let known = match phase {
            Some("optimizer") => Some("optimizer"),
            Some("clip_grad") => Some("clip_grad"),
            _ => None,
        };
        self.session().collector.set_phase(known);
    }
}

impl Collector {
    fn tell_of_flight(&self, py: Python<'_>) {
        let session = self.session();
        if session.collector.config().flight_recorder.is_some() {
            session.tell(py);
        }
    }
}

fn of_device(figures: [DeviceNumber; 4]) -> Statistics {
    let [max, min, mean, norm] = figures.map(|figure| {
        Some(match figure {
            DeviceNumber::Int(value) => Number::Int(value.into()),
            DeviceNumber::Float(value) => Number::Float(value),
        })
    });
    Statistics { max, min, mean, norm, ..Statistics::default() }
}
