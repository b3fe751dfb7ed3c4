//! File names of tensors: whatever a record and its keys are called, a tensor lies under one plain name in its directory.

use msprobe_tensor::crc32_of_bytes;

/// What file systems allow, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Of a name that is too long the end is kept from a dot within so many bytes: it tells the tensor's position.
const MAX_TAIL_BYTES: usize = 64;

/// The name of a tensor as a file name. Nearly every name is one already and stays as it is. What cannot stand in a file
/// name is replaced by `_`, and a name that is too long loses its middle; a hash of the whole name then keeps two of
/// them apart.
pub fn tensor_file_name(name: String) -> String {
    let last_replaced = name.bytes().rposition(is_forbidden);
    if last_replaced.is_none() && name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let hash = format!("_{:08x}", crc32_of_bytes(name.as_bytes()));
    let mut plain = name;
    if let Some(last) = last_replaced {
        plain = plain.replace(['/', '\0'], "_");
        if plain.len() + hash.len() <= MAX_NAME_BYTES {
            // Behind the part it belongs to, so that the position behind it stays readable.
            let end = plain[last..].find('.').map_or(plain.len(), |dot| last + dot);
            plain.insert_str(end, &hash);
            return plain;
        }
    }
    let tail = tail(&plain);
    let mut head = MAX_NAME_BYTES - hash.len() - tail.len();
    while !plain.is_char_boundary(head) {
        head -= 1;
    }
    format!("{}{hash}{tail}", &plain[..head])
}

fn is_forbidden(byte: u8) -> bool {
    byte == b'/' || byte == 0
}

/// The end of a long name, from a dot on.
fn tail(name: &str) -> &str {
    let from = name.len().saturating_sub(MAX_TAIL_BYTES);
    let dot = name.bytes().skip(from).position(|byte| byte == b'.');
    dot.map_or("", |dot| &name[from + dot..])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn named(name: &str) -> String {
        tensor_file_name(name.to_owned())
    }

    #[test]
    fn ordinary_names_stay() {
        let longest = format!("{}.pt", "n".repeat(252));
        for name in ["Module.a.A.forward.0.output.h.pt", "a b\n\"é.0.debug.pt", "..pt", &longest] {
            assert_eq!(named(name), name);
        }
    }

    #[test]
    fn separators_are_replaced_in_place() {
        assert_eq!(named("A.forward.0.output.loss/ce.0.pt"), "A.forward.0.output.loss_ce_cac00634.0.pt");
        assert_eq!(named("../../x.0.debug.pt"), ".._.._x_e35dca10.0.debug.pt");
        assert_eq!(named("/etc/x\0y"), "_etc_x_y_59b1c183");
        let names = ["a/b.pt", "a_b.pt", "a\0b.pt", "a//b.pt", "a/_b.pt", "a_/b.pt"];
        assert_eq!(names.map(named).iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn long_names_lose_their_middle() {
        let by_key = format!("Module.a.A.forward.0.output.{}.pt", "k".repeat(250));
        let short = named(&by_key);
        let end = format!("_{:08x}.pt", crc32_of_bytes(by_key.as_bytes()));
        assert_eq!(short, format!("{}{end}", &by_key[..MAX_NAME_BYTES - end.len()]));
        assert_ne!(short, named(&by_key.replacen("kk.pt", "kj.pt", 1)));
        let by_module = format!("Module.{}A.forward.0.output.1.h.pt", "layer.".repeat(60));
        assert!(named(&by_module).ends_with(".layer.A.forward.0.output.1.h.pt"), "{}", named(&by_module));
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_file_name(name in "([a/.é\0]|[a-c]{40}|.{0,90}){0,12}") {
            let file = named(&name);
            prop_assert!(file.len() <= MAX_NAME_BYTES);
            prop_assert!(!file.bytes().any(is_forbidden));
            let is_plain = name.len() <= MAX_NAME_BYTES && !name.bytes().any(is_forbidden);
            prop_assert_eq!(file == name, is_plain);
        }
    }
}
