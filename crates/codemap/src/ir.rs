//! The text of a graph: its nodes, each with its scope and the lines of code it comes from.
//!
//! ```text
//!   %N(NAME) = OPERATOR(ARGUMENTS) … unique_id: "4249" …
//!       : (TYPES) -> (TYPES)
//!       # Fullname with scope: (Default/fc-Dense/MatMul-op0)
//!       # In file F:L1~L2, C1~C2/line of source/
//! ```
//!
//! Files are hostile: nothing here fails, indexes are checked, and each byte is looked at a constant number of times.
//! Text is read as bytes, because marks of any alphabet stand in names.

use rustc_hash::{FxHashMap, FxHashSet};

/// A node of the graph that has a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// `Default/fc-Dense/MatMul-op0`.
    pub scope: String,
    /// Lines of code, outermost first, without the marks around them.
    pub code: Vec<String>,
}

/// The nodes of a graph that have a scope, in the order of the file. Of two with the same number and name, which belong to
/// different subgraphs, the first counts.
pub fn parse(text: &[u8]) -> Vec<Node> {
    let heads = heads(text);
    let mut seen: FxHashSet<(&[u8], &[u8])> = FxHashSet::default();
    let mut parsed = Vec::new();
    for (place, head) in heads.iter().enumerate() {
        let end = heads.get(place + 1).map_or(text.len(), |next| next.start);
        if !seen.insert((head.number, head.name)) {
            continue;
        }
        if let Some(node) = text.get(head.arguments_end..end).and_then(own_lines) {
            parsed.push(node);
        }
    }
    lend_code(&mut parsed);
    parsed.into_iter().map(|parsed| parsed.node).collect()
}

/// Where a node begins, and where its arguments end.
struct Head<'a> {
    start: usize,
    number: &'a [u8],
    name: &'a [u8],
    arguments_end: usize,
}

fn heads(text: &[u8]) -> Vec<Head<'_>> {
    let mut heads = Vec::new();
    let mut at = 0;
    // Up to here a parenthesis was looked for that is not there.
    let mut unbalanced_until = 0;
    while let Some(line) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = line_length(line);
        let next = at + length;
        let Some((number, name, opening)) = line.get(..length).and_then(head_of_line) else {
            at = next;
            continue;
        };
        // Constants of many lines may look like nodes; where parentheses do not match, the line ends the arguments.
        // Looking for one that is not there goes to the end of the subgraph, so it is done once in each.
        let until = if at < unbalanced_until { next } else { text.len() };
        let closed = matching(text.get(..until).unwrap_or(text), at + opening);
        let arguments_end = closed.unwrap_or_else(|looked_until| {
            unbalanced_until = unbalanced_until.max(looked_until);
            next
        });
        heads.push(Head { start: at, number, name, arguments_end });
        at = match text.get(arguments_end..) {
            Some(rest) => arguments_end + line_length(rest),
            None => text.len(),
        };
    }
    heads
}

/// With the line break, if there is one.
fn line_length(text: &[u8]) -> usize {
    find(text, b"\n").map_or(text.len(), |at| at + 1)
}

/// `%N(NAME) = OPERATOR(`: the number, the name and the place of the last parenthesis.
fn head_of_line(line: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let rest = line.get(start..)?.strip_prefix(b"%")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = rest.get(..digits).filter(|number| !number.is_empty())?;
    let rest = rest.get(digits..)?.strip_prefix(b"(")?;
    let word = rest.iter().position(u8::is_ascii_whitespace)?;
    let name = rest.get(..word)?.strip_suffix(b")").filter(|name| !name.is_empty())?;
    let operator = rest.get(word..)?.strip_prefix(b" = ")?;
    let length = operator.iter().position(u8::is_ascii_whitespace).unwrap_or(operator.len());
    let opening = operator.get(..length)?.iter().position(|&byte| byte == b'(').filter(|&at| at > 0)?;
    Some((number, name, start + 1 + digits + 1 + word + 3 + opening))
}

