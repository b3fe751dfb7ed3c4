//! `overflow_report_….html`: the answer, the ranks side by side in time with what passed between them, and tables.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter};

use msprobe_dump::hash::FastMap;
use msprobe_report::{
    Block, Cell, Lane, Link, Mark, Node, Page, PageTable, SheetRows, Span, Timeline, Tone, Tree, VecRows,
};

use crate::causes::Cause;
use crate::findings::{Finding, record_at};
use crate::links::At;
use crate::outcome::Outcome;
use crate::outcome::text::{frames_to_show, said};
use crate::record::{Kinds, Record, Role};

/// Marks per lane; more cannot be told apart.
const MOST_MARKS: usize = 200;

/// Up to so many lanes, arrivals after the first are drawn: so many of each lane.
const LANES_WITH_ROOM: usize = 8;
const LATER_ARRIVALS: usize = 20;

/// Writes the page.
pub(crate) fn write_page(outcome: &Outcome, file: &mut File) -> io::Result<()> {
    let origins = VecRows::new(outcome.origins.iter().map(origin_row).collect());
    let ranks = VecRows::new(rank_rows(outcome));
    let warnings = VecRows::new(warning_rows(outcome));
    let harmless = VecRows::new(harmless_rows(outcome));
    let chain = VecRows::new(chain_rows(outcome));
    let title = format!("Overflow report of {}", outcome.step.display());
    let answer = outcome.answer().block(&title, facts(outcome));
    let timeline = Drawing::of(outcome).timeline;
    let spread = spread_tree(&timeline);
    let mut blocks = vec![Block::Answer(answer), Block::Timeline(timeline)];
    if !spread.nodes.is_empty() {
        blocks.push(Block::Tree(spread));
    }
    let mut add = |name: &str, headers: &[&str], rows, detail_columns: &[usize]| {
        let headers = headers.iter().map(|&header| header.to_owned()).collect();
        let detail_columns = detail_columns.to_vec();
        blocks.push(Block::Table(PageTable { detail_columns, ..PageTable::new(name, headers, rows) }));
    };
    add("Origins", &ORIGIN_HEADERS, &origins as &dyn SheetRows, &[6, 7, 8]);
    add("Spread", &["origin", "rank", "operation", "how"], &chain, &[]);
    add("Ranks", &["rank", "level", "records", "not finite", "first", "came by", "from rank"], &ranks, &[]);
    add("Early warnings", &["rank", "operation", "danger", "text"], &warnings, &[]);
    add("Harmless", &["rule", "rank", "operation", "records"], &harmless, &[]);
    msprobe_report::write_page(&Page { title, blocks }, BufWriter::new(file))
}

const ORIGIN_HEADERS: [&str; 9] =
    ["rank", "operation", "kind", "values", "phase", "parameter", "reason", "modules", "call stack"];

fn facts(outcome: &Outcome) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Ranks".to_owned(), outcome.ranks.len().to_string()),
        ("Origins".to_owned(), (outcome.origins.len() + outcome.more_origins()).to_string()),
        ("Communications".to_owned(), outcome.links.len().to_string()),
    ];
    facts.extend(outcome.problems.iter().map(|problem| ("Problem".to_owned(), problem.clone())));
    facts
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

fn origin_row(origin: &Finding) -> Vec<Cell> {
    vec![
        Cell::Int(origin.rank.into()),
        text(origin.operation.clone()),
        text(origin.kind.as_str()),
        text(said(origin.values)),
        text(if origin.is_backward { "backward" } else { "forward" }),
        text(origin.parameter.clone().unwrap_or_default()),
        text(origin.reason.clone()),
        text(origin.modules.join("\n")),
        text(origin.stack.join("\n")),
    ]
}

fn rank_rows(outcome: &Outcome) -> Vec<Vec<Cell>> {
    let ranks = outcome.ranks.iter();
    ranks
        .map(|rank| {
            let spread = outcome.spread.iter().find(|spread| spread.rank == rank.rank);
            let from = spread.and_then(|spread| spread.from_rank);
            vec![
                Cell::Int(rank.rank.into()),
                text(rank.level.clone()),
                Cell::Int(rank.records as i128),
                Cell::Int(rank.anomalies as i128),
                text(rank.first_anomaly.clone().unwrap_or_default()),
                text(spread.and_then(|spread| spread.via.clone()).unwrap_or_default()),
                from.map_or(Cell::Empty, |from| Cell::Int(from.into())),
            ]
        })
        .collect()
}

