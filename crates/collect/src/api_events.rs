//! Events of wrapped functions: a call begins, ends, and is seen again in the backward pass.

use msprobe_dump::filter::Decision;
use msprobe_dump::names::{ApiName, Direction};
use msprobe_dump::write::RecordId;

use crate::backward::Since;
use crate::collector::{Collector, Finished};
use crate::encoder::{Encoded, Saving};
use crate::fragment::{Body, Fragment, Nothing};
use crate::health::{Alarm, Findings, Rule};
use crate::notices::{GivenHealth, Notice};
use crate::stacks::StackRef;

/// An API, by the order in which APIs were made known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiId(pub usize);

/// A forward call of an API that has begun.
#[derive(Debug)]
pub struct ApiCall {
    /// The API.
    pub api: ApiId,
    /// The number of the call.
    pub index: u64,
    /// The record's name.
    pub name: String,
    /// Whether scope and list want it: then its stack is wanted too.
    pub selected: bool,
    /// Whether its inputs are to be encoded.
    pub wants_input: bool,
    /// What becomes of its tensors.
    pub saving: Saving,
    /// Unless it is not told.
    is_recompute: Option<bool>,
    has_raised: bool,
    record: Option<RecordId>,
    input: Option<(Fragment, Fragment)>,
    given: Findings,
    rule: Rule,
}

#[derive(Debug)]
pub(crate) struct Api {
    /// Where the function lives, and its name.
    stem: String,
    pub(crate) calls: u64,
    rule: Rule,
}

impl Collector {
    /// Makes an API known. The same name is the same API.
    pub fn add_api(&self, stem: &str) -> ApiId {
        let mut state = self.state();
        if let Some(&id) = state.api_ids.get(stem) {
            return id;
        }
        let id = ApiId(state.apis.len());
        state.apis.push(Api { stem: stem.to_owned(), calls: 0, rule: Rule::of(stem) });
        state.api_ids.insert(stem.to_owned(), id);
        id
    }

    /// A call begins and is counted. `None` if nothing is being recorded.
    pub fn api_begin(&self, api: ApiId) -> Option<ApiCall> {
        let mut state = self.state();
        if state.step.is_none() || self.is_enough(&state) {
            return None;
        }
        let entry = state.apis.get_mut(api.0)?;
        let (index, rule) = (entry.calls, entry.rule);
        entry.calls += 1;
        let name = ApiName::new(&entry.stem, index, Direction::Forward).to_string();
        let decision = state.filter.api_begin(&name);
        let wants_input = decision.input && self.wants_data();
        let saving = self.saving(&state, &name);
        // The place in the file is that of the input; overflows are written when they are known.
        let record = match &state.step {
            Some(step) if wants_input && saving != Saving::IfOverflow => Some(step.sink.open_record(&name)),
            _ => None,
        };
        Some(ApiCall {
            api,
            index,
            name,
            selected: decision.selected,
            wants_input,
            saving,
            is_recompute: self.framework().tells_autograd.then_some(false),
            has_raised: false,
            record,
            input: None,
            given: Findings::default(),
            rule,
        })
    }

    /// A call that is counted and not recorded.
    pub fn api_skip(&self, api: ApiId) {
        if let Some(entry) = self.state().apis.get_mut(api.0) {
            entry.calls += 1;
        }
    }

    /// Where the call comes from.
    pub fn api_stack(&self, call: &mut ApiCall, stack: StackRef) {
        call.is_recompute = call.is_recompute.map(|_| stack.is_recompute);
        self.write_stack(stack.id, &call.name);
    }

    /// The inputs of the call, encoded before it runs.
    pub fn api_input(&self, call: &mut ApiCall, args: Encoded, kwargs: Encoded) {
        call.given = args.findings.and(kwargs.findings);
        call.input = Some((args.fragment, kwargs.fragment));
    }

    /// The call has ended (asynchronous ones: they are complete). Whether its output is to be encoded.
    pub fn api_end(&self, call: &ApiCall) -> bool {
        let mut state = self.state();
        state.note_api(self, &call.name);
        state.filter.api_end(&call.name).output && self.wants_data()
    }

