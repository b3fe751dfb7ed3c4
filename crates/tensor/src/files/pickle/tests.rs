//! Pickles as Python wrote them (`pickle.dumps(value, protocol)`), decoded node by node.

use super::*;
use crate::files::FormatError;

fn decode_all(input: &[u8]) -> Decoded {
    let decoded = decode(input, 0..input.len(), 1 << 20).unwrap();
    assert_eq!(decoded.end, input.len());
    decoded
}

/// The value in a notation of its own, by recursion: for small trusted values.
fn show(input: &[u8], decoded: &Decoded, id: NodeId) -> String {
    let arena = &decoded.arena;
    let all = |ids: &[NodeId]| ids.iter().map(|&id| show(input, decoded, id)).collect::<Vec<_>>().join(" ");
    match arena.node(id) {
        Node::Str { .. } => format!("{:?}", arena.str(input, id).unwrap()),
        Node::Bytes { .. } | Node::Latin1 { .. } => format!("b{:?}", arena.bytes(input, id).unwrap()),
        Node::BigInt { len, .. } => format!("big{len}"),
        Node::Tuple { .. } => format!("({})", all(arena.sequence(id).unwrap())),
        Node::List(_) => format!("[{}]", all(arena.sequence(id).unwrap())),
        Node::Set(_) => format!("<{}>", all(arena.sequence(id).unwrap())),
        Node::Dict(_) => {
            let items = &arena.dict(id).unwrap().items;
            let items =
                items.iter().map(|&(k, v)| format!("{}:{}", all(&[k]), all(&[v]))).collect::<Vec<_>>();
            format!("{{{}}}", items.join(" "))
        }
        Node::Object(_) => {
            let object = arena.object(id).unwrap();
            let state = object.state.map(|state| all(&[state])).unwrap_or_default();
            format!("{}{}{state}", object.global.get().name, all(&[object.args]))
        }
        Node::Global(global) => global.get().name.to_owned(),
        Node::None => "None".into(),
        Node::Bool(value) => value.to_string(),
        Node::Int(value) => value.to_string(),
        Node::Float(value) => format!("{value:?}"),
    }
}

fn shown(input: &[u8]) -> String {
    let decoded = decode_all(input);
    show(input, &decoded, decoded.root)
}

#[test]
fn one_value_in_every_protocol() {
    // {"a": [1, -2, 2.5, None, True], "b": (b"\x00\xff", "é"), 300: {7}}
    let expected = r#"{"a":[1 -2 2.5 None true] "b":(b[0, 255] "é") 300:<7>}"#;
    let protocol0 = b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naF2.5\naNaI01\nasVb\np3\n(c_codecs\nencode\np4\n(V\\u0000\xff\np5\nVlatin1\np6\ntp7\nRp8\nV\xe9\np9\ntp10\nsI300\nc__builtin__\nset\np11\n((lp12\nI7\natp13\nRp14\ns.";
    assert_eq!(shown(protocol0), expected);
    let protocol2 = b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88eX\x01\x00\x00\x00bq\x03c_codecs\nencode\nq\x04X\x03\x00\x00\x00\x00\xc3\xbfq\x05X\x06\x00\x00\x00latin1q\x06\x86q\x07Rq\x08X\x02\x00\x00\x00\xc3\xa9q\t\x86q\nM,\x01c__builtin__\nset\nq\x0b]q\x0cK\x07a\x85q\rRq\x0eu.";
    assert_eq!(shown(protocol2), expected);
    let protocol4 = b"\x80\x04\x95/\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88e\x8c\x01b\x94C\x02\x00\xff\x94\x8c\x02\xc3\xa9\x94\x86\x94M,\x01\x8f\x94(K\x07\x90u.";
    assert_eq!(shown(protocol4), expected);
}

#[test]
fn integers_of_all_lengths() {
    assert_eq!(shown(b"\x8a\x00."), "0");
    assert_eq!(shown(b"\x8a\x01\xff."), "-1");
    assert_eq!(shown(b"\x8a\x02\xff\x00."), "255");
    assert_eq!(shown(b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), "-9223372036854775808");
    assert_eq!(shown(b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."), "big9");
    assert_eq!(shown(b"L123L\n."), "123");
    assert_eq!(shown(b"I-5\n."), "-5");
}

#[test]
fn python_2_strings_are_text_where_they_can_be() {
    assert_eq!(shown(b"U\x02ab."), "\"ab\"");
    assert_eq!(shown(b"U\x02\xff\x00."), "b[255, 0]");
    assert_eq!(shown(b"S'a\\x00b'\n."), "\"a\\0b\"");
}

#[test]
fn containers_made_by_calls() {
    assert_eq!(shown(b"ccollections\nOrderedDict\n](](K\x01K\x02ee\x85R."), "{1:2}");
    assert_eq!(shown(b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01K\x02s."), "{1:2}");
    assert_eq!(shown(b"ccollections\nCounter\n}K\x01K\x02s\x85R."), "{1:2}");
    assert_eq!(shown(b"ctorch\nSize\nK\x01K\x02\x86\x85R."), "(1 2)");
    assert_eq!(shown(b"cbuiltins\nbytes\n)R."), "b[]");
    assert_eq!(shown(b"cargparse\nNamespace\n)\x81}K\x01K\x02sb."), "Namespace(){1:2}");
    assert_eq!(shown(b"(cpathlib\nPosixPath\nK\x01o."), "PosixPath(1)");
}

#[test]
fn parameters_and_tensor_subclasses_are_the_tensor_inside() {
    let tensor = b"ctorch._utils\n_rebuild_tensor\n)R";
    let parameter = [b"ctorch._utils\n_rebuild_parameter\n(", &tensor[..], b"\x88}tR."].concat();
    assert_eq!(shown(&parameter), "_rebuild_tensor()");
    let with_state = [b"ctorch._utils\n_rebuild_parameter_with_state\n(", &tensor[..], b"\x88}}tR."].concat();
    assert_eq!(shown(&with_state), "_rebuild_tensor(){}");
    let typed =
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor\nctorch\nTensor\n)}tR.";
    assert_eq!(shown(typed), "_rebuild_tensor(){}");
}

#[test]
fn several_pickles_in_a_row_end_where_they_end() {
    let input = b"xxK\x01.K\x02.";
    let first = decode(input, 2..input.len(), 1 << 20).unwrap();
    let second = decode(input, first.end..input.len(), 1 << 20).unwrap();
    assert_eq!((first.arena.int(first.root), second.arena.int(second.root)), (Some(1), Some(2)));
    assert!(matches!(decode(input, 2..4, 1 << 20), Err(FormatError::Truncated { .. })));
}