/// Looks for the parenthesis that closes the one at `opening`, and gives the place behind it; if there is none, where the
/// subgraph or the text ends. Parentheses in strings do not count.
fn matching(text: &[u8], opening: usize) -> Result<usize, usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    for (at, &byte) in text.iter().enumerate().skip(opening) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            // A string does not go on behind the line.
            b'\n' => in_string = false,
            b'(' if !in_string => depth += 1,
            b')' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            // A closed subgraph: the parenthesis was never closed.
            b'}' if at > 0 && text.get(at - 1) == Some(&b'\n') => return Err(at),
            _ => {}
        }
    }
    Err(text.len())
}

/// A node as it stands in the file.
struct Parsed {
    node: Node,
    id: Option<String>,
    forward_id: Option<String>,
}

/// The lines of a node behind its arguments. Nothing if it has no scope of its own.
fn own_lines(text: &[u8]) -> Option<Parsed> {
    let mut lines = lines_of(text);
    let (mut id, mut forward_id) = (None, None);
    let scope = loop {
        let line = lines.next()?;
        // Behind it stands the next subgraph.
        if line.first() == Some(&b'}') {
            return None;
        }
        if let Some(at) = find(line, b"#")
            && let Some(scope) = scope_of_line(line.get(at..)?)
        {
            break scope;
        }
        forward_id = forward_id.or_else(|| quoted_behind(line, b"forward_unique_id: \""));
        id = id.or_else(|| own_id(line));
    };
    let code = lines.map_while(code_of_line).collect();
    Some(Parsed { node: Node { scope, code }, id, forward_id })
}

/// Lines without their breaks.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = find(text, b"\n") else { return rest.take() };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

/// The scope in a comment that has the word, a colon, and parentheses behind them.
fn scope_of_line(comment: &[u8]) -> Option<String> {
    let word = comment.windows(6).position(|window| window.eq_ignore_ascii_case(b"scope:"))?;
    let rest = comment.get(word + 6..)?;
    let opening = find(rest, b"(")?;
    let inside = rest.get(opening + 1..)?;
    Some(lossy(inside.get(..find(inside, b")")?)?))
}

/// What stands behind `# ` in a comment, without the marks at its ends.
fn code_of_line(line: &[u8]) -> Option<String> {
    let code = line.get(find(line, b"# ")?..)?;
    let code = trim(code, |byte| byte == b'#' || byte == b' ' || byte == b'\r');
    Some(lossy(trim(code, |byte| byte == b'/')))
}

fn trim(mut text: &[u8], is_mark: impl Fn(u8) -> bool) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_mark(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_mark(*last)
    {
        text = rest;
    }
    text
}

/// The node's own number, not that of the node it is the gradient of.
fn own_id(line: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"unique_id: \"";
    let mut from = 0;
    loop {
        let at = from + find(line.get(from..)?, KEY)?;
        if !line.get(..at)?.ends_with(b"forward_") {
            return quoted_behind(line.get(at..)?, KEY);
        }
        from = at + KEY.len();
    }
}

fn quoted_behind(line: &[u8], key: &[u8]) -> Option<String> {
    let rest = line.get(find(line, key)? + key.len()..)?;
    Some(lossy(rest.get(..find(rest, b"\"")?)?))
}

