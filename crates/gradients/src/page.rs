//! `similarities.html`: the verdict, the curves with the worst first, and a table of all of them.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use msprobe_report::{
    Block, Cell, CellSink, CurveSeries, Curves, Limit, Page, PageTable, SheetRows, Tone, VecRows,
};

use super::agreement::Agreement;
use super::outcome::{Outcome, RankOutcome, short};
use super::table::SUMMARY;
use super::verdict::Curve;

/// Curves a page can hold without becoming slow. The best ones are left out.
const MOST_CURVES: usize = 20_000;

const HEADERS: [&str; 8] = [
    "rank",
    "parameter",
    "flagged steps",
    "lowest similarity",
    "worst step",
    "largest fall",
    "at step",
    "steps compared",
];

/// One curve of the page.
struct Entry<'a> {
    rank: &'a RankOutcome,
    /// With the rank where there are several.
    label: String,
    name: &'a str,
    curve: &'a Curve,
    agreements: &'a [Option<Agreement>],
}

struct Entries<'a> {
    all: Vec<Entry<'a>>,
    /// Steps of all ranks.
    steps: Vec<u64>,
}

/// Writes the page; `sides` are the two paths that were compared.
pub(super) fn write_page(outcome: &Outcome, sides: [&Path; 2], file: &mut File) -> io::Result<()> {
    let mut entries = Entries::of(outcome);
    let left_out = entries.all.len().saturating_sub(MOST_CURVES);
    entries.all.truncate(MOST_CURVES);
    let failures: Vec<Vec<Cell>> =
        outcome.failures.iter().map(|failure| vec![Cell::Text(failure.clone())]).collect();
    let tones = vec![Tone::Warning; failures.len()];
    let failures = VecRows::coloured(failures, tones);
    let thresholds = outcome.thresholds;
    let besides = outcome.besides();
    let mut facts = Vec::from_iter((!besides.is_empty()).then(|| ("Besides".to_owned(), besides.join("\n"))));
    facts.extend([
        ("First run".to_owned(), sides[0].display().to_string()),
        ("Second run".to_owned(), sides[1].display().to_string()),
        (
            "Rule".to_owned(),
            format!(
                "suspicious is a curve that begins below {}, falls by more than {} from one step to the next, sinks by more \
                 than {} since its first steps, or comes below {}",
                thresholds.first, thresholds.fall, thresholds.total, thresholds.floor
            ),
        ),
    ]);
    facts.extend(outcome.noise_text().map(|noise| ("Noise".to_owned(), noise)));
    if left_out > 0 {
        facts.push(("Left out".to_owned(), format!("{left_out} curves without anything suspicious")));
    }
    let title = "msprobe: directions of gradients of two runs".to_owned();
    let answer = outcome.answer().block(&title, facts);
    let parameters = PageTable {
        hidden_columns: if outcome.ranks.len() > 1 { Vec::new() } else { vec![0] },
        ..PageTable::new("Parameters", HEADERS.map(str::to_owned).to_vec(), &entries)
    };
    let failures = PageTable::new("Not compared", vec!["what".to_owned()], &failures);
    let curves = Curves {
        title: "Similarity of each parameter, worst first".to_owned(),
        x_label: "steps".to_owned(),
        xs: entries.steps.iter().map(|&step| i64::try_from(step).unwrap_or(i64::MAX)).collect(),
        series: &entries,
    };
    let blocks =
        vec![Block::Answer(answer), Block::Curves(curves), Block::Table(parameters), Block::Table(failures)];
    msprobe_report::write_page(&Page { title, blocks }, BufWriter::new(file))
}

impl<'a> Entries<'a> {
    /// All parameters together first, then each, worst first: flagged ones, then by the lowest similarity.
    fn of(outcome: &'a Outcome) -> Entries<'a> {
        let several = outcome.ranks.len() > 1;
        let entry = |rank: &'a RankOutcome,
                     name: &'a str,
                     curve: &'a Curve,
                     agreements: &'a [Option<Agreement>]| Entry {
            rank,
            label: match rank.rank {
                Some(number) if several => format!("rank {number}: {name}"),
                _ => name.to_owned(),
            },
            name,
            curve,
            agreements,
        };
        let mut all: Vec<Entry<'_>> = outcome
            .ranks
            .iter()
            .map(|rank| entry(rank, SUMMARY, &rank.verdict.summary, &rank.similarities.summary))
            .collect();
        let mut parameters: Vec<Entry<'_>> = outcome
            .ranks
            .iter()
            .flat_map(|rank| rank.verdict.worst_first().into_iter().map(move |index| (rank, index)))
            .map(|(rank, index)| {
                let (similarities, verdict) = (&rank.similarities, &rank.verdict);
                let agreements = &similarities.agreements[index];
                entry(rank, &similarities.parameters[index], &verdict.curves[index], agreements)
            })
            .collect();
        parameters.sort_by(|a, b| a.curve.worse_first(b.curve));
        all.append(&mut parameters);
        let mut steps: Vec<u64> =
            outcome.ranks.iter().flat_map(|rank| rank.similarities.steps.iter().copied()).collect();
        steps.sort_unstable();
        steps.dedup();
        Entries { all, steps }
    }

