//! How ranks share the work: how many for what, in which order they are numbered, and which of them belong together.

use msprobe_report::error::{Code, CompareError};

/// The order of dimensions, unless the user says otherwise: the first one changes fastest.
pub const DEFAULT_ORDER: &str = "tp-cp-ep-dp-pp";

/// How the ranks of one side share the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategy {
    /// How many ranks there are.
    pub rank_size: u32,
    /// Ranks that share each tensor.
    pub tp: u32,
    /// Stages of layers.
    pub pp: u32,
    /// Chunks of layers on each stage.
    pub vpp: u32,
    /// Ranks that share each sequence.
    pub cp: u32,
    /// Ranks that share the experts.
    pub ep: u32,
    /// The order of dimensions.
    pub order: String,
}

/// A dimension along which ranks are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Tensors are split.
    Tensor,
    /// Sequences are split.
    Context,
    /// Experts are split.
    Expert,
    /// Layers are split.
    Pipeline,
}

impl Dimension {
    fn word(self) -> &'static str {
        match self {
            Dimension::Tensor => "tp",
            Dimension::Context => "cp",
            Dimension::Expert => "ep",
            Dimension::Pipeline => "pp",
        }
    }

    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Tensor => "tensor parallelism(TP)",
            Dimension::Context => "context parallelism(CP)",
            Dimension::Expert => "expert parallelism(EP)",
            Dimension::Pipeline => "pipeline parallelism(PP)",
        }
    }
}

fn wrong(message: String, hint: &str) -> CompareError {
    CompareError::new(Code::InvalidParam, message).with_hint(hint)
}

impl Strategy {
    /// Only what makes sense.
    pub fn check(&self) -> Result<(), CompareError> {
        let sizes = [
            ("rank_size", self.rank_size),
            ("tp", self.tp),
            ("pp", self.pp),
            ("vpp", self.vpp),
            ("cp", self.cp),
            ("ep", self.ep),
        ];
        for (name, size) in sizes {
            if size == 0 {
                return Err(wrong(format!("{name} is 0"), "give a whole number above 0"));
            }
            if matches!(name, "tp" | "pp" | "cp" | "ep")
                && (size > self.rank_size || !self.rank_size.is_multiple_of(size))
            {
                let message = format!("{name} is {size}, which does not divide rank_size {}", self.rank_size);
                return Err(wrong(message, "the ranks are shared out evenly: tp and pp divide rank_size"));
            }
        }
        let product = [self.tp, self.pp, self.cp].iter().try_fold(1_u32, |all, one| all.checked_mul(*one));
        if product.is_none_or(|product| product > self.rank_size || !self.rank_size.is_multiple_of(product)) {
            let message = format!(
                "tp {} times pp {} times cp {} does not divide rank_size {}",
                self.tp, self.pp, self.cp, self.rank_size
            );
            return Err(wrong(message, "tp times pp times cp divides rank_size"));
        }
        if !self.replicas().is_multiple_of(self.ep) {
            let message =
                format!("ep is {}, which does not divide the {} replicas", self.ep, self.replicas());
            return Err(wrong(message, "replicas share the experts: ep divides rank_size / (tp * pp * cp)"));
        }
        if self.vpp > 1 && self.pp < 2 {
            return Err(wrong(
                format!("vpp is {} with pp {}", self.vpp, self.pp),
                "vpp above 1 needs pp of 2 or more",
            ));
        }
        self.check_order()
    }

    fn check_order(&self) -> Result<(), CompareError> {
        let bad = |why: &str| {
            Err(wrong(
                format!("the order {} {why}", self.order),
                "give dimensions joined by dashes, such as tp-cp-ep-dp-pp",
            ))
        };
        if self.order.is_empty() || !self.order.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        {
            return bad("has other characters than a to z and -");
        }
        let words: Vec<&str> = self.order.split('-').collect();
        let mut seen: Vec<&str> = Vec::new();
        for word in &words {
            if !["tp", "cp", "ep", "dp", "pp"].contains(word) {
                return bad(&format!("has the unknown dimension {word:?}"));
            }
            if seen.contains(word) {
                return bad(&format!("has {word} twice"));
            }
            seen.push(word);
        }
        let at = |wanted: &str| words.iter().position(|word| *word == wanted);
        if let (Some(expert), dp) = (at("ep"), at("dp"))
            && dp.is_none_or(|dp| dp.abs_diff(expert) != 1)
        {
            return bad("has ep and dp apart");
        }
        for (word, size) in [("tp", self.tp), ("pp", self.pp), ("cp", self.cp), ("dp", self.replicas())] {
            if size > 1 && at(word).is_none() {
                return bad(&format!("lacks {word}, of which there are {size}"));
            }
        }
        Ok(())
    }

