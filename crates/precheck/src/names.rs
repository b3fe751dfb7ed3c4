//! Names of calls as the pre-check takes them apart, which is not how a dump does: the kind has no dots, and the name one at
//! most.

/// What all seeds begin with: the one seed of the reference.
const SEED: u64 = 1234;

/// `Torch.exp.0`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `Torch`
    pub kind: String,
    /// `exp`, `a.b`
    pub name: String,
    /// `0`
    pub index: String,
}

impl Call {
    /// Nothing of a name with other than three or four segments.
    pub fn parse(full_name: &str) -> Option<Call> {
        let segments: Vec<&str> = full_name.split('.').collect();
        let (kind, name, index) = match segments.as_slice() {
            [kind, name, index] => (kind, (*name).to_owned(), index),
            [kind, outer, name, index] => (kind, format!("{outer}.{name}"), index),
            _ => return None,
        };
        Some(Call { kind: (*kind).to_owned(), name, index: (*index).to_owned() })
    }

    /// Bits that random inputs are made from: the same whatever ran before.
    pub fn seed(full_name: &str) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(full_name.as_bytes(), SEED) >> 1
    }
}

/// Whether a name could be taken for a formula of a sheet, as the reference sees it.
pub(crate) fn is_injection(text: &str) -> bool {
    let is_sign =
        |character: char| matches!(character, '=' | '+' | '-' | '%' | '@' | '＝' | '＋' | '－' | '％' | '＠');
    let starts = std::iter::once(text).chain(text.split([';', '；']).skip(1));
    starts.into_iter().any(|part| part.starts_with(is_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_segments_or_four() {
        let call = |name| Call::parse(name).map(|call| (call.kind, call.name, call.index));
        assert_eq!(call("Torch.exp.0"), Some(("Torch".into(), "exp".into(), "0".into())));
        assert_eq!(call("Torch.a.b.2"), Some(("Torch".into(), "a.b".into(), "2".into())));
        assert_eq!(call("Torch.a.b.c.0"), None);
        assert_eq!(call("x"), None);
    }

    #[test]
    fn what_starts_like_a_formula() {
        for text in ["=1", "+a", "a;=b", "＝x", "@f", "a；－b"] {
            assert!(is_injection(text), "{text}");
        }
        for text in ["Torch.exp.0", "a=b", "a;b", ""] {
            assert!(!is_injection(text), "{text}");
        }
    }

    #[test]
    fn seeds_differ_by_name_alone() {
        assert_eq!(Call::seed("Torch.exp.0"), Call::seed("Torch.exp.0"));
        assert_ne!(Call::seed("Torch.exp.0"), Call::seed("Torch.exp.1"));
        assert!(Call::seed("Torch.exp.0") < 1 << 63);
    }
}
