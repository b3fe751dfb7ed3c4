//! One file with everything in it: the same page, with answers embedded in place of a server.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::assets;
use crate::catalogue::Source;
use crate::fault::Fault;
use crate::prepare::OpenGraph;
use crate::store::{Asking, Patience, Scope};
use crate::wire::{ItemKind, NodeBrief};

/// A file that is longer is none to be mailed.
const MOST_BYTES: usize = 60 << 20;
/// Graphs are waited for this long.
const PATIENCE: Duration = Duration::from_mins(10);

/// What goes into the file.
#[derive(Debug, Clone, Default)]
pub struct ExportScope {
    /// One step, or all.
    pub step: Option<i64>,
    /// One rank, or all.
    pub rank: Option<i64>,
    /// One item, or all.
    pub only: Option<String>,
}

/// Writes everything below some paths into one file, which appears when it is complete.
pub fn export(paths: &[PathBuf], scope: &ExportScope, file: &Path) -> Result<usize, Fault> {
    let app = App::new(paths)?;
    let mut page = Vec::new();
    write(&app, scope, &mut page)?;
    msprobe_report::output::save(file, |out| out.write_all(&page))?;
    Ok(page.len())
}

/// JSON inside of a script: nothing in it ends the script.
fn embedded(value: &impl Serialize) -> Result<String, Fault> {
    let json = serde_json::to_string(value).map_err(|error| Fault::bad(error.to_string()))?;
    Ok(json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// Bytes that may still be written.
struct Room(usize);

impl Room {
    fn take(&mut self, text: &str) -> Result<(), Fault> {
        match self.0.checked_sub(text.len()) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(Fault::bad(format!("the file would be larger than {} MB", MOST_BYTES >> 20))
                .with_hint("give one graph file as PATH, or choose one step and rank: --step N --rank N")),
        }
    }
}

pub(crate) fn write(app: &App, scope: &ExportScope, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut found = app.found(true).catalogue.clone();
    let is_wanted = |id: &str| scope.only.as_ref().is_none_or(|only| only == id);
    found.items.retain(|item| is_wanted(&item.id));
    // Long series are asked for piece by piece, which a file cannot do.
    found.items.retain(|item| item.kind != ItemKind::Trend);
    // Pages of their own are none of this file.
    found.items.iter_mut().for_each(|item| item.report = None);
    let mut room = Room(MOST_BYTES);
    let mut data = String::from("{\"catalogue\":");
    let catalogue = embedded(&found)?;
    room.take(&catalogue)?;
    data.push_str(&catalogue);
    data.push_str(",\"graphs\":{");
    let mut is_first = true;
    for item in &found.items {
        let Source::Graph(_) = app.source(&item.id)? else { continue };
        let graph = match wait_for(app, &item.id) {
            Ok(graph) => graph,
            // What cannot be read is told in the catalogue.
            Err(fault) if scope.only.is_none() => {
                found_error(&mut data, &mut is_first, &item.id, &fault)?;
                continue;
            }
            Err(fault) => return Err(fault),
        };
        let text = graph_text(&graph, &item.id, &item.title, scope, &mut room)?;
        if !is_first {
            data.push(',');
        }
        is_first = false;
        push_member(&mut data, &item.id, &text);
    }
    data.push_str("},\"tables\":{");
    let mut is_first = true;
    for item in &found.items {
        let Source::Report(path) = app.source(&item.id)? else { continue };
        let Ok(tables) = crate::catalogue::item_tables(&path) else { continue };
        let matrix = match item.kind {
            ItemKind::Gradients => crate::catalogue::gradients(&path).ok(),
            ItemKind::Keydata => crate::catalogue::key_data(&path).ok(),
            _ => None,
        };
        let text = embedded(&json!({"tables": tables.tables, "matrix": matrix}))?;
        room.take(&text)?;
        if !is_first {
            data.push(',');
        }
        is_first = false;
        push_member(&mut data, &item.id, &text);
    }
    data.push_str("}}");
    write_page(&data, out)?;
    Ok(())
}

/// A member of the object that is written; ids are hexadecimal.
fn push_member(data: &mut String, id: &str, text: &str) {
    for part in ["\"", id, "\":", text] {
        data.push_str(part);
    }
}

fn found_error(data: &mut String, is_first: &mut bool, id: &str, fault: &Fault) -> Result<(), Fault> {
    if !*is_first {
        data.push(',');
    }
    *is_first = false;
    push_member(data, id, &embedded(&json!({"error": fault.message, "hint": fault.hint}))?);
    Ok(())
}

/// A graph, when it is there.
fn wait_for(app: &App, id: &str) -> Result<std::sync::Arc<OpenGraph>, Fault> {
    let patience = Patience::new(PATIENCE);
    loop {
        match app.graph(id) {
            Err(fault) if fault.is_preparing() && !patience.is_over() => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

fn graph_text(
    graph: &OpenGraph,
    id: &str,
    title: &str,
    scope: &ExportScope,
    room: &mut Room,
) -> Result<String, Fault> {
    let info = embedded(&graph.info(id, title.to_owned()))?;
    room.take(&info)?;
    let mut text = format!("{{\"info\":{info},\"graphs\":[");
    let patience = Patience::new(PATIENCE);
    let scopes: Vec<Scope> = graph
        .store
        .scopes()
        .filter(|at| {
            scope.step.is_none_or(|step| step == at.step) && scope.rank.is_none_or(|rank| rank == at.rank)
        })
        .collect();
    if scopes.is_empty() {
        return Err(
            Fault::missing("there is no such step and rank").with_hint("leave out --step and --rank for all")
        );
    }
    let mut is_first = true;
    for at in scopes {
        let one = loop {
            let one = graph.ask(&patience, |asking| hierarchy_text(asking, at, room));
            match one {
                Err(fault) if fault.is_preparing() && !patience.is_over() => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                // A rank one side has not.
                Err(fault) if fault.status == axum::http::StatusCode::NOT_FOUND => break None,
                other => break Some(other?),
            }
        };
        let Some(one) = one else { continue };
        if !is_first {
            text.push(',');
        }
        is_first = false;
        text.push_str(&one);
    }
    text.push_str("],\"timelines\":{");
    // Between ranks there is something to draw only if all of them are there.
    if scope.rank.is_none() {
        push_timelines(graph, scope, &patience, room, &mut text)?;
    }
    text.push_str("}}");
    Ok(text)
}

/// What ranks tell one another in each step.
fn push_timelines(
    graph: &OpenGraph,
    scope: &ExportScope,
    patience: &Patience,
    room: &mut Room,
    text: &mut String,
) -> Result<(), Fault> {
    let steps = graph.store.facts.steps.iter().filter(|at| scope.step.is_none_or(|step| step == **at));
    for (at, &step) in steps.enumerate() {
        let timeline = embedded(&graph.ask(patience, |asking| asking.timeline(step))?)?;
        let entry = format!("{}\"{step}\":{timeline}", if at == 0 { "" } else { "," });
        room.take(&entry)?;
        text.push_str(&entry);
    }
    Ok(())
}

/// All nodes of one hierarchy, with all there is to know of them.
fn hierarchy_text(asking: &Asking<'_>, scope: Scope, room: &mut Room) -> Result<String, Fault> {
    asking.root(scope)?;
    let marks = asking.store.marks.require(asking, scope)?;
    let mut nodes: Vec<NodeBrief> = Vec::new();
    let mut details = String::from("{");
    let mut size = 0;
    for mark in marks.iter() {
        let Some(raw) = asking.raw(scope, crate::store::Wanted::Order(mark.order))? else { continue };
        let brief = asking.brief(scope, raw, Some(&marks))?;
        let detail = embedded(&asking.detail(scope, &brief.name)?)?;
        let entry = format!("{}{}:{detail}", if nodes.is_empty() { "" } else { "," }, embedded(&brief.name)?);
        size += entry.len() + 600;
        if size > room.0 {
            room.take(&" ".repeat(room.0 + 1))?;
        }
        details.push_str(&entry);
        nodes.push(brief);
    }
    details.push('}');
    let head = json!({"step": scope.step, "rank": scope.rank, "side": scope.side.as_str()});
    let head = embedded(&head)?;
    let text =
        format!("{},\"nodes\":{},\"details\":{details}}}", head.trim_end_matches('}'), embedded(&nodes)?);
    room.take(&text)?;
    Ok(text)
}

/// The page with style, program and data in it.
fn write_page(data: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let page = String::from_utf8_lossy(assets::PAGE);
    let style = String::from_utf8_lossy(assets::STYLE).replace("</style", "<\\/style");
    let program = String::from_utf8_lossy(assets::PROGRAM).replace("</script", "<\\/script");
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
        script-src 'unsafe-inline'; img-src data: blob:\">";
    let page = without_element(&page, "<link", ">", "viewer.css");
    let page = without_element(&page, "<script", "</script>", "viewer.js");
    let (head, rest) = page.split_once("</head>").unwrap_or(("", page.as_str()));
    let (body, end) = rest.rsplit_once("</body>").unwrap_or((rest, "</html>\n"));
    write!(out, "{head}{policy}\n<style>\n{style}\n</style>\n</head>{body}")?;
    writeln!(out, "<script type=\"application/json\" id=\"embedded\">{data}</script>")?;
    write!(out, "<script>\n{program}\n</script>\n</body>{end}")
}

/// A page without the element that names a file.
fn without_element(page: &str, begins: &str, ends: &str, names: &str) -> String {
    let mut from = 0;
    while let Some(start) = page[from..].find(begins).map(|at| from + at) {
        let Some(end) = page[start..].find(ends).map(|at| start + at + ends.len()) else { break };
        if page[start..end].contains(names) {
            return format!("{}{}", &page[..start], &page[end..]);
        }
        from = end;
    }
    page.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn elements_that_name_files_are_taken_out() {
        let page = "<head><link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/viewer.css\"></head>\
            <body><script type=\"module\" src=\"/viewer.js\"></script></body>";
        let page = without_element(page, "<link", ">", "viewer.css");
        let page = without_element(&page, "<script", "</script>", "viewer.js");
        assert_eq!(page, "<head><link rel=\"icon\" href=\"data:,\"></head><body></body>");
    }

    #[test]
    fn nothing_in_the_data_ends_the_script() {
        let text = embedded(&json!({"name": "</script><b>\u{2028}"})).unwrap();
        assert!(
            !text.contains('<')
                && serde_json::from_str::<Value>(&text).unwrap()["name"] == "</script><b>\u{2028}"
        );
    }
}
