//! What was found, in words: plain HTML, there for those who print or read without scripts.

use super::escaped;
use crate::Tone;

/// The answer of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerBlock {
    /// Above it.
    pub heading: String,
    /// Its colour.
    pub tone: Tone,
    /// Paragraphs, one per line.
    pub text: String,
    /// Labels and values below.
    pub facts: Vec<(String, String)>,
}

impl AnswerBlock {
    pub(super) fn html(&self) -> String {
        let tone = self.tone.as_str();
        let heading = escaped(&self.heading);
        let text: String = self
            .text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| format!("<p>{}</p>\n", escaped(line)))
            .collect();
        let facts: String = self
            .facts
            .iter()
            .map(|(label, value)| {
                format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(label), escaped(value))
            })
            .collect();
        let facts = if facts.is_empty() { facts } else { format!("<dl class=\"facts\">\n{facts}</dl>\n") };
        format!(
            "<header class=\"verdict {tone}\">\n<div class=\"heading\"><span class=\"mark\" aria-hidden=\"true\"></span>\
             <h1>{heading}</h1></div>\n<div class=\"paragraphs\">\n{text}</div>\n{facts}</header>\n"
        )
    }
}
