//! A collection in progress: what of a run is recorded, how calls are counted and named, and how records get to
//! disk. Knows nothing of Python: it is given values, not objects.
//!
//! ```text
//! caller's objects --Encoder--> Encoded --Collector--> records in order --StepWriter--> dump.json, …
//!                  \--TensorView----------------------------------------TensorPool--> tensor files
//! ```

mod api_events;
mod backward;
mod collector;
mod encoder;
mod flight;
mod fragment;
mod gradients;
mod health;
mod measure;
mod module_events;
mod modules;
mod notices;
mod overflow;
mod stacks;
mod unmeasured;
mod variables;

pub use api_events::{ApiCall, ApiId};
pub use backward::{BackwardBegin, Since};
pub use collector::{Collector, Finished, StepPlace};
pub use encoder::{
    ElementFigures, Encoded, Encoder, Form, LeafPlace, MAX_DEPTH, Placement, PlacementKind, Saving,
    TensorValue, TooDeep,
};
pub use flight::Occasion;
pub use measure::{Measured, NumberStyle, Wanted, measure};
pub use module_events::ModuleCall;
pub use modules::{ModuleId, Pass};
pub use msprobe_dump::framework::Framework;
pub use notices::{GivenHealth, Notice};
pub use stacks::{FrameKey, StackId, StackRef, Stacks};
pub use variables::Variable;
