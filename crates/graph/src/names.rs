//! How the graphs of the reference read names: what kind of node one is, and which node belongs to which.

/// What a node of a hierarchy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A module call, a step of the optimizer, the gradients of parameters; also whatever else it cannot be told from.
    Module,
    /// A call of a function.
    Api,
    /// Functions called between two modules, put together.
    Collection,
    /// Such collections of several ranks, put together.
    MultiCollection,
}

impl NodeKind {
    /// Its number in files.
    pub fn number(self) -> u8 {
        match self {
            NodeKind::Module => 0,
            NodeKind::Api => 1,
            NodeKind::MultiCollection => 8,
            NodeKind::Collection => 9,
        }
    }

    /// Whether it was put together of functions.
    pub fn is_collection(self) -> bool {
        matches!(self, NodeKind::Collection | NodeKind::MultiCollection)
    }
}

/// Which form of the reference a graph is made like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// 8.1.2: a `.vis` file for each rank.
    First,
    /// 26.0.0: one `.vis.db` for all.
    Third,
}

/// The name of the root.
pub const ROOT: &str = "DefaultModel";
/// How collections are called, before their number.
pub const COLLECTION: &str = "Apis_Between_Modules";
const GRADIENTS: &str = ".parameters_grad";

/// Beginnings of names of modules. The character behind the first two is any one.
const MODULES: [&str; 2] = ["Module", "Cell"];
const PHASES: [&str; 2] = ["optimizer", "clip_grad"];
const APIS: [&str; 12] = [
    "Tensor",
    "Torch",
    "Functional",
    "NPU",
    "VF",
    "Distributed",
    "Aten",
    "Mint",
    "Primitive",
    "Jit",
    "MintFunctional",
    "MindSpeed",
];

/// What a name is of; none if it begins like nothing that is known.
pub fn kind_of(name: &str, generation: Generation) -> Option<NodeKind> {
    let has_more = |prefix: &&str| {
        name.strip_prefix(*prefix).and_then(|rest| rest.chars().next()).is_some_and(|next| next != '\n')
    };
    if MODULES.iter().any(has_more) || PHASES.iter().any(|prefix| name.starts_with(prefix)) {
        return Some(NodeKind::Module);
    }
    if generation == Generation::Third && name.starts_with(ROOT) {
        return Some(NodeKind::Module);
    }
    let known = if generation == Generation::First { &APIS[..APIS.len() - 1] } else { &APIS[..] };
    known.iter().any(has_more).then_some(NodeKind::Api)
}

/// Whether ranks make this call together.
pub fn is_distributed(name: &str) -> bool {
    name.starts_with("Distributed")
}

/// `Module.a.Cls` and `0` of `Module.a.Cls.backward.0`, for one direction.
pub fn split_call<'n>(name: &'n str, direction: &str) -> Option<(&'n str, &'n str)> {
    let (rest, number) = name.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    let stem = rest.strip_suffix(direction)?.strip_suffix('.')?;
    is_number.then_some((stem, number))
}

/// Whether it is a call in the backward pass.
pub fn is_backward(name: &str) -> bool {
    split_call(name, "backward").is_some() || name.ends_with(".backward")
}

/// The parent a backward call without one takes after its forward call, whose parent this is.
pub fn backward_parent(child: &str, forward_parent: &str) -> String {
    if split_call(child, "backward").is_none() {
        return forward_parent.replace("forward", "backward");
    }
    match split_call(forward_parent, "forward") {
        Some((stem, number)) => format!("{stem}.backward.{number}"),
        None => forward_parent.to_owned(),
    }
}

/// The forward call of the same number.
pub fn forward_twin(name: &str) -> Option<String> {
    if let Some((stem, number)) = split_call(name, "backward") {
        return Some(format!("{stem}.forward.{number}"));
    }
    name.ends_with(".backward").then(|| name.replace("backward", "forward"))
}

/// The forward call whose stack stands for a backward call: a module is called from one place, whatever the number.
pub fn forward_with_stack(name: &str) -> Option<String> {
    match split_call(name, "backward") {
        Some((stem, _)) => Some(format!("{stem}.forward.0")),
        None => forward_twin(name),
    }
}