fn chain_rows(outcome: &Outcome) -> Vec<Vec<Cell>> {
    let hops = outcome.origins.iter().flat_map(|origin| origin.chain.iter().map(move |hop| (origin, hop)));
    hops.map(|(origin, hop)| {
        let origin = format!("rank {} {}", origin.rank, origin.operation);
        vec![text(origin), Cell::Int(hop.rank.into()), text(hop.operation.clone()), text(hop.how)]
    })
    .collect()
}

fn warning_rows(outcome: &Outcome) -> Vec<Vec<Cell>> {
    outcome
        .all_warnings()
        .map(|(rank, warning, operation, sentence)| {
            vec![Cell::Int(rank.into()), text(operation), text(warning.danger.as_str()), text(sentence)]
        })
        .collect()
}

fn harmless_rows(outcome: &Outcome) -> Vec<Vec<Cell>> {
    let excused = outcome.harmless().iter();
    excused
        .filter_map(|excused| {
            let (rank, name) = outcome.excused_name(excused)?;
            let rule = text(excused.rule.as_str());
            Some(vec![rule, Cell::Int(rank.into()), text(name), Cell::Int(excused.count as i128)])
        })
        .collect()
}

/// Where a mark stands: its lane, and its place there.
type MarkAt = (usize, usize);

/// How it went on from each origin, along the links of the timeline: what a record gave to others stands below it. Where
/// several gave, it stands below the one that is fewest steps from an origin.
fn spread_tree(timeline: &Timeline) -> Tree {
    let mut heads: FastMap<MarkAt, Vec<&Link>> = FastMap::default();
    for link in &timeline.links {
        heads.entry(link.from).or_default().push(link);
    }
    let given: HashSet<MarkAt> = timeline.links.iter().map(|link| link.to).collect();
    let mark = |(lane, mark): MarkAt| &timeline.lanes[lane].marks[mark];
    let mut waiting: Vec<(MarkAt, Option<(usize, &Link)>)> = timeline
        .lanes
        .iter()
        .enumerate()
        .flat_map(|(lane, of)| (0..of.marks.len()).map(move |mark| (lane, mark)))
        .filter(|&place| mark(place).is_origin || (heads.contains_key(&place) && !given.contains(&place)))
        .map(|place| (place, None))
        .collect();
    waiting.sort_by_key(|&(place, _)| mark(place).at);
    let mut seen: HashSet<MarkAt> = waiting.iter().map(|&(place, _)| place).collect();
    let mut nodes: Vec<Node> = Vec::new();
    let mut next = 0;
    // Level by level, so that parents stand before their children.
    while let Some(&(place, by)) = waiting.get(next) {
        next += 1;
        let (lane, of) = (&timeline.lanes[place.0], mark(place));
        nodes.push(Node {
            parent: by.map(|(parent, _)| parent),
            tone: of.tone,
            label: of.label.clone(),
            note: match by {
                Some((_, link)) if link.from.0 != link.to.0 => {
                    format!("{}, {} from {}", lane.name, link.label, timeline.lanes[link.from.0].name)
                }
                Some((_, link)) => format!("{}, {}", lane.name, link.label),
                None if of.is_origin => format!("{}, origin", lane.name),
                None => lane.name.clone(),
            },
            detail: of.detail.clone(),
        });
        let parent = nodes.len() - 1;
        for &link in heads.get(&place).into_iter().flatten() {
            if seen.insert(link.to) {
                waiting.push((link.to, Some((parent, link))));
            }
        }
    }
    Tree {
        title: "Spread by origin".to_owned(),
        note: "What is not finite, below what it came from.".to_owned(),
        nodes,
    }
}

/// The timeline while it is made.
struct Drawing<'a> {
    outcome: &'a Outcome,
    /// Where each layer of time begins.
    layers: BTreeMap<u32, u64>,
    /// Marks that are there: their number on their lane.
    marks: FastMap<At, usize>,
    timeline: Timeline,
}

