//! What the name of an operator in a dump stands for: scopes of the graph that are part of it.

use rustc_hash::FxHashMap;

use crate::ir::Node;

/// The scopes of a graph, as names in files spell them.
#[derive(Debug, Default)]
pub struct Scopes {
    /// By the scope with `_` for `/`. Of several nodes the last counts.
    nodes: FxHashMap<String, Node>,
    /// The lengths that such names have, shortest first.
    lengths: Vec<usize>,
}

/// What stands behind a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Lines of code of all scopes, a line each.
    pub code: String,
    /// The scopes, a line each.
    pub scopes: String,
}

impl Scopes {
    /// An index of nodes.
    pub fn new(nodes: impl IntoIterator<Item = Node>) -> Scopes {
        let nodes: FxHashMap<String, Node> = nodes
            .into_iter()
            .filter(|node| !node.scope.is_empty())
            .map(|node| (node.scope.replace('/', "_"), node))
            .collect();
        let mut lengths: Vec<usize> = nodes.keys().map(String::len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        Scopes { nodes, lengths }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All scopes that are part of a name, by where they begin and how long they are, each once.
    pub fn find(&self, name: &str) -> Source {
        let mut found: Vec<&Node> = Vec::new();
        for start in 0..name.len() {
            for length in &self.lengths {
                let Some(end) = start.checked_add(*length).filter(|end| *end <= name.len()) else { break };
                if let Some(node) = name.get(start..end).and_then(|part| self.nodes.get(part))
                    && !found.iter().any(|known| std::ptr::eq(*known, node))
                {
                    found.push(node);
                }
            }
        }
        let code: Vec<&str> = found.iter().flat_map(|node| &node.code).map(String::as_str).collect();
        let scopes: Vec<&str> = found.iter().map(|node| &*node.scope).collect();
        Source { code: code.join("\n"), scopes: scopes.join("\n") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_by_place_and_length() {
        let node = |scope: &str, code: &[&str]| Node {
            scope: scope.to_owned(),
            code: code.iter().map(|line| (*line).to_owned()).collect(),
        };
        let scopes = Scopes::new([
            node("0", &["zero"]),
            node("Default/A-op1", &["old"]),
            node("Default/A-op1", &["one", "two"]),
            node("Default/A-op10", &["ten"]),
        ]);
        assert_eq!(scopes.len(), 3);
        let source = scopes.find("Default_A-op10");
        assert_eq!(source.scopes, "Default/A-op1\nDefault/A-op10\n0");
        assert_eq!(source.code, "one\ntwo\nten\nzero");
        assert_eq!(scopes.find("Default_A-op1▲0 0").scopes, "Default/A-op1\n0");
        assert_eq!(scopes.find("Default_B"), Source::default());
        assert_eq!(Scopes::default().find("anything"), Source::default());
    }
}
