//! Vocabularies that are padded, so that each rank has as many words: two sides that share the words of one vocabulary among
//! other numbers of ranks have tensors of other sizes.

use super::judge::Sides;

/// A vocabulary that has other sizes on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Padding {
    /// Its size on the target side.
    pub(super) own: u64,
    /// Its size on the golden side.
    pub(super) other: u64,
}

impl Padding {
    /// What is said of a value that has it.
    pub(super) fn sentence(self, place: &str, is_judged: bool) -> String {
        let Padding { own, other } = self;
        let end = if is_judged {
            "its padding is zero, and it is compared without it"
        } else {
            "its padding is not zero, statistics cannot tell what it is without it, and it is not judged"
        };
        format!("The vocabulary of {place} is padded to {own} here and to {other} on the golden side: {end}.")
    }
}

/// The sizes of a vocabulary where two shapes differ by its padding alone.
pub(super) fn padding(own: &[u64], other: &[u64], sides: Sides<'_>) -> Option<Padding> {
    let mut differing = own.iter().zip(other).filter(|(one, two)| one != two);
    let (&one, &two) = differing.next()?;
    if own.len() != other.len() || differing.next().is_some() {
        return None;
    }
    let multiple = sides.classes.vocabulary_multiple;
    let units = [sides.target, sides.golden].map(|strategy| multiple.saturating_mul(u64::from(strategy.tp)));
    can_be_one_vocabulary((one, units[0]), (two, units[1])).then_some(Padding { own: one, other: two })
}

/// Whether some number of words is padded to both sizes. A size that is no multiple of its unit is not padded.
fn can_be_one_vocabulary(one: (u64, u64), two: (u64, u64)) -> bool {
    let words = |(size, unit): (u64, u64)| {
        let unit = if unit > 0 && size.is_multiple_of(unit) { unit } else { 1 };
        (size.saturating_sub(unit - 1), size)
    };
    let ((least, most), (other_least, other_most)) = (words(one), words(two));
    least.max(other_least) <= most.min(other_most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_of_one_vocabulary_if_some_number_of_words_is_padded_to_both() {
        // GPT-2 has 50257 words: 50304 for one or two ranks, 50688 for four.
        assert!(can_be_one_vocabulary((50304, 128), (50688, 512)));
        assert!(can_be_one_vocabulary((50304, 128), (50257, 128)));
        assert!(can_be_one_vocabulary((50257, 128), (50257, 256)));
        // Nobody pads by a whole unit, nor what is no multiple of it.
        assert!(!can_be_one_vocabulary((50304, 128), (50432, 128)));
        assert!(!can_be_one_vocabulary((50257, 128), (50300, 128)));
        assert!(!can_be_one_vocabulary((1024, 128), (2048, 128)));
    }
}
