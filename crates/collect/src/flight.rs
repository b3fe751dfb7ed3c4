//! The flight recorder: records stay in memory, and get to disk when one of them is not finite, when another rank had
//! such a record, or when somebody asks.
//!
//! What is held is written within the event that is the reason, so that a run which is killed a moment later has left
//! it behind. The step that runs goes on in its files to its end.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use msprobe_dump::config::{FlightRecorder, Keeps};
use msprobe_dump::names::Step;
use msprobe_dump::write::{
    FlightLog, HeldError, HeldLimits, HeldPlace, Holding, Marker, RecordId, Signals, StepSink,
};

use crate::collector::{Collector, Finished, State, StepPlace};
use crate::notices::Notice;
use crate::stacks::StackId;

/// Why what is held is written, if it is not because of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The script asked.
    Demand,
    /// Somebody asked by a file.
    Request,
    /// The script ends with an exception.
    Crash,
}

impl Occasion {
    fn text(self) -> &'static str {
        match self {
            Occasion::Demand => "as the script asked",
            Occasion::Request => "as flight_recorder.request asks",
            Occasion::Crash => "because the script ends with an exception",
        }
    }
}

/// What the recorder knows.
#[derive(Debug)]
pub(crate) struct Flight {
    settings: FlightRecorder,
    log: Arc<FlightLog>,
    signals: Signals,
    /// Where the step that runs belongs, or the one before.
    place: Option<HeldPlace>,
    /// How often it was written because something went wrong.
    dumps: u64,
    /// The step that belongs to the last of those, by its generation and by its number.
    dumped: Option<u64>,
    dumped_step: Option<u64>,
    /// Another rank had trouble in a step this one has not reached.
    pending: Option<Marker>,
    is_size_told: bool,
    failure: Option<String>,
    process: u32,
}

/// What was written.
#[derive(Debug, Default)]
struct Written {
    places: Vec<HeldPlace>,
    replaced_files: usize,
    /// The step that runs is among them.
    has_running: bool,
}

impl Flight {
    pub(crate) fn new(settings: FlightRecorder, dump_path: &str) -> Flight {
        let number = |count: std::num::NonZeroU64| usize::try_from(count.get()).unwrap_or(usize::MAX);
        let (steps, records) = match settings.keeps {
            Keeps::Steps(steps) => (number(steps), usize::MAX),
            Keeps::Records(records) => (usize::MAX, number(records)),
        };
        let bytes = usize::try_from(settings.max_memory_bytes).unwrap_or(usize::MAX);
        let mut signals = Signals::default();
        signals.watch(dump_path.as_ref());
        Flight {
            settings,
            log: Arc::new(FlightLog::new(HeldLimits { steps, records, bytes })),
            signals,
            place: None,
            dumps: 0,
            dumped: None,
            dumped_step: None,
            pending: None,
            is_size_told: false,
            failure: None,
            process: std::process::id(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.dumps >= self.settings.dumps.get()
    }

    /// A forked child leaves everything to its parent.
    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    /// How many steps are written at most.
    fn steps(&self) -> usize {
        match self.settings.keeps {
            Keeps::Steps(steps) => usize::try_from(steps.get()).unwrap_or(usize::MAX),
            Keeps::Records(_) => usize::MAX,
        }
    }

    fn end(&self) -> &'static str {
        if self.is_over() { " Collection ends with this step." } else { "" }
    }
}

impl Collector {
    /// A step begins whose records are held in memory. Does nothing without a flight recorder.
    pub fn open_flight_step(&self, place: HeldPlace) {
        let state = &mut *self.state();
        let Some(flight) = &mut state.flight else { return };
        flight.signals.watch(&place.dump_path);
        flight.log.begin_step(place.clone());
        flight.place = Some(place);
        state.generation += 1;
        let sink = StepSink::Memory(Arc::clone(&flight.log));
        state.step = Some(StepPlace { sink, tensor_dir: None });
    }

