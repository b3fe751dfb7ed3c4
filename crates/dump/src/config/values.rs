//! What the keys of a configuration can be, once they are known to be right.

use std::num::NonZeroU64;

use crate::names::Direction;
use crate::words::words;

words! {
    /// What is collected.
    Task {
        /// Statistics and every tensor.
        Tensor = "tensor",
        /// Statistics.
        Statistics = "statistics",
        /// Records of calls that overflow.
        OverflowCheck = "overflow_check",
        /// Perturbed calls against the original ones.
        FreeBenchmark = "free_benchmark",
        /// The API accuracy checker; not a task of collection.
        RunUt = "run_ut",
        /// Statistics of gradients.
        GradProbe = "grad_probe",
        /// Call stacks and hierarchy, no data.
        Structure = "structure",
    }
}

words! {
    /// Where values are taken.
    Level {
        /// At modules.
        L0 = "L0",
        /// At framework functions.
        L1 = "L1",
        /// At the device kernels of one function.
        L2 = "L2",
        /// At modules and functions.
        Mix = "mix",
        /// Where the script says so.
        Debug = "debug",
    }
}

words! {
    /// What is computed of each tensor.
    SummaryMode {
        /// Max, Min, Mean, Norm.
        Statistics = "statistics",
        /// These and a checksum.
        Md5 = "md5",
    }
}

words! {
    /// A member of `data_mode`.
    DataMode {
        /// Everything.
        All = "all",
        /// What goes into a call.
        Input = "input",
        /// What comes out.
        Output = "output",
        /// The forward pass.
        Forward = "forward",
        /// The backward pass.
        Backward = "backward",
    }
}

words! {
    /// `check_mode` of overflow checks: which operators, where the framework tells them apart.
    CheckMode {
        /// Both kinds of operators.
        All = "all",
        /// Operators of the AI core.
        Aicore = "aicore",
        /// Atomic operators.
        Atomic = "atomic",
    }
}

words! {
    /// `file_format` of tensors, where the framework has several.
    FileFormat {
        /// numpy's.
        Npy = "npy",
        /// Raw bytes.
        Bin = "bin",
    }
}

/// The sides of a call that `data_mode` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataModes {
    members: Vec<DataMode>,
    forward: bool,
    backward: bool,
    input: bool,
    output: bool,
}

impl DataModes {
    /// A selection from its members; none of them means all.
    pub fn new(mut members: Vec<DataMode>) -> DataModes {
        if members.is_empty() {
            members.push(DataMode::All);
        }
        let has = |member| members.contains(&member);
        let all = has(DataMode::All);
        let any_direction = all || !(has(DataMode::Forward) || has(DataMode::Backward));
        let any_side = all || !(has(DataMode::Input) || has(DataMode::Output));
        let (forward, backward) =
            (any_direction || has(DataMode::Forward), any_direction || has(DataMode::Backward));
        let (input, output) = (any_side || has(DataMode::Input), any_side || has(DataMode::Output));
        DataModes { members, forward, backward, input, output }
    }

    /// The members as they were given, `all` for none.
    pub fn members(&self) -> &[DataMode] {
        &self.members
    }

    /// Whether anything of a direction is selected.
    pub fn direction(&self, direction: Direction) -> bool {
        match direction {
            Direction::Forward => self.forward,
            Direction::Backward => self.backward,
        }
    }

    /// Whether what goes into calls of that direction is selected.
    pub fn input(&self, direction: Direction) -> bool {
        self.input && self.direction(direction)
    }

    /// Whether what comes out of calls of that direction is selected.
    pub fn output(&self, direction: Direction) -> bool {
        self.output && self.direction(direction)
    }

    /// Whether gradients of parameters are selected: unless only the forward pass is. Sides do not matter, a
    /// gradient is neither input nor output.
    pub fn parameters_grad(&self) -> bool {
        self.backward
    }
}

impl Default for DataModes {
    fn default() -> DataModes {
        DataModes::new(Vec::new())
    }
}

/// After how many overflows collection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowNums {
    /// Never; -1 in files.
    Unlimited,
    /// After that many.
    Times(NonZeroU64),
}

impl Default for OverflowNums {
    fn default() -> OverflowNums {
        OverflowNums::Times(NonZeroU64::MIN)
    }
}

/// Keys of the online checker's transport, in the section of task `tensor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Online {
    /// `online_run_ut`: tensors are sent to the checker instead of being written.
    pub enabled: bool,
    /// A directory both sides see; empty for none.
    pub nfs_path: String,
    /// The checker's IPv4 address; checked only when enabled without `nfs_path`.
    pub host: String,
    /// The checker's port; there is one if enabled without `nfs_path`.
    pub port: Option<u16>,
    /// Where keys and certificates are; empty for none. Nobody has looked whether they exist.
    pub tls_path: String,
    /// `online_run_ut_recompute`.
    pub recompute: bool,
}

impl Default for Online {
    fn default() -> Online {
        Online {
            enabled: false,
            nfs_path: String::new(),
            host: String::new(),
            port: None,
            tls_path: "./".to_owned(),
            recompute: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for task in Task::ALL {
            assert_eq!(Task::from_word(task.as_str()), Some(*task));
        }
        assert_eq!(Level::from_word("l1"), None);
        assert_eq!(format!("{:>4}|{}", Level::L0, SummaryMode::Md5), "  L0|md5");
    }

    /// Input and output of forward, then of backward, then gradients of parameters.
    fn selected(members: &[DataMode]) -> [bool; 5] {
        let modes = DataModes::new(members.to_vec());
        let [forward, backward] = [Direction::Forward, Direction::Backward];
        [
            modes.input(forward),
            modes.output(forward),
            modes.input(backward),
            modes.output(backward),
            modes.parameters_grad(),
        ]
    }

    #[test]
    fn what_is_not_named_is_not_restricted() {
        use DataMode::{All, Backward, Forward, Input, Output};
        assert_eq!(selected(&[]), [true; 5]);
        assert_eq!(selected(&[All]), [true; 5]);
        assert_eq!(selected(&[Forward]), [true, true, false, false, false]);
        assert_eq!(selected(&[Backward]), [false, false, true, true, true]);
        assert_eq!(selected(&[Forward, Backward]), [true; 5]);
        assert_eq!(selected(&[Input]), [true, false, true, false, true]);
        assert_eq!(selected(&[Output]), [false, true, false, true, true]);
        assert_eq!(selected(&[Input, Output]), [true; 5]);
        assert_eq!(selected(&[Forward, Output]), [false, true, false, false, false]);
        assert_eq!(selected(&[Input, Backward]), [false, false, true, false, true]);
        assert_eq!(selected(&[Forward, Backward, Input]), [true, false, true, false, true]);
        assert_eq!(selected(&[Output, Input, Backward, Forward]), [true; 5]);
        assert_eq!(DataModes::default().members(), [All]);
    }
}
