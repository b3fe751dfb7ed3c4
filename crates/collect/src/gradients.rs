//! Gradients of parameters. Their record has its place right after the first forward record of the module, so that
//! place is reserved with room for what comes. Where no forward call of the module is recorded it comes with the first
//! gradient.

use msprobe_dump::config::Task;
use msprobe_dump::write::{RecordBody, RecordId};

use crate::collector::{Collector, Finished};
use crate::encoder::{Encoded, Saving};
use crate::fragment::{self, Fill, Fragment, Nothing};
use crate::health::Watch;
use crate::modules::ModuleId;
use crate::notices::GivenHealth;
use crate::overflow::Overflowing;

/// The gradients of a module's parameters in this step.
#[derive(Debug)]
pub(crate) struct GradientRecord {
    id: Option<RecordId>,
    /// Parameters that get one, and their encoded gradients.
    members: Vec<(String, Option<Encoded>)>,
    capacity_bytes: usize,
}

impl Collector {
    /// Whether gradients of parameters are recorded, of modules that the filters want.
    pub fn wants_parameter_gradients(&self) -> bool {
        self.wants_data() && self.config().data_mode.parameters_grad() && self.has_step()
    }

    /// A module was called. `members` are the parameters that get a gradient, with room for each in bytes. Reserves
    /// their place, once per step: right after the module's first forward record, if it `has_record`.
    pub fn reserve_gradients(&self, module: ModuleId, members: Vec<(String, usize)>, has_record: bool) {
        let state = &mut *self.state();
        let Some(step) = &state.step else { return };
        let record = state.gradients.entry(module).or_insert_with(|| GradientRecord {
            id: None,
            capacity_bytes: members.iter().map(|(_, bytes)| bytes).sum(),
            members: members.into_iter().map(|(name, _)| (name, None)).collect(),
        });
        if has_record && record.id.is_none() && self.config().task != Task::OverflowCheck {
            let name = state.modules.gradients_name(module);
            let id = step.sink.open_record(&name);
            record.id = Some(step.sink.set(id, &name, record.body().render(&Nothing), record.capacity_bytes));
        }
    }

    /// A gradient of a parameter of this module is at hand. The record's name if it is to be encoded.
    pub fn gradient_begin(&self, module: ModuleId) -> Option<(String, Saving)> {
        let state = &mut *self.state();
        if self.is_enough(state) || !self.wants_data() {
            return None;
        }
        let step = state.step.as_ref()?;
        let stem = state.modules.stem(module);
        let name = state.modules.gradients_name(module);
        if !state.filter.parameters_grad(stem) && !state.with_backward.contains(&module) {
            if let Some(id) = state.gradients.remove(&module).and_then(|record| record.id) {
                step.sink.remove(id);
            }
            return None;
        }
        let saving = self.saving(state, &name);
        Some((name, saving))
    }

    /// The encoded gradient.
    pub fn gradient(&self, module: ModuleId, name: &str, parameter: &str, gradient: Encoded) -> Finished {
        let state = &mut *self.state();
        let Some(step) = &state.step else { return Finished::Done };
        if self.config().task == Task::OverflowCheck {
            if !gradient.overflows() {
                return Finished::Done;
            }
            let record = state.gradients.entry(module).or_insert_with(|| GradientRecord {
                id: None,
                members: Vec::new(),
                capacity_bytes: 0,
            });
            record.put_overflow(parameter, gradient);
            record.id.get_or_insert_with(|| step.sink.open_record(name));
            return state.begin_overflowing(name, Overflowing::Gradients(module), GivenHealth::Unknown);
        }
        // None of a module that was not called in this step (backward after the next start).
        let record = state.gradients.entry(module).or_insert_with(|| GradientRecord {
            id: None,
            members: Vec::new(),
            capacity_bytes: 0,
        });
        let id = record.id.unwrap_or_else(|| step.sink.open_record(name));
        let is_bad = self.watch.is_some_and(|watch| watch.values([&gradient]).is_raised);
        record.put(parameter, gradient);
        let body = record.body().render(&Nothing);
        record.id = Some(step.sink.set(id, name, body, record.capacity_bytes));
        if is_bad { state.raise(self, name) } else { Finished::Done }
    }
}

impl GradientRecord {
    /// Puts figures that came from an accelerator into the record. The text, if there were any, and whether one of
    /// them is a reason to worry.
    pub(crate) fn settle(&mut self, fill: &impl Fill, watch: Option<Watch>) -> Option<(RecordBody, bool)> {
        let (mut changed, mut is_bad) = (false, false);
        for gradient in self.members.iter_mut().filter_map(|(_, slot)| slot.as_mut()) {
            if gradient.fragment.is_deferred() {
                changed = true;
                let tickets = watch.map(|watch| (watch, watch.values([&*gradient]).tickets));
                is_bad |= tickets.is_some_and(|(watch, tickets)| {
                    tickets.iter().any(|&ticket| watch.figures(&fill.statistics(ticket)))
                });
                gradient.fragment = gradient.fragment.settled(fill);
            }
        }
        changed.then(|| (self.body().render(&Nothing), is_bad))
    }

    /// The files of its gradients are being written. The text.
    pub(crate) fn saved(&mut self, fill: &impl Fill) -> RecordBody {
        for gradient in self.members.iter_mut().filter_map(|(_, slot)| slot.as_mut()) {
            gradient.fragment = gradient.fragment.settled(fill);
        }
        self.body().render(&Nothing)
    }

    pub(crate) fn place(&self) -> (Option<RecordId>, usize) {
        (self.id, self.capacity_bytes)
    }

    pub(crate) fn move_to(&mut self, id: RecordId) {
        self.id = Some(id);
    }

    fn put(&mut self, parameter: &str, gradient: Encoded) {
        match self.members.iter_mut().find(|(name, _)| name == parameter) {
            Some((_, slot)) => *slot = Some(gradient),
            None => self.members.push((parameter.to_owned(), Some(gradient))),
        }
    }

    /// Only overflowing gradients are listed.
    fn put_overflow(&mut self, parameter: &str, gradient: Encoded) {
        self.members.retain(|(_, slot)| slot.is_some());
        self.put(parameter, gradient);
    }

    fn body(&self) -> Fragment {
        fragment::gradients(
            self.members.iter().map(|(name, slot)| (name.as_str(), slot.as_ref().map(|slot| &slot.fragment))),
        )
    }
}