    /// Replicas: graphs that are left when all else is merged.
    pub fn replicas(&self) -> u32 {
        self.rank_size / (self.tp * self.pp * self.cp)
    }

    fn size(&self, word: &str) -> u32 {
        match word {
            "tp" => self.tp,
            "pp" => self.pp,
            "cp" => self.cp,
            // Experts are shared by replicas.
            "dp" => self.replicas(),
            _ => 1,
        }
    }

    /// The number of a rank along each dimension of the order.
    fn coordinates(&self, rank: u32) -> Coordinates<'_> {
        let mut rest = rank;
        let coordinate = |word| {
            let size = self.size(word).max(1);
            let own = rest % size;
            rest /= size;
            (word, own)
        };
        self.order.split('-').map(coordinate).collect()
    }

    /// Ranks that differ along one dimension only, in order.
    pub fn groups(&self, dimension: Dimension) -> Vec<Vec<u32>> {
        let word = dimension.word();
        let mut groups: Vec<(Coordinates<'_>, Vec<u32>)> = Vec::new();
        for rank in 0..self.rank_size {
            let own = self.coordinates(rank).into_iter();
            let rest: Coordinates<'_> = if dimension == Dimension::Expert {
                // Replicas next to each other share the experts.
                own.map(|(name, at)| (name, if name == "dp" { at / self.ep } else { at })).collect()
            } else {
                own.filter(|(name, _)| *name != word).collect()
            };
            match groups.iter_mut().find(|(known, _)| *known == rest) {
                Some((_, ranks)) => ranks.push(rank),
                None => groups.push((rest, vec![rank])),
            }
        }
        groups.into_iter().map(|(_, ranks)| ranks).collect()
    }
}

/// Where a rank stands along each dimension.
type Coordinates<'o> = Vec<(&'o str, u32)>;

/// How both sides share the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategies {
    /// The target.
    pub target: Strategy,
    /// The golden side.
    pub golden: Option<Strategy>,
    /// Classes of modules that share tensors.
    pub classes: super::classes::Classes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(rank_size: u32, tp: u32, pp: u32) -> Strategy {
        Strategy { rank_size, tp, pp, vpp: 1, cp: 1, ep: 1, order: DEFAULT_ORDER.to_owned() }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(strategy(8, 2, 2).check().is_ok());
        let refused = |change: fn(&mut Strategy)| {
            let mut one = strategy(8, 2, 2);
            change(&mut one);
            one.check().unwrap_err().message
        };
        assert!(refused(|one| one.tp = 0).contains("tp is 0"));
        assert!(refused(|one| one.tp = 3).contains("does not divide"));
        assert!(refused(|one| one.pp = 16).contains("does not divide"));
        assert!(refused(|one| (one.tp, one.pp) = (4, 4)).contains("tp 4 times pp 4"));
        assert!(refused(|one| (one.pp, one.vpp) = (1, 2)).contains("vpp is 2"));
        assert!(refused(|one| one.order = "tp_pp".to_owned()).contains("other characters"));
        assert!(refused(|one| one.order = "tp-xx".to_owned()).contains("unknown"));
        assert!(refused(|one| one.order = "tp-tp".to_owned()).contains("twice"));
        assert!(refused(|one| one.order = "tp-ep-pp-dp".to_owned()).contains("apart"));
        assert!(refused(|one| one.order = "tp-ep-dp".to_owned()).contains("lacks pp"));
        assert!(refused(|one| one.order = "tp-cp-pp".to_owned()).contains("lacks dp"));
        assert!(refused(|one| one.ep = 4).contains("does not divide the 2 replicas"));
    }

    #[test]
    fn ranks_are_numbered_in_the_order_of_dimensions() {
        let one = strategy(8, 2, 2);
        assert_eq!(one.groups(Dimension::Tensor), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(one.groups(Dimension::Pipeline), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        let other = Strategy { order: "pp-dp-tp".to_owned(), ..strategy(8, 2, 2) };
        assert_eq!(other.groups(Dimension::Tensor), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        let experts = Strategy { ep: 2, ..strategy(8, 2, 1) };
        assert_eq!(experts.groups(Dimension::Expert), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        let context = Strategy { cp: 2, ..strategy(8, 2, 1) };
        assert_eq!(context.groups(Dimension::Context), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    }
}
