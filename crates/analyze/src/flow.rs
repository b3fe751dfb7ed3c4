//! How data moves in a communication call: who gives, who takes, and which arguments are only there to be written to.

use crate::communication::{Communication, Group};
use crate::record::{Argument, BadTensor, KEYWORDS, Record, Role};

/// Who gives to whom. Ranks are those of the whole job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Everyone to everyone.
    All,
    /// One rank to the others.
    FromRoot(i64),
    /// All to one rank.
    ToRoot(i64),
    /// To this rank.
    Send(Option<i64>),
    /// From this rank, or from whoever sends first.
    Receive(Option<i64>),
    /// Each element of the batch by itself.
    Batch,
}

impl Flow {
    /// How data moves in a call of this function.
    pub fn of(function: &str, call: &Communication) -> Flow {
        let group = call.group();
        let in_group = |index: Option<i64>| {
            let index = usize::try_from(index?).ok()?;
            group?.ranks.get(index).copied()
        };
        let source = || {
            call.src.known().or_else(|| call.src_group.known()).or_else(|| in_group(call.group_src.known()))
        };
        let target = || {
            call.dst.known().or_else(|| call.dst_group.known()).or_else(|| in_group(call.group_dst.known()))
        };
        let first = || call.ints.first().copied();
        match function {
            "send" | "isend" | "send_object_list" => Flow::Send(target().or_else(first)),
            "recv" | "irecv" | "recv_object_list" => Flow::Receive(source().or_else(first)),
            "broadcast" | "scatter" | "broadcast_object_list" | "scatter_object_list" => {
                Flow::FromRoot(source().or_else(first).unwrap_or(0))
            }
            "reduce" | "gather" | "gather_object" => Flow::ToRoot(target().or_else(first).unwrap_or(0)),
            "batch_isend_irecv" => Flow::Batch,
            _ => Flow::All,
        }
    }

    /// Whether what this rank puts in can reach others.
    pub fn gives(self, rank: i64) -> bool {
        match self {
            Flow::FromRoot(root) => root == rank,
            Flow::Receive(_) => false,
            Flow::All | Flow::ToRoot(_) | Flow::Send(_) | Flow::Batch => true,
        }
    }

    /// Whether what others put in can reach this rank.
    pub fn takes(self, rank: i64) -> bool {
        match self {
            Flow::FromRoot(root) => root != rank,
            Flow::ToRoot(root) => root == rank,
            Flow::Send(_) => false,
            Flow::All | Flow::Receive(_) | Flow::Batch => true,
        }
    }
}

impl Communication {
    /// The group, given by name or by place.
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref().or(self.positional_group.as_ref())
    }
}

/// Whether an argument of a call is only there to be written to: what it held before is of no interest.
pub fn is_buffer(record: &Record, rank: i64, tensor: &BadTensor) -> bool {
    let Some(call) = record.communication.as_deref() else { return false };
    if tensor.role != Role::Input {
        return false;
    }
    let function = record.function();
    let flow = Flow::of(function, call);
    if flow == Flow::Batch {
        let item = tensor.batch_item.and_then(|item| call.batch.get(usize::from(item)));
        return item.is_some_and(|item| !item.is_send);
    }
    let named = |names: &[&str]| match tensor.argument {
        Argument::Keyword(index) => KEYWORDS.get(usize::from(index)).is_some_and(|name| names.contains(name)),
        _ => false,
    };
    let at = |place: u16| tensor.argument == Argument::Position(place);
    match function {
        "recv" | "irecv" | "recv_object_list" => true,
        "broadcast" | "broadcast_object_list" => !flow.gives(rank),
        "scatter" | "scatter_object_list" => at(0) || named(&["tensor"]),
        "gather" | "gather_object" => at(1) || named(&["gather_list"]),
        "all_gather" => at(0) || named(&["tensor_list"]),
        "all_gather_into_tensor"
        | "_all_gather_base"
        | "reduce_scatter"
        | "reduce_scatter_tensor"
        | "_reduce_scatter_base"
        | "all_to_all"
        | "all_to_all_single" => {
            at(0) || named(&["output", "output_tensor", "output_tensor_list", "output_list"])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communication::RankArgument;
    use crate::record::Kinds;

    fn call(ints: &[i64]) -> Communication {
        Communication { ints: ints.to_vec(), ..Communication::default() }
    }

    #[test]
    fn directions() {
        assert_eq!(Flow::of("isend", &call(&[3])), Flow::Send(Some(3)));
        assert_eq!(Flow::of("recv", &call(&[])), Flow::Receive(None));
        assert_eq!(Flow::of("all_reduce", &call(&[])), Flow::All);
        assert_eq!(Flow::of("reduce_scatter_tensor", &call(&[])), Flow::All);
        assert_eq!(Flow::of("scatter", &call(&[])), Flow::FromRoot(0));
        let group = Some(Group { ranks: vec![4, 6], id: "".into() });
        let named = Communication { group, group_dst: RankArgument::Known(1), ..call(&[]) };
        assert_eq!(Flow::of("reduce", &named), Flow::ToRoot(6));
        let beyond = Communication { group_dst: RankArgument::Known(7), ..named };
        assert_eq!(Flow::of("send", &beyond), Flow::Send(None));
        assert!(Flow::FromRoot(1).gives(1) && !Flow::FromRoot(1).gives(0) && Flow::ToRoot(1).takes(1));
    }

    #[test]
    fn buffers() {
        let record = |name: &str| Record {
            name: name.into(),
            communication: Some(Box::new(call(&[1]))),
            ..Record::default()
        };
        let tensor = |argument| BadTensor {
            fingerprint: 0,
            role: Role::Input,
            argument,
            kinds: Kinds::NAN,
            requires_grad: false,
            batch_item: None,
        };
        let first = tensor(Argument::Position(0));
        let second = tensor(Argument::Position(1));
        assert!(is_buffer(&record("Distributed.broadcast.0.forward"), 0, &first));
        assert!(!is_buffer(&record("Distributed.broadcast.0.forward"), 1, &first));
        assert!(is_buffer(&record("Distributed.all_gather.0.forward"), 0, &first));
        assert!(!is_buffer(&record("Distributed.all_gather.0.forward"), 0, &second));
        assert!(is_buffer(&record("Distributed.gather.0.forward"), 0, &second));
        assert!(is_buffer(
            &record("Distributed.all_to_all_single.0.forward"),
            0,
            &tensor(Argument::named("output"))
        ));
        assert!(!is_buffer(&record("Distributed.all_reduce.0.forward"), 0, &first));
    }
}
