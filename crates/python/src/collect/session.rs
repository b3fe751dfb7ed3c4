//! What every hook needs: the collector, the adapter, and what was seen so far.

use std::sync::atomic::AtomicBool;

use msprobe_collect::{Collector, Encoded, Encoder, StackRef};
use msprobe_dump::config::Task;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rayon::ThreadPool;

use super::adapter::{Adapter, Kind};
use super::crew::FrameworkThreads;
use super::frames::{CompiledCode, SeenCode, stack_of};
use super::module::Held;
use super::shared::Shared;
use super::walk::Walk;

pub(crate) struct Session {
    pub(crate) collector: Collector,
    pub(crate) adapter: Adapter,
    pub(crate) shared: Shared,
    pub(crate) crew: FrameworkThreads,
    /// Own threads: those of a process-wide pool are gone in a forked child.
    pub(crate) threads: ThreadPool,
    /// `msprobe.core.tensor.describe`, for arrays.
    pub(crate) describe: Py<PyAny>,
    /// Statistics cannot wait for the end of the step: checksums need the elements, overflow checks the answer.
    pub(crate) decides_at_once: bool,
    /// A step's files have been created before.
    pub(crate) has_written: AtomicBool,
    pub(crate) held: Held,
    pub(crate) compiled: CompiledCode,
    seen_code: SeenCode,
}

impl Session {
    pub(crate) fn new(
        collector: Collector,
        adapter: Adapter,
        threads: ThreadPool,
        describe: Py<PyAny>,
    ) -> Session {
        let crew = FrameworkThreads::new(adapter.team);
        let decides_at_once = collector.wanted().crc32 || collector.config().task == Task::OverflowCheck;
        Session {
            collector,
            adapter,
            crew,
            shared: Shared::default(),
            threads,
            describe,
            decides_at_once,
            has_written: AtomicBool::new(false),
            held: Held::default(),
            compiled: CompiledCode::default(),
            seen_code: SeenCode::default(),
        }
    }

    pub(crate) fn stack(&self, frame: &Bound<'_, PyAny>) -> PyResult<StackRef> {
        stack_of(&self.collector, &self.adapter, &self.seen_code, frame)
    }

    /// Whether a call is made by compiled code, which is recorded from outside only.
    pub(crate) fn is_compiled(&self, frame: &Bound<'_, PyAny>) -> bool {
        self.compiled.runs_in(&self.adapter, frame).unwrap_or(false)
    }

    /// Whether a call is given tensors, not inside of containers, that require gradients.
    pub(crate) fn takes_gradients(&self, args: &Bound<'_, PyTuple>) -> bool {
        let requires = |value: &Bound<'_, PyAny>| {
            let _unseen = match self.adapter.kind(value) {
                Ok(Kind::Tensor) => None,
                Ok(Kind::SpecialTensor) => Some(self.adapter.unseen(value.py())),
                _ => return false,
            };
            value
                .getattr(intern!(value.py(), "requires_grad"))
                .and_then(|requires| requires.extract())
                .unwrap_or(false)
        };
        let _unseen = self.adapter.unseen_by_modes(args.py());
        args.iter().any(|value| requires(&value)) && self.adapter.is_grad_enabled(args.py()).unwrap_or(false)
    }

    /// A function or module is called or has returned: modules whose backward pass is over by now are told.
    pub(crate) fn note_call(&self, py: Python<'_>) {
        // Asking the framework takes longer, and is needed only during backward and right after it.
        if self.collector.has_backward_passes() {
            self.collector.called(self.adapter.running_node(py));
        }
    }

    /// Has everything logged that there is to log.
    pub(crate) fn tell(&self, py: Python<'_>) {
        let notices = self.collector.take_notices();
        if !notices.is_empty() {
            let told = notices.iter().map(|notice| (notice.is_warning(), notice.text())).collect();
            self.adapter.tell(py, told);
        }
    }

    /// Encodes with what `encode` says, which hides itself from values that are not plain; a failure costs this value and is reported.
    pub(crate) fn encode(
        &self,
        py: Python<'_>,
        phase: &str,
        name: &str,
        encoder: Encoder,
        encode: impl FnOnce(Walk<'_>) -> PyResult<Encoded>,
    ) -> Option<Encoded> {
        let _unseen = self.adapter.unseen_by_modes(py);
        match encode(Walk::new(self, encoder)) {
            Ok(encoded) => {
                self.collector.note_unmeasured(&encoded);
                Some(encoded)
            }
            Err(error) => {
                self.adapter.failed(py, phase, name, &error);
                None
            }
        }
    }
}