    /// Looks whether another rank had trouble or somebody asks, and writes what is held if so. `step` is the one
    /// that runs.
    pub fn check_flight(&self, step: Step) {
        let state = &mut *self.state();
        let Some(flight) = state.flight.as_mut().filter(|flight| !flight.is_foreign()) else { return };
        let seen = flight.signals.look();
        if let Some(marker) = seen.marker
            && flight.dumped_step.is_none_or(|known| known < marker.step)
        {
            flight.pending = Some(marker);
        }
        let is_over = flight.is_over();
        if let Some(marker) = flight.pending.take_if(|marker| marker.step <= step.0)
            && !is_over
        {
            state.write_as_others(self, &marker);
        }
        if seen.is_requested {
            state.write_on(self, Occasion::Request);
        }
    }

    /// Writes what is held. How many steps that were.
    pub fn write_flight(&self, occasion: Occasion) -> usize {
        self.state().write_on(self, occasion)
    }

    /// What the flight recorder holds; nothing without one.
    pub fn flight_holding(&self) -> Holding {
        let nothing = Holding { steps: 0, records: 0, bytes: 0 };
        self.state().flight.as_ref().map_or(nothing, |flight| flight.log.holding())
    }

    /// Whether what the step that runs records gets to disk.
    pub fn is_on_disk(&self) -> bool {
        self.state().step.as_ref().is_some_and(|step| !step.sink.is_memory())
    }
}

impl State {
    /// A record is not finite: everything held is written, and the other ranks are told.
    pub(crate) fn raise(&mut self, collector: &Collector, name: &str) -> Finished {
        let generation = self.generation;
        let Some(flight) = &mut self.flight else { return Finished::Done };
        if flight.is_foreign() || flight.is_over() || flight.dumped == Some(generation) {
            return Finished::Done;
        }
        let Some(place) = flight.place.clone() else { return Finished::Done };
        let step = place.step.0;
        flight.dumps += 1;
        flight.dumped = Some(generation);
        flight.dumped_step = Some(step);
        let last = flight.steps();
        let written = self.write_held(collector, |_, newer| newer < last);
        let Some(flight) = &mut self.flight else { return Finished::Done };
        flight.log.clear();
        let Some(written) = written else { return Finished::Tell };
        let first_step = written.places.iter().map(|place| place.step.0).min().unwrap_or(step).min(step);
        let marker = Marker { rank: place.rank.0, step, first_step, record: name.to_owned() };
        let told = flight.signals.tell(&marker);
        let mut text = format!("The flight recorder found NaN or Inf in {name} of step {step}: ");
        written.describe(&place, &mut text);
        text.push_str(flight.end());
        if let Err(error) = told {
            let _ = write!(text, " Other ranks cannot be told: {error}.");
        }
        self.notices.push(Notice::Flight { text, is_warning: true });
        Finished::Tell
    }

    /// The same, for a record of which that became known late: those right before it are written too.
    pub(crate) fn raise_at(&mut self, collector: &Collector, id: RecordId, name: &str) {
        if let (Some(flight), Some(step)) = (&self.flight, &self.step)
            && step.sink.is_memory()
            && !flight.is_over()
        {
            flight.log.make_newest(id);
        }
        self.raise(collector, name);
    }

    /// Another rank has written; this one writes the same steps.
    fn write_as_others(&mut self, collector: &Collector, marker: &Marker) {
        let generation = self.generation;
        let Some(flight) = &mut self.flight else { return };
        flight.dumps += 1;
        flight.dumped_step = Some(marker.step);
        let is_by_steps = matches!(flight.settings.keeps, Keeps::Steps(_));
        let (first, last) = (if is_by_steps { marker.first_step } else { 0 }, marker.step);
        let mut written = self.write_held(collector, |place, _| (first..=last).contains(&place.step.0));
        if written.as_ref().is_some_and(|written| written.places.is_empty()) {
            // Too late for those: better others than none.
            written = self.write_held(collector, |_, _| true);
        }
        let (Some(flight), Some(written)) = (&mut self.flight, written) else { return };
        if written.has_running {
            flight.dumped = Some(generation);
        }
        let Marker { rank, step, record, .. } = marker;
        let rank = rank.map_or_else(|| "Another process".to_owned(), |rank| format!("Rank {rank}"));
        let mut text = format!("{rank} found NaN or Inf in {record} of step {step}: ");
        written.describe_here(flight.place.as_ref(), &mut text);
        text.push_str(flight.end());
        self.notices.push(Notice::Flight { text, is_warning: true });
    }