    /// Where a step of a rank stands among all.
    fn place(&self, entry: &Entry<'_>, position: usize) -> Option<usize> {
        let step = entry.rank.similarities.steps.get(position)?;
        self.steps.binary_search(step).ok()
    }
}

impl CurveSeries for Entries<'_> {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn name(&self, index: usize) -> &str {
        &self.all[index].label
    }

    fn note(&self, index: usize) -> String {
        let entry = &self.all[index];
        let lowest = match entry.curve.lowest {
            Some((step, value)) => format!("lowest {} at step {}", short(value), entry.rank.step(step)),
            None => return "nothing to compare".to_owned(),
        };
        let note = entry.curve.note(&entry.rank.similarities.steps);
        let reason = if note.is_empty() { note } else { format!("{note}; ") };
        match entry.curve.largest_fall {
            Some((step, fall)) => {
                format!("{reason}{lowest}, largest fall {fall:.4} at step {}", entry.rank.step(step))
            }
            None => format!("{reason}{lowest}"),
        }
    }

    fn tone(&self, index: usize) -> Tone {
        let entry = &self.all[index];
        if !entry.curve.flags.is_empty() {
            Tone::Bad
        } else if entry.agreements.iter().any(Option::is_none) {
            Tone::Warning
        } else {
            Tone::Good
        }
    }

    fn values(&self, index: usize) -> Vec<f64> {
        let entry = &self.all[index];
        let mut values = vec![f64::NAN; self.steps.len()];
        for (position, agreement) in entry.agreements.iter().enumerate() {
            if let (Some(place), Some(value)) =
                (self.place(entry, position), agreement.and_then(Agreement::similarity))
            {
                values[place] = value;
            }
        }
        values
    }

    fn flagged(&self, index: usize) -> Vec<usize> {
        let entry = &self.all[index];
        entry.curve.flags.iter().filter_map(|(position, _)| self.place(entry, *position)).collect()
    }

    /// Where a curve has to begin holds for its beginning alone; what it must not come below holds for all of it.
    fn limits(&self, index: usize) -> Vec<Limit> {
        let entry = &self.all[index];
        let last = entry.rank.similarities.steps.len().checked_sub(1);
        let places = entry
            .curve
            .beginning
            .and_then(|(start, _)| Some((self.place(entry, start)?, self.place(entry, last?)?)));
        let (Some((from, to)), Some(level)) = (places, entry.curve.limit()) else {
            return Vec::new();
        };
        let begins = Limit { from, to: from, value: entry.curve.thresholds.first };
        vec![begins, Limit { from, to, value: level }]
    }
}

impl SheetRows for Entries<'_> {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let entry = &self.all[row];
        let integer = |sink: &mut dyn CellSink, value: Option<u64>| match value {
            Some(value) => sink.integer(value.into()),
            None => sink.empty(),
        };
        integer(sink, entry.rank.rank);
        sink.text(entry.name);
        let flagged = entry
            .curve
            .flags
            .iter()
            .map(|(step, reason)| format!("{} {}", entry.rank.step(*step), reason.as_str()));
        sink.text(&flagged.collect::<Vec<_>>().join(", "));
        for extreme in [entry.curve.lowest, entry.curve.largest_fall] {
            match extreme {
                Some((_, value)) => sink.number(value),
                None => sink.empty(),
            }
            integer(sink, extreme.map(|(step, _)| entry.rank.step(step)));
        }
        sink.integer(entry.agreements.iter().filter(|agreement| agreement.is_some()).count() as i128);
    }

    fn tone(&self, row: usize) -> Tone {
        if self.all[row].curve.flags.is_empty() { Tone::Plain } else { Tone::Bad }
    }
}
