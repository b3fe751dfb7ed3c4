//! A page to look at in a browser: one file with everything in it, made of blocks in any combination and number.
//!
//! A [`Block`] is words, which stand above in the order of the list, or a view, which gets a tab. What a view shows is
//! embedded as JSON: a description and, for long ones, pieces that are independent of each other, so that they can be
//! made on all cores and never stand in memory together. To add a kind of block, add a variant here, a file beside this
//! one, and for a view its kind in `web/src/page/main.ts`; what is forgotten the compiler names, or the page itself.

mod answer;
mod curves;
mod data;
mod table;
mod timeline;
mod tree;

use std::io::{self, Write};

pub use self::answer::AnswerBlock;
pub use self::curves::{CurveSeries, Curves, Limit};
use self::data::DataWriter;
pub use self::table::PageTable;
pub use self::timeline::{Lane, Link, Mark, Span, Timeline};
pub use self::tree::{Node, Tree};

/// Built from `web/`; committed, so that nobody needs more than cargo to build.
const STYLE: &str = include_str!("assets/page.css");
const PROGRAM: &str = include_str!("assets/page.js");

/// What the file shows.
pub struct Page<'a> {
    /// Title of the window.
    pub title: String,
    /// From top to bottom, and from the first tab to the last.
    pub blocks: Vec<Block<'a>>,
}

/// A part of a page.
pub enum Block<'a> {
    /// What was found, in words.
    Answer(AnswerBlock),
    /// Rows to sort and filter.
    Table(PageTable<'a>),
    /// Small charts to search and enlarge.
    Curves(Curves<'a>),
    /// Lanes with marks and links.
    Timeline(Timeline),
    /// Nodes to open and close.
    Tree(Tree),
}

impl Block<'_> {
    /// HTML for everybody, above the views.
    fn words(&self) -> Option<String> {
        match self {
            Block::Answer(answer) => Some(answer.html()),
            Block::Table(_) | Block::Curves(_) | Block::Timeline(_) | Block::Tree(_) => None,
        }
    }

    /// What paper and readers without scripts get in place of a view.
    fn text(&self) -> Option<String> {
        match self {
            Block::Timeline(timeline) => Some(timeline.text()),
            Block::Tree(tree) => Some(tree.text()),
            Block::Answer(_) | Block::Table(_) | Block::Curves(_) => None,
        }
    }

    /// What the view shows, for the program.
    fn write_data(&self, out: &mut DataWriter<'_>) -> io::Result<()> {
        match self {
            Block::Answer(_) => Ok(()),
            Block::Table(table) => table.write_data(out),
            Block::Curves(curves) => curves.write_data(out),
            Block::Timeline(timeline) => out.view("timeline", &timeline.described()),
            Block::Tree(tree) => out.view("tree", &tree.described()),
        }
    }
}

/// Writes the page.
pub fn write_page(page: &Page<'_>, mut out: impl Write) -> io::Result<()> {
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         <noscript><style>@media screen {{ .in-words {{ display: block; }} }}</style></noscript>\n</head>\n<body>\n",
        escaped(&page.title)
    )?;
    for words in page.blocks.iter().filter_map(Block::words) {
        out.write_all(words.as_bytes())?;
    }
    out.write_all(b"<main id=\"views\"></main>\n")?;
    for text in page.blocks.iter().filter_map(Block::text) {
        out.write_all(text.as_bytes())?;
    }
    out.write_all(b"<noscript><p class=\"noscript\">Tables and curves need JavaScript.</p></noscript>\n")?;
    let mut data = DataWriter::new(&mut out);
    for block in &page.blocks {
        block.write_data(&mut data)?;
    }
    write!(out, "<script>\n{PROGRAM}</script>\n</body>\n</html>\n")?;
    out.flush()
}

/// Text for HTML, in content and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in HTML.
            '\0' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
