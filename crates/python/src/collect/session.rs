//! What every hook needs: the collector, the adapter, and what was seen so far.

use msprobe_collect::{Collector, Encoded, Encoder, StackRef};
use msprobe_dump::config::Task;
use pyo3::prelude::*;
use rayon::ThreadPool;

use super::adapter::Adapter;
use super::frames::{SeenCode, stack_of};
use super::module::Held;
use super::shared::Shared;
use super::walk::Walk;

pub(crate) struct Session {
    pub(crate) collector: Collector,
    pub(crate) adapter: Adapter,
    pub(crate) shared: Shared,
    /// Own threads: those of a process-wide pool are gone in a forked child.
    pub(crate) threads: ThreadPool,
    /// `msprobe.core.tensor.describe`, for arrays.
    pub(crate) describe: Py<PyAny>,
    /// Statistics cannot wait for the end of the step: checksums need the elements, overflow checks the answer.
    pub(crate) decides_at_once: bool,
    pub(crate) held: Held,
    seen_code: SeenCode,
}

impl Session {
    pub(crate) fn new(
        collector: Collector,
        adapter: Adapter,
        threads: ThreadPool,
        describe: Py<PyAny>,
    ) -> Session {
        let decides_at_once = collector.wants_crc32() || collector.config().task == Task::OverflowCheck;
        Session {
            collector,
            adapter,
            shared: Shared::default(),
            threads,
            describe,
            decides_at_once,
            held: Held::default(),
            seen_code: SeenCode::default(),
        }
    }

    pub(crate) fn stack(&self, frame: &Bound<'_, PyAny>) -> PyResult<StackRef> {
        stack_of(&self.collector, &self.adapter, &self.seen_code, frame)
    }

    /// Has everything logged that there is to log.
    pub(crate) fn tell(&self, py: Python<'_>) {
        let notices = self.collector.take_notices();
        if !notices.is_empty() {
            let told = notices.iter().map(|notice| (notice.is_warning(), notice.text())).collect();
            self.adapter.tell(py, told);
        }
    }

    /// Encodes with what `encode` says; a failure costs this value and is reported.
    pub(crate) fn encode(
        &self,
        py: Python<'_>,
        phase: &str,
        name: &str,
        encoder: Encoder,
        encode: impl FnOnce(Walk<'_>) -> PyResult<Encoded>,
    ) -> Option<Encoded> {
        match encode(Walk::new(self, encoder)) {
            Ok(encoded) => Some(encoded),
            Err(error) => {
                self.adapter.failed(py, phase, name, &error);
                None
            }
        }
    }
}
