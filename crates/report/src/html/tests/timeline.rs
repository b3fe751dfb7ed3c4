//! Timelines in the file.

use serde_json::{Value, json};

use super::super::*;
use super::{NASTY, described, page_of, scripts};
use crate::Tone;

fn mark(at: u64, label: &str, is_origin: bool) -> Mark {
    Mark { at, tone: Tone::Bad, label: label.into(), detail: format!("detail of {label}\nmore"), is_origin }
}

fn link(from: (usize, usize), to: (usize, usize), label: &str) -> Link {
    Link { from, to, tone: Tone::Warning, label: label.into() }
}

fn lane(name: &str, marks: Vec<Mark>) -> Lane {
    let span = Span { from: 9, to: 3, tone: Tone::Good, label: format!("stretch of {name}") };
    Lane { name: name.into(), length: 12, note: format!("note of {name}"), spans: vec![span], marks }
}

fn page(timeline: &Timeline) -> String {
    let answer =
        AnswerBlock { heading: "Lanes".into(), tone: Tone::Bad, text: "Verdict".into(), facts: Vec::new() };
    page_of("Lanes", vec![Block::Answer(answer), Block::Timeline(timeline.clone())])
}

fn data(html: &str) -> Value {
    described(html, "timeline").remove(0)
}

/// What is there for readers without scripts.
fn text(html: &str) -> &str {
    html.split_once("<section class=\"in-words\">").unwrap().1.split_once("</section>").unwrap().0
}

#[test]
fn everything_is_there_for_the_script() {
    let timeline = Timeline {
        title: "Spread".into(),
        note: "one line".into(),
        lanes: vec![lane("first", vec![mark(5, "a", true), mark(2, "b", false)]), lane("second", Vec::new())],
        links: vec![link((0, 0), (0, 1), "step")],
        legend: vec![(Tone::Good, "as it should be".into())],
    };
    assert_eq!(
        data(&page(&timeline)),
        json!({
            "name": "Spread",
            "note": "one line",
            "count": 2,
            "lanes": [
                ["first", 12, "note of first", [[3, 9, "good", "stretch of first"]],
                 [[5, "bad", "a", "detail of a\nmore", 1], [2, "bad", "b", "detail of b\nmore", 0]]],
                ["second", 12, "note of second", [[3, 9, "good", "stretch of second"]], []],
            ],
            "links": [[0, 0, 0, 1, "warning", "step"]],
            "legend": [["good", "as it should be"]],
        })
    );
}

#[test]
fn it_can_be_read_without_scripts() {
    let timeline = Timeline {
        title: "Spread".into(),
        note: "one line".into(),
        lanes: vec![
            lane("first", vec![mark(7, "late", true)]),
            lane("second", vec![mark(5, "early", true), mark(6, "copy", false)]),
        ],
        links: vec![link((1, 0), (1, 1), ""), link((1, 1), (0, 0), "sent")],
        legend: Vec::new(),
    };
    let html = page(&timeline);
    let text = text(&html);
    assert!(text.contains("<h2>Spread</h2>\n<p>one line</p>\n<p>2 lanes, 3 marks, 2 links</p>"), "{text}");
    let early = "<li><b>second</b> early at 5<pre>detail of early\nmore</pre></li>\n";
    let late = "<li><b>first</b> late at 7<pre>detail of late\nmore</pre></li>\n";
    assert!(text.contains(&format!("<h3>Origins</h3>\n<ul>\n{early}{late}</ul>")), "{text}");
    assert!(text.contains("<li><b>second</b> early → <b>second</b> copy</li>"), "{text}");
    assert!(text.contains("<li><b>second</b> copy → <b>first</b> late – sent</li>"), "{text}");
    assert!(text.contains("<li><b>first</b>: 12 events, 1 mark – note of first</li>"), "{text}");
    // Below the picture, which stands in the place of the tables.
    assert!(html.find("<header") < html.find("<main"));
    assert!(html.find("<main") < html.find("<section class=\"in-words\""));
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let marks = (0..500).map(|at| mark(at, "m", true)).collect();
    let html = page(&Timeline { lanes: vec![lane("only", marks)], ..Timeline::default() });
    assert_eq!(text(&html).matches("<li>").count(), 200 + 1);
    assert!(text(&html).contains("<p>and 300 more</p>"));
    assert_eq!(data(&html)["lanes"][0][4].as_array().unwrap().len(), 500);
}

#[test]
fn words_cannot_become_markup() {
    let nasty = || NASTY.to_owned();
    let mut lane = lane(NASTY, vec![mark(1, NASTY, true), mark(2, NASTY, false)]);
    (lane.note, lane.spans[0].label, lane.marks[0].detail) = (nasty(), nasty(), nasty());
    let html = page(&Timeline {
        title: nasty(),
        note: nasty(),
        lanes: vec![lane],
        links: vec![link((0, 0), (0, 1), NASTY)],
        legend: vec![(Tone::Bad, nasty())],
    });
    for content in scripts(&html, "application/json") {
        assert!(!content.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{content}");
    }
    // The timeline, the program.
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (2, 2));
    assert!(!html.contains("alert(1)</script>") && !html.contains("<!--"));
    let data = data(&html);
    for word in
        [&data["name"], &data["note"], &data["lanes"][0][0], &data["links"][0][5], &data["legend"][0][1]]
    {
        assert_eq!(word, NASTY);
    }
    assert_eq!(data["lanes"][0][4][0][3], NASTY);
}

#[test]
fn links_without_both_ends_are_left_out() {
    let timeline = Timeline {
        lanes: vec![lane("a", vec![mark(1, "x", false)]), lane("b", vec![mark(2, "y", false)])],
        links: vec![
            link((0, 1), (1, 0), "no such mark"),
            link((0, 0), (2, 0), "no such lane"),
            link((usize::MAX, usize::MAX), (0, 0), "far away"),
            link((0, 0), (0, 0), "to itself"),
            link((0, 0), (1, 0), "kept"),
        ],
        ..Timeline::default()
    };
    let html = page(&timeline);
    assert_eq!(data(&html)["links"], json!([[0, 0, 1, 0, "warning", "kept"]]));
    assert!(text(&html).contains("2 lanes, 2 marks, 1 link<"));
    assert!(!html.contains("no such") && !html.contains("far away") && !html.contains("to itself"));
}

#[test]
fn timelines_with_nothing_on_them_are_written() {
    let html = page(&Timeline::default());
    assert_eq!(data(&html)["lanes"], json!([]));
    assert!(text(&html).contains("0 lanes, 0 marks, 0 links"));
    assert!(!text(&html).contains("<ul>"));
    let bare = Lane { length: u64::MAX, ..Lane::default() };
    let html = page(&Timeline { lanes: vec![bare; 3], ..Timeline::default() });
    assert_eq!(data(&html)["lanes"].as_array().unwrap().len(), 3);
}

#[test]
fn only_a_page_with_a_timeline_has_its_lists() {
    assert!(page(&Timeline::default()).contains("class=\"in-words\""));
    assert!(!super::written(&super::Rows(1)).contains("class=\"in-words\""));
}
