//! Writing a dump: JSON text, files that are whole at every instant, directories, tensor files.

mod body;
mod error;
mod files;
mod flight_log;
mod flight_signals;
mod groups;
mod json;
mod layout;
mod partial;
mod queue;
mod records;
mod reserve;
mod same_content;
mod saved_file;
mod sink;
mod step_log;
mod stream;
mod tensor_jobs;
mod tensor_names;
mod tensors;
mod writer;

pub use self::body::RecordBody;
pub use self::error::WriteError;
pub use self::flight_log::{FlightLog, HeldLimits, Holding};
pub use self::flight_signals::{Marker, Seen, Signals};
pub use self::json::JsonText;
pub(crate) use self::layout::is_plain_name;
pub use self::layout::{Earlier, LayoutError, StepDir, check_path, create_dir};
pub use self::records::Header;
pub use self::saved_file::SavedFile;
pub use self::sink::StepSink;
pub use self::step_log::{HeldError, HeldPlace, StepLog, WrittenStep};
pub use self::stream::StreamFile;
pub use self::tensor_jobs::{HostTensor, Target};
pub use self::tensor_names::tensor_file_name;
pub use self::tensors::TensorPool;
pub use self::writer::{
    FLUSH_BYTES, FLUSH_INTERVAL, Files, HOLD_BYTES, HOLD_TIME, QUEUE_BYTES, RecordId, StepWriter,
};
