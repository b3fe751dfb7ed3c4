//! Writes a report with a timeline:
//! `cargo run --release -p msprobe-report --example timeline -- FILE [LANES] [EVENTS] [MARKS PER LANE]`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use msprobe_report::{AnswerBlock, Block, Lane, Link, Mark, Page, Span, Timeline, Tone, write_page};

/// Something begins on the first lane and goes from lane to lane; from the last it goes to all others. Every eighth
/// lane hears nothing of it.
fn spread(lanes: usize, events: u64, marks: usize) -> Timeline {
    let step = events / (lanes as u64 + 2).max(4);
    let last = lanes.saturating_sub(1);
    let everywhere = step * (lanes as u64 + 1);
    let mut timeline = Timeline {
        title: "Timeline".into(),
        note: "Time runs to the right; arrows go from lane to lane".into(),
        legend: vec![
            (Tone::Good, "clean".into()),
            (Tone::Warning, "suspicious".into()),
            (Tone::Bad, "affected".into()),
        ],
        ..Timeline::default()
    };
    let mut before = None;
    for number in 0..lanes {
        let reached = step * (number as u64 + 1);
        let mut lane = Lane {
            name: format!("lane {number}"),
            length: events,
            note: format!("{events} events"),
            spans: vec![span(0, reached, Tone::Good, "clean"), span(reached, events, Tone::Bad, "affected")],
            marks: Vec::new(),
        };
        if number % 8 == 7 && number != last {
            lane.spans = vec![span(0, events, Tone::Good, "clean")];
        } else {
            lane.marks.push(mark(reached, Tone::Bad, "arrives", number == 0));
            lane.marks.push(mark(everywhere, Tone::Bad, "comes together", false));
            let tones = [Tone::Bad, Tone::Warning, Tone::Bad, Tone::Good];
            lane.marks.extend((2..marks).map(|index| {
                let at = reached + (events - reached) * (index * index) as u64 / (marks * marks) as u64;
                mark(at, tones[index % 4], &format!("operation {index}"), false)
            }));
            if let Some(before) = before {
                timeline.links.push(link((before, 0), (number, 0), "sent on"));
            }
            before = Some(number);
        }
        timeline.lanes.push(lane);
    }
    timeline.links.extend((0..last).map(|number| link((last, 1), (number, 1), "sent to all")));
    timeline
}

fn span(from: u64, to: u64, tone: Tone, label: &str) -> Span {
    Span { from, to, tone, label: label.into() }
}

fn mark(at: u64, tone: Tone, label: &str, is_origin: bool) -> Mark {
    let detail = format!("{label} at {at}\nas many lines as needed\n  in step, line 42");
    Mark { at, tone, label: label.into(), detail, is_origin }
}

fn link(from: (usize, usize), to: (usize, usize), label: &str) -> Link {
    Link { from, to, tone: Tone::Bad, label: label.into() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("a file to write")?;
    let mut number = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (lanes, events, marks) = (number(4)?, number(500)?, number(6)?);
    let answer = AnswerBlock {
        heading: "A timeline".into(),
        tone: Tone::Bad,
        text: format!("It began on one of {lanes} lanes"),
        facts: Vec::new(),
    };
    let timeline = spread(lanes, events as u64, marks);
    let blocks = vec![Block::Answer(answer), Block::Timeline(timeline)];
    write_page(&Page { title: "A timeline".into(), blocks }, BufWriter::new(File::create(file)?))?;
    Ok(())
}