    fn write_on(&mut self, collector: &Collector, occasion: Occasion) -> usize {
        let Some(flight) = self.flight.as_ref().filter(|flight| !flight.is_foreign()) else { return 0 };
        let last = flight.steps();
        let Some(written) = self.write_held(collector, |_, newer| newer < last) else { return 0 };
        let mut text = format!("The flight recorder writes {}: ", occasion.text());
        let place = self.flight.as_ref().and_then(|flight| flight.place.as_ref());
        written.describe_here(place, &mut text);
        self.notices.push(Notice::Flight { text, is_warning: occasion == Occasion::Crash });
        written.places.len()
    }

    /// Writes the steps that are wanted, by their place and how many are newer. `None`: it failed.
    fn write_held(
        &mut self,
        collector: &Collector,
        wanted: impl Fn(&HeldPlace, usize) -> bool,
    ) -> Option<Written> {
        let log = Arc::clone(&self.flight.as_ref()?.log);
        let (steps, has_running) = log.take(wanted);
        let header = collector.header(None);
        let mut written = Written { has_running, ..Written::default() };
        let count = steps.len();
        for (index, held) in steps.into_iter().enumerate() {
            let place = held.place().clone();
            let done = held.write(&header, |stack| collector.stacks().frames(StackId(stack)));
            let done = done.and_then(|step| {
                if has_running && index + 1 == count {
                    return Ok((step.earlier, Some((step.writer, step.skipped))));
                }
                step.writer.finish().map_err(HeldError::from)?;
                Ok((step.earlier, None))
            });
            match done {
                Ok((earlier, running)) => {
                    written.replaced_files += earlier.map_or(0, |earlier| earlier.json_files);
                    written.places.push(place);
                    if let (Some((writer, skipped)), Some(step)) = (running, &mut self.step) {
                        step.sink = StepSink::Files { writer, skipped };
                    }
                }
                Err(error) => {
                    if let Some(flight) = &mut self.flight {
                        flight.failure = Some(error.to_string());
                    }
                    return None;
                }
            }
        }
        Some(written)
    }

    pub(crate) fn flight_failure(&self) -> Option<String> {
        self.flight.as_ref().and_then(|flight| flight.failure.clone())
    }

    /// The step is over; what is too much of it is said once.
    pub(crate) fn end_flight_step(&mut self) {
        let Some(flight) = &mut self.flight else { return };
        flight.log.end_step();
        if flight.is_over() {
            // Nothing of it will ever be written.
            drop(flight.log.take(|_, _| true));
        }
        if flight.log.take_too_much() && !flight.is_size_told {
            flight.is_size_told = true;
            let megabytes = flight.settings.max_memory_bytes >> 20;
            let text = format!(
                "The flight recorder holds {megabytes} MB, which is max_memory_mb: older records are dropped."
            );
            self.notices.push(Notice::Flight { text, is_warning: true });
        }
    }
}

impl Written {
    fn describe_here(&self, place: Option<&HeldPlace>, text: &mut String) {
        match place {
            Some(place) => self.describe(place, text),
            None => text.push_str("nothing is held."),
        }
    }

    /// Adds which steps are where. `place` is that of the step that runs.
    fn describe(&self, place: &HeldPlace, text: &mut String) {
        if self.places.is_empty() {
            let _ = write!(text, "what was held is in {} already.", place.dump_path.display());
            return;
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for place in &self.places {
            if !paths.contains(&place.dump_path) {
                paths.push(place.dump_path.clone());
            }
        }
        let steps: Vec<String> =
            self.places.iter().map(|place| format!("{}/{}", place.step, place.rank)).collect();
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let _ = write!(text, "{} in {}.", steps.join(", "), paths.join(", "));
        if self.replaced_files > 0 {
            let _ = write!(text, " {} JSON files of an earlier run are replaced.", self.replaced_files);
        }
    }
}