    /// Writes what is known of a call that goes on in the background: its inputs, and its output as it is now.
    pub fn api_pause(&self, call: &mut ApiCall, output: Option<Encoded>) {
        if call.saving == Saving::IfOverflow {
            return;
        }
        let state = &mut *self.state();
        let Some(step) = &state.step else { return };
        let body = call_body(call.input.clone(), call.is_recompute, output.map(|output| output.fragment));
        if body.is_empty() || body.is_deferred() {
            return;
        }
        let id = call.record.unwrap_or_else(|| step.sink.open_record(&call.name));
        let text = body.render(&Nothing);
        // The output will be about as long as the input is.
        let room = 2 * text.text().len();
        call.record = Some(step.sink.set(id, &call.name, text, room));
    }

    /// Writes the record of a call; `output` as far as it was wanted and could be encoded.
    pub fn api_finish(&self, call: ApiCall, output: Option<Encoded>) -> Finished {
        let overflows = call.given.overflows() || output.as_ref().is_some_and(Encoded::overflows);
        let alarm = self.watch.map_or_else(Alarm::default, |watch| {
            watch.call(call.rule, call.input.as_ref(), call.given, output.as_ref())
        });
        let output = output.map(|output| output.fragment);
        if call.saving == Saving::IfOverflow {
            if !overflows {
                return Finished::Done;
            }
            let mut body = Body::default();
            let has_input = call.input.is_some();
            if let Some((args, kwargs)) = call.input {
                body = body.with("input_args", args).with("input_kwargs", kwargs);
            }
            if let Some(output) = output {
                body = body.with("output", output);
            }
            let body = body.with_recompute(call.is_recompute);
            let given = if has_input { call.given.given() } else { GivenHealth::Unknown };
            let state = &mut *self.state();
            // Nobody is left who could save the tensors of a call that raised.
            return if call.has_raised {
                state.tell_overflow(&call.name, &body, given)
            } else {
                state.begin_overflow(&call.name, body, given)
            };
        }
        let state = &mut *self.state();
        let body = call_body(call.input, call.is_recompute, output);
        if !body.is_empty() {
            return state.write_record(self, call.record, &call.name, body, alarm);
        }
        if let (Some(step), Some(id)) = (&state.step, call.record) {
            step.sink.abandon(id);
        }
        Finished::Done
    }

    /// Writes the record of a call that raised. Its arguments are not at hand any more, so no file of them is named.
    pub fn api_fail(&self, mut call: ApiCall) -> Finished {
        call.has_raised = true;
        self.api_finish(call, None)
    }

    /// The backward pass of a call; `since` tells which modules are over by now. What is to be encoded.
    pub fn api_backward(
        &self,
        api: ApiId,
        index: u64,
        since: Option<Since>,
    ) -> Option<(String, Decision, Saving)> {
        let mut state = self.state();
        if self.is_enough(&state) {
            return None;
        }
        if state.step.is_none() {
            state.notices.push(Notice::NoStep);
            return None;
        }
        if let Some(since) = since {
            state.end_passes(self, std::thread::current().id(), since);
        }
        let name = ApiName::new(&state.apis.get(api.0)?.stem, index, Direction::Backward).to_string();
        state.note_api(self, &name);
        let decision = state.filter.api_backward(&name);
        let saving = self.saving(&state, &name);
        (decision.any() && self.wants_data()).then_some((name, decision, saving))
    }

    /// Writes a backward record.
    pub fn backward_record(
        &self,
        name: &str,
        saving: Saving,
        input: Option<Encoded>,
        output: Option<Encoded>,
    ) -> Finished {
        let mut body = Body::default();
        let mut overflows = false;
        let given = input.as_ref().map_or(GivenHealth::Unknown, |input| input.findings.given());
        let alarm = self.watch.map_or_else(Alarm::default, |watch| watch.values(input.iter().chain(&output)));
        for (key, side) in [("input", input), ("output", output)] {
            if let Some(side) = side {
                overflows |= side.overflows();
                body = body.with(key, side.fragment);
            }
        }
        if saving == Saving::IfOverflow {
            return if overflows { self.state().begin_overflow(name, body, given) } else { Finished::Done };
        }
        self.state().write_record(self, None, name, body, alarm)
    }
}

/// The record of a call, as far as it is known.
fn call_body(
    input: Option<(Fragment, Fragment)>,
    is_recompute: Option<bool>,
    output: Option<Fragment>,
) -> Body {
    let has_input = input.is_some();
    let mut body = Body::default();
    if let Some((args, kwargs)) = input {
        body = body.with("input_args", args).with("input_kwargs", kwargs);
        body = body.with_recompute(is_recompute);
    }
    if let Some(output) = output {
        body = body.with("output", output);
        if !has_input {
            body = body.with_recompute(is_recompute);
        }
    }
    body
}
