//! A timeline of a page: lanes side by side with marks on them, and links between the marks.
//!
//! It is in the page twice: as JSON for the script that draws it, and as short lists for paper and for readers without
//! scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::escaped;
use crate::{Tone, counted};

/// The lists are for people: more lines than this nobody reads, or prints.
const LINES_PER_LIST: usize = 200;

/// Lanes side by side, with marks on them and links between marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Shown on its tab.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The lanes, in the order in which they are shown. Time is the same for all of them.
    pub lanes: Vec<Lane>,
    /// Links between marks. Those whose ends do not exist, or are the same mark, are left out.
    pub links: Vec<Link>,
    /// What the tones mean.
    pub legend: Vec<(Tone, String)>,
}

/// One line of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// What it is called.
    pub name: String,
    /// How many events it has.
    pub length: u64,
    /// A few words below the name.
    pub note: String,
    /// Stretches of it, which may overlap: a later one is drawn over an earlier one.
    pub spans: Vec<Span>,
    /// Its marks, in any order.
    pub marks: Vec<Mark>,
}

/// A stretch of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// Its colour and thickness.
    pub tone: Tone,
    /// What it says.
    pub label: String,
}

/// A point of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Where it stands, in the time of all lanes.
    pub at: u64,
    /// Its colour and shape.
    pub tone: Tone,
    /// What it is called.
    pub label: String,
    /// More about it, in as many lines as needed; shown when it is chosen.
    pub detail: String,
    /// Whether things begin here: such marks have a shape of their own.
    pub is_origin: bool,
}

/// An arrow between two marks, each given as the number of its lane and its number there. Chains are followed along
/// links only, so that steps within a lane need links too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it begins.
    pub from: (usize, usize),
    /// Where its head is.
    pub to: (usize, usize),
    /// Its colour.
    pub tone: Tone,
    /// What it says.
    pub label: String,
}

impl Timeline {
    fn lane_and_mark(&self, place: (usize, usize)) -> Option<(&Lane, &Mark)> {
        let lane = self.lanes.get(place.0)?;
        Some((lane, lane.marks.get(place.1)?))
    }

    /// Links that can be drawn.
    fn valid_links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| {
            link.from != link.to
                && self.lane_and_mark(link.from).is_some()
                && self.lane_and_mark(link.to).is_some()
        })
    }

    fn mark_count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.marks.len()).sum()
    }

    /// Everything, for the page's program.
    pub(super) fn described(&self) -> Value {
        let links: Vec<Value> = self
            .valid_links()
            .map(|link| {
                let (from, to) = (link.from, link.to);
                json!([from.0, from.1, to.0, to.1, link.tone.as_str(), link.label])
            })
            .collect();
        let legend: Vec<Value> =
            self.legend.iter().map(|(tone, words)| json!([tone.as_str(), words])).collect();
        json!({
            "name": self.title,
            "note": self.note,
            "count": self.mark_count(),
            "lanes": self.lanes.iter().map(Lane::described).collect::<Vec<_>>(),
            "links": links,
            "legend": legend,
        })
    }

    /// The lists: lanes, origins, links.
    pub(super) fn text(&self) -> String {
        let lanes = self.lanes.iter().map(|lane| {
            let (events, marks) = (counted(lane.length as usize, "event"), counted(lane.marks.len(), "mark"));
            let mut line = format!("<b>{}</b>: {events}, {marks}", escaped(&lane.name));
            push_part(&mut line, " – ", &lane.note);
            line
        });
        let mut origins: Vec<(u64, &Lane, &Mark)> = self
            .lanes
            .iter()
            .flat_map(|lane| lane.marks.iter().map(move |mark| (mark.at, lane, mark)))
            .filter(|(.., mark)| mark.is_origin)
            .collect();
        // Equal times stay in the order of the lanes.
        origins.sort_by_key(|&(at, ..)| at);
        let origins = origins.into_iter().map(|(at, lane, mark)| {
            let mut line = format!("{} at {at}", named(lane, mark));
            if !mark.detail.trim().is_empty() {
                let _ = write!(line, "<pre>{}</pre>", escaped(&mark.detail));
            }
            line
        });
        let mut links: Vec<(u64, String)> = self
            .valid_links()
            .filter_map(|link| {
                let (lane, mark) = self.lane_and_mark(link.from)?;
                let (to_lane, to_mark) = self.lane_and_mark(link.to)?;
                let mut line = format!("{} → {}", named(lane, mark), named(to_lane, to_mark));
                push_part(&mut line, " – ", &link.label);
                Some((mark.at, line))
            })
            .collect();
        links.sort_by_key(|&(at, _)| at);
        let counts = [(self.lanes.len(), "lane"), (self.mark_count(), "mark"), (links.len(), "link")]
            .map(|(count, word)| counted(count, word))
            .join(", ");
        let mut text = format!("<section class=\"in-words\">\n<h2>{}</h2>\n", escaped(&self.title));
        for line in [escaped(&self.note), counts] {
            if !line.trim().is_empty() {
                let _ = writeln!(text, "<p>{line}</p>");
            }
        }
        push_list(&mut text, "Origins", origins);
        push_list(&mut text, "Links", links.into_iter().map(|(_, line)| line));
        push_list(&mut text, "Lanes", lanes);
        text.push_str("</section>\n");
        text
    }
}

impl Lane {
    /// `[name,length,note,[[from,to,tone,label],…],[[at,tone,label,detail,origin],…]]`.
    fn described(&self) -> Value {
        let spans: Vec<Value> = self
            .spans
            .iter()
            .map(|span| {
                let (from, to) = (span.from.min(span.to), span.from.max(span.to));
                json!([from, to, span.tone.as_str(), span.label])
            })
            .collect();
        let marks: Vec<Value> = self
            .marks
            .iter()
            .map(|mark| {
                json!([mark.at, mark.tone.as_str(), mark.label, mark.detail, u8::from(mark.is_origin)])
            })
            .collect();
        json!([self.name, self.length, self.note, spans, marks])
    }
}

fn named(lane: &Lane, mark: &Mark) -> String {
    format!("<b>{}</b> {}", escaped(&lane.name), escaped(&mark.label))
}

fn push_part(line: &mut String, before: &str, part: &str) {
    if !part.trim().is_empty() {
        line.push_str(before);
        line.push_str(&escaped(part));
    }
}

/// A heading and its lines, or nothing where there are none. Lines are HTML.
fn push_list(text: &mut String, heading: &str, lines: impl ExactSizeIterator<Item = String>) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    let _ = writeln!(text, "<h3>{heading}</h3>\n<ul>");
    for line in lines.take(LINES_PER_LIST) {
        let _ = writeln!(text, "<li>{line}</li>");
    }
    text.push_str("</ul>\n");
    if count > LINES_PER_LIST {
        let _ = writeln!(text, "<p>and {} more</p>", count - LINES_PER_LIST);
    }
}