/// The module whose gradients a record holds.
pub fn module_of_gradients(name: &str, generation: Generation) -> Option<&str> {
    let own = name.strip_suffix(GRADIENTS);
    if own.is_some() || generation == Generation::First {
        return own;
    }
    let (rest, number) = name.rsplit_once('.')?;
    rest.strip_suffix(GRADIENTS).filter(|_| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// A name without the numbers of its calls, as fuzzy matching counts them anew: `Torch.add.forward`.
pub fn without_counts(name: &str, generation: Generation) -> String {
    let mut rest = name;
    let mut kept = String::with_capacity(name.len());
    while let Some(dot) = rest.find('.') {
        let behind = &rest[dot + 1..];
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        kept.push_str(&rest[..=dot]);
        // The dot behind a number goes with it, and begins no other one.
        let is_count = digits > 0 && behind[digits..].starts_with('.');
        rest = if is_count { &behind[digits + 1..] } else { behind };
        if is_count {
            let next = rest.find('.').unwrap_or(rest.len());
            kept.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    kept.push_str(rest);
    if generation == Generation::Third { without_ranks(&kept) } else { kept }
}

/// A name without `_rank3`, which merging appends to functions of further ranks.
pub fn without_ranks(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("_rank") {
        let digits = rest[at + 5..].bytes().take_while(u8::is_ascii_digit).count();
        kept.push_str(&rest[..if digits > 0 { at } else { at + 5 }]);
        rest = &rest[at + 5 + digits..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_beginning() {
        let kind = |name| kind_of(name, Generation::First);
        for module in ["Module.a.forward.0", "Cell.x", "optimizer.Adam", "clip_grad_norm", "ModuleX"] {
            assert_eq!(kind(module), Some(NodeKind::Module), "{module}");
        }
        for api in
            ["Torch.add.0.forward", "MintFunctional.x", "VF.lstm.0.forward", "Distributed.send.0.forward"]
        {
            assert_eq!(kind(api), Some(NodeKind::Api), "{api}");
        }
        assert_eq!((kind("Module"), kind("Torch"), kind("MindSpeed.a"), kind("x")), (None, None, None, None));
        assert_eq!(kind_of("MindSpeed.a", Generation::Third), Some(NodeKind::Api));
        assert_eq!(kind_of("DefaultModel", Generation::Third), Some(NodeKind::Module));
    }

    #[test]
    fn counts_are_left_out_as_a_regular_expression_would() {
        let of = |name| without_counts(name, Generation::First);
        assert_eq!(of("Torch.add.0.forward"), "Torch.add.forward");
        assert_eq!(of("a.1.2.b"), "a.2.b");
        assert_eq!(of("a.1.2.3.b"), "a.2.b");
        assert_eq!(of("a.12"), "a.12");
        assert_eq!(of("a.1."), "a.");
        assert_eq!(of("a.1x.2.b"), "a.1x.b");
        assert_eq!(of("no"), "no");
        assert_eq!(without_counts("Torch.mean_rank1.0.forward", Generation::Third), "Torch.mean.forward");
        assert_eq!(without_ranks("a_rank_rank12b_rank3"), "a_rankb");
    }

    #[test]
    fn twins_are_found_by_name() {
        assert_eq!(forward_twin("Module.a.A.backward.2").as_deref(), Some("Module.a.A.forward.2"));
        assert_eq!(forward_with_stack("Module.a.A.backward.2").as_deref(), Some("Module.a.A.forward.0"));
        assert_eq!(forward_twin("Torch.a.0.backward").as_deref(), Some("Torch.a.0.forward"));
        assert_eq!(forward_twin("Torch.a.0.forward"), None);
        assert_eq!(backward_parent("M.a.A.backward.1", "M.forward.B.forward.3"), "M.forward.B.backward.3");
        assert_eq!(backward_parent("Torch.a.0.backward", "M.forward.B.forward.3"), "M.backward.B.backward.3");
        assert_eq!(module_of_gradients("M.a.parameters_grad", Generation::First), Some("M.a"));
        assert_eq!(module_of_gradients("M.a.parameters_grad.1", Generation::First), None);
        assert_eq!(module_of_gradients("M.a.parameters_grad.1", Generation::Third), Some("M.a"));
    }
}
