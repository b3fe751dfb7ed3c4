//! Which lines of a stack are shown with a node.

use crate::names::{Generation, NodeKind, kind_of};
use crate::source::Frames;

/// What a backward call says that has no stack, and no forward call to take it from.
pub const NO_FORWARD: &str =
    "This backward node cannot find the forward node and cannot retrieve stack information.";

/// The frames of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeStack {
    /// None were recorded.
    #[default]
    Empty,
    /// It is a backward call whose forward call is not known.
    NoForward,
    /// All of them.
    All(Frames),
    /// One of them.
    One(Frames, u32),
}

impl NodeStack {
    /// Its lines, innermost first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let (frames, sentence): (&[Box<str>], _) = match self {
            NodeStack::Empty => (&[], None),
            NodeStack::NoForward => (&[], Some(NO_FORWARD)),
            NodeStack::All(frames) => (frames, None),
            NodeStack::One(frames, at) => (frames.get(*at as usize).map_or(&[], std::slice::from_ref), None),
        };
        sentence.into_iter().chain(frames.iter().map(|frame| &**frame))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines().next().is_none()
    }
}

/// The one frame that tells most: where a module was called by its name, or the line that called a function.
pub fn simplified(name: &str, frames: &Frames) -> NodeStack {
    let at = if kind_of(name, Generation::First) == Some(NodeKind::Module) {
        // `bn2` of `Module.layer3.0.bn2.BatchNorm2d.forward.0`.
        name.rsplit('.').nth(3).and_then(|module| {
            let call = format!("{module}(");
            frames.iter().position(|frame| frame.contains(&call))
        })
    } else {
        let wrapper = frames.iter().position(|frame| calls_template(frame));
        let is_last = |at: usize| at + 1 >= frames.len();
        wrapper.filter(|&at| !is_last(at)).map(|at| at + 1)
    };
    match at.and_then(|at| u32::try_from(at).ok()) {
        Some(at) => NodeStack::One(frames.clone(), at),
        None => NodeStack::All(frames.clone()),
    }
}

/// Whether a line calls what wraps functions: `TensorOPTemplate(…)` or `api_template(…)`.
fn calls_template(frame: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let begins_word = |at: usize| !frame[..at].ends_with(is_word);
    let is_class = |(at, _): (usize, &str)| {
        let letters = frame[..at].bytes().rev().take_while(u8::is_ascii_alphabetic).count();
        let start = at - letters;
        letters > 0 && frame.as_bytes()[start].is_ascii_uppercase() && begins_word(start)
    };
    frame.match_indices("Template(").any(is_class)
        || frame.match_indices("api_template(").any(|(at, _)| begins_word(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lines: &[&str]) -> Frames {
        lines.iter().map(|line| Box::from(*line)).collect()
    }

    fn shown(name: &str, lines: &[&str]) -> Vec<String> {
        simplified(name, &frames(lines)).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_module_is_shown_where_it_is_called() {
        let lines = ["a, \n hook(x)", "b, \n out = self.bn2(out)", "c, \n self.bn2(y)"];
        assert_eq!(shown("Module.layer3.0.bn2.BatchNorm2d.forward.0", &lines), [lines[1]]);
        assert_eq!(shown("Module.other.Cls.forward.0", &lines), lines);
        assert_eq!(shown("Module.x", &lines), lines);
        // The name is text, not a pattern.
        assert_eq!(shown("Module.b+2.Cls.forward.0", &["self.bb2(x)", "self.b+2(x)"]), ["self.b+2(x)"]);
    }

    #[test]
    fn a_function_is_shown_behind_its_wrapper() {
        for wrapper in ["return TensorOPTemplate(op)(*args)", "x api_template(...)", "é.XTemplate("] {
            assert_eq!(
                shown("Tensor.add.0.forward", &["z", wrapper, "caller", "rest"]),
                ["caller"],
                "{wrapper}"
            );
        }
        for other in ["Template(", "_XTemplate(", "my_api_template(", "xTemplate(", "9XTemplate("] {
            assert_eq!(shown("Tensor.add.0.forward", &[other, "caller"]).len(), 2, "{other}");
        }
        assert_eq!(shown("Tensor.add.0.forward", &["z", "XTemplate("]).len(), 2, "nothing behind it");
    }
}