/// A node of the gradients that has no lines of its own has those of the node it belongs to.
fn lend_code(parsed: &mut [Parsed]) {
    let is_gradient = |node: &Node| node.scope.starts_with("Gradients");
    let lenders: FxHashMap<String, Vec<String>> = parsed
        .iter()
        .filter(|parsed| !is_gradient(&parsed.node) && !parsed.node.code.is_empty())
        .filter_map(|parsed| Some((parsed.id.clone()?, parsed.node.code.clone())))
        .collect();
    for Parsed { node, forward_id, .. } in parsed {
        if is_gradient(node)
            && node.code.is_empty()
            && let Some(code) = forward_id.as_ref().and_then(|id| lenders.get(id))
        {
            node.code.clone_from(code);
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    match what {
        [byte] => memchr::memchr(*byte, text),
        _ => memchr::memmem::find(text, what),
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Vec<(String, usize)> {
        parse(text.as_bytes()).into_iter().map(|node| (node.scope, node.code.len())).collect()
    }

    #[test]
    fn parentheses_constants_and_marks() {
        let text = "subgraph @f(%para1_x) {\n\
            \x20 %0(✓CNode_1$▲h◂) = Op(Tensor(shape=[2], value=\n[1 2]\n  %9(fake) = x), \")\", (1, (2))) {a: \"%\"}\n\
            \x20     : (<Tensor>) -> (<Tensor>)\n\
            \x20     # Fullname with scope: (Default/Op-op0)\n\
            \x20     # In file a.py:1, 2~3/    y = f(x)  # why/\n\
            \x20     # In file a.py:2/z/<~~This line of code can be shared by multiple nodes, and may be duplicated./\n\
            \x20 %1(y) = %12[@FuncUnion(@a, @b)]()\n\
            \x20     # scope: (0)\n\
            \x20 Return(%1)\n}\n";
        let nodes = parse(text.as_bytes());
        assert_eq!(nodes.iter().map(|node| &*node.scope).collect::<Vec<_>>(), ["Default/Op-op0", "0"]);
        assert_eq!(
            nodes[0].code,
            [
                "In file a.py:1, 2~3/    y = f(x)  # why",
                "In file a.py:2/z/<~~This line of code can be shared by multiple nodes, and may be duplicated."
            ]
        );
    }

    #[test]
    fn a_scope_belongs_to_its_own_node() {
        let text = "%0(a) = A()\n  : ()\n%1(b) = B()\n  # Fullname with scope: (Default/B-op0)\n# line\n}\n\
            # scope: (nobody's)\n%1(b) = B()\n  # Fullname with scope: (Default/other)\n%2(c) = C(\n";
        assert_eq!(scopes(text), [("Default/B-op0".to_owned(), 1)]);
        assert_eq!(scopes(""), []);
        assert_eq!(scopes("%1(b) = B("), []);
        assert_eq!(scopes("no graph at all\n%\n%1\n%1(\n%1() = \n"), []);
    }

    #[test]
    fn gradients_borrow_lines_they_do_not_have() {
        let text = "%0(a) = A() cnode_primal_attrs: {unique_id: \"7\"}\n  # scope: (Default/A-op0)\n  # In file f:1/a/\n\
            %1(b) = B() cnode_primal_attrs: {forward_unique_id: \"7\", unique_id: \"8\"}\n  # scope: (Gradients/Default/A-op0)\n\
            %2(c) = C() cnode_primal_attrs: {forward_unique_id: \"7\"}\n  # scope: (Gradients/Default/C-op0)\n\
            \x20 # Corresponding forward node candidate:\n";
        let nodes = parse(text.as_bytes());
        assert_eq!(nodes[1].code, ["In file f:1/a"]);
        assert_eq!(nodes[2].code, ["Corresponding forward node candidate:"]);
    }

    #[test]
    fn parentheses_that_are_never_closed_cost_a_line_each() {
        // Looking for each of them to the end of the subgraph would take minutes.
        let text = "%0(a) = A(((((\n".repeat(200_000) + "}\n%1(b) = B(\nx)\n  # scope: (Default/B-op0)\n";
        assert_eq!(scopes(&text), [("Default/B-op0".to_owned(), 0)]);
    }

    #[test]
    fn nothing_in_a_file_does_harm() {
        let mut random = fastrand::Rng::with_seed(1);
        let pieces = [
            "%0(a) = A(",
            ")",
            "\n",
            "# scope: (",
            "x)",
            "\"",
            "}",
            "# ",
            "\\",
            "%",
            "(",
            "✓",
            "unique_id: \"",
        ];
        for _ in 0..2000 {
            let text: String =
                (0..random.usize(..40)).map(|_| pieces[random.usize(..pieces.len())]).collect();
            parse(text.as_bytes());
        }
    }
}