impl<'a> Drawing<'a> {
    fn of(outcome: &'a Outcome) -> Drawing<'a> {
        let mut drawing = Drawing {
            outcome,
            layers: layers(outcome),
            marks: FastMap::default(),
            timeline: Timeline {
                title: "Ranks in time".to_owned(),
                note: "Time is counted in records; communication that belongs together stands at one time."
                    .to_owned(),
                legend: vec![
                    (Tone::Bad, "not finite".to_owned()),
                    (Tone::Warning, "not finite, but harmless".to_owned()),
                    (Tone::Good, "finite".to_owned()),
                ],
                ..Timeline::default()
            },
        };
        drawing.add_lanes();
        let origins = outcome.picture.origins.iter();
        for origin in origins.clone() {
            drawing.mark(origin.at, true);
        }
        for origin in origins {
            for pair in origin.chain.windows(2) {
                drawing.link(pair[0], pair[1]);
            }
        }
        for arrival in &outcome.picture.arrivals {
            match arrival.from {
                Some(from) => drawing.link(from, arrival.at),
                None => drawing.mark(arrival.at, false),
            }
        }
        drawing.add_later_arrivals();
        for excused in &outcome.picture.excused {
            drawing.mark(excused.at, false);
        }
        drawing
    }

    fn time(&self, at: At) -> u64 {
        let (layer, records) = self.outcome.links.time(at);
        self.layers.get(&layer).copied().unwrap_or(0) + u64::from(records)
    }

    fn add_lanes(&mut self) {
        let mut lanes = Vec::new();
        for (index, summary) in self.outcome.ranks.iter().enumerate() {
            let rank = index as u32;
            // The gradients of parameters stand where their module was called, long before they were made.
            let is_in_place = |record: &u32| {
                record_at(&self.outcome.dumps, At { rank, record: *record })
                    .is_some_and(|(_, record)| !record.is_parameter_gradient())
            };
            let polluted: Vec<u32> = self.outcome.picture.polluted(rank).filter(is_in_place).collect();
            let time = |record: u32| self.time(At { rank, record });
            let end = time(summary.records.saturating_sub(1) as u32) + 1;
            let first = polluted.iter().map(|record| time(*record)).min();
            let last = polluted.iter().map(|record| time(*record) + 1).max();
            let mut spans = Vec::new();
            let mut add = |from: u64, to: u64, tone, label: String| {
                if from < to {
                    spans.push(Span { from, to, tone, label });
                }
            };
            match (first, last) {
                (Some(first), Some(last)) => {
                    add(0, first, Tone::Good, "all finite".to_owned());
                    add(first, last, Tone::Bad, format!("{} records are not finite", summary.anomalies));
                    add(last, end, Tone::Good, "all finite".to_owned());
                }
                _ => add(0, end, Tone::Good, "all finite".to_owned()),
            }
            let note = format!("{} records, {} not finite", summary.records, summary.anomalies);
            lanes.push(Lane {
                name: format!("rank {}", summary.rank),
                length: end,
                note,
                spans,
                marks: Vec::new(),
            });
        }
        self.timeline.lanes = lanes;
    }

    /// Ranks go on giving to each other what is not finite. That tells little that is new: some of it, where there is room.
    fn add_later_arrivals(&mut self) {
        let picture = &self.outcome.picture;
        let lanes = self.timeline.lanes.len();
        if lanes > LANES_WITH_ROOM {
            return;
        }
        for rank in 0..lanes as u32 {
            let arrived = picture.polluted(rank).filter_map(|record| {
                let at = At { rank, record };
                match picture.cause(at) {
                    Some(Cause::Arrived(from)) => Some((from, at)),
                    _ => None,
                }
            });
            for (from, at) in arrived.take(LATER_ARRIVALS) {
                self.link(from, at);
            }
        }
    }

    fn mark(&mut self, at: At, is_origin: bool) {
        if self.marks.contains_key(&at) {
            return;
        }
        let time = self.time(at);
        let Some((_, record)) = record_at(&self.outcome.dumps, at) else { return };
        let Some(lane) = self.timeline.lanes.get_mut(at.rank as usize) else { return };
        if lane.marks.len() >= MOST_MARKS {
            return;
        }
        let cause = self.outcome.picture.cause(at);
        let is_harmless = matches!(cause, Some(Cause::Harmless(_)));
        let origin = self.outcome.origins.iter().find(|origin| {
            is_origin
                && *origin.operation == *record.name
                && origin.rank == self.outcome.dumps[at.rank as usize].dir.rank
        });
        self.marks.insert(at, lane.marks.len());
        lane.marks.push(Mark {
            at: time,
            tone: if is_harmless { Tone::Warning } else { Tone::Bad },
            label: record.name.to_string(),
            detail: detail(record, cause, origin),
            is_origin,
        });
    }

    fn link(&mut self, from: At, to: At) {
        self.mark(from, false);
        self.mark(to, false);
        let (Some(&first), Some(&second)) = (self.marks.get(&from), self.marks.get(&to)) else { return };
        let ends = ((from.rank as usize, first), (to.rank as usize, second));
        if self.timeline.links.iter().any(|link| (link.from, link.to) == ends) {
            return;
        }
        let is_sure = !matches!(self.outcome.picture.cause(to), Some(Cause::Spread { sure: false, .. }));
        self.timeline.links.push(Link {
            from: ends.0,
            to: ends.1,
            tone: if is_sure { Tone::Bad } else { Tone::Warning },
            label: if from.rank == to.rank { "spread" } else { "arrived" }.to_owned(),
        });
    }
}

/// Where layers of time begin: each is as long as the rank with the most records in it.
fn layers(outcome: &Outcome) -> BTreeMap<u32, u64> {
    let mut lengths: BTreeMap<u32, u64> = BTreeMap::new();
    for (rank, dump) in outcome.dumps.iter().enumerate() {
        for record in 0..dump.records.len() as u32 {
            let (layer, records) = outcome.links.time(At { rank: rank as u32, record });
            let length = lengths.entry(layer).or_default();
            *length = (*length).max(u64::from(records) + 1);
        }
    }
    let mut begin = 0;
    lengths
        .into_iter()
        .map(|(layer, length)| {
            let here = begin;
            begin += length;
            (layer, here)
        })
        .collect()
}

fn detail(record: &Record, cause: Option<Cause>, origin: Option<&Finding>) -> String {
    let holds = |role| match record.kinds(role) {
        Kinds::NONE => "finite".to_owned(),
        kinds => said(kinds),
    };
    let mut lines =
        vec![format!("inputs: {}", holds(Role::Input)), format!("outputs: {}", holds(Role::Output))];
    if !record.kinds(Role::Parameter).is_finite() {
        lines.push(format!("parameters: {}", holds(Role::Parameter)));
    }
    if let Some(Cause::Harmless(rule)) = cause {
        lines.push(format!("harmless: {}", rule.description()));
    }
    if let Some(origin) = origin {
        lines.insert(0, origin.reason.clone());
        lines.extend(frames_to_show(&origin.stack).into_iter().next().cloned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(label: &str, at: u64, is_origin: bool) -> Mark {
        Mark { at, tone: Tone::Bad, label: label.into(), detail: String::new(), is_origin }
    }

    fn link(from: (usize, usize), to: (usize, usize), label: &str) -> Link {
        Link { from, to, tone: Tone::Bad, label: label.into() }
    }

    #[test]
    fn what_was_given_stands_below_its_giver_once() {
        let lane = |name: &str, marks| Lane { name: name.into(), marks, ..Lane::default() };
        let timeline = Timeline {
            lanes: vec![
                lane("rank 0", vec![mark("made", 1, true), mark("sent", 2, false)]),
                lane("rank 1", vec![mark("received", 3, false), mark("harmless", 4, false)]),
            ],
            // The last one closes a loop, as collectives do.
            links: vec![
                link((0, 0), (0, 1), "spread"),
                link((0, 1), (1, 0), "arrived"),
                link((0, 0), (1, 0), "arrived"),
                link((1, 0), (0, 1), "arrived"),
            ],
            ..Timeline::default()
        };
        let nodes: Vec<(Option<usize>, String, String)> = spread_tree(&timeline)
            .nodes
            .into_iter()
            .map(|node| (node.parent, node.label, node.note))
            .collect();
        let expected = [
            (None, "made", "rank 0, origin"),
            (Some(0), "sent", "rank 0, spread"),
            (Some(0), "received", "rank 1, arrived from rank 0"),
        ];
        let expected = expected.map(|(parent, label, note)| (parent, label.to_owned(), note.to_owned()));
        assert_eq!(nodes, expected);
    }
}
