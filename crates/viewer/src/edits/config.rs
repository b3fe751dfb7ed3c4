//! Files of pairs: `{tag}.vis.config`, an object of names of the target and of the golden side. What one of them says can be
//! done to another graph.

use std::io::Write;
use std::path::{Path, PathBuf};

use msprobe_dump::write::JsonText;
use rusqlite::params;

use super::Overlay;
use crate::fault::Fault;
use crate::store::{Asking, Scope};
use crate::wire::Side;

/// Pairs of a file.
const MOST_PAIRS: usize = 5_000_000;

/// Where the pairs of a graph are written: beside its file.
pub(crate) fn config_path(graph: &Path, of: Option<(i64, i64)>) -> PathBuf {
    let name = graph.file_name().unwrap_or_default().to_string_lossy();
    let tag = name.strip_suffix(".vis.db").or_else(|| name.strip_suffix(".vis")).unwrap_or(&name);
    match of {
        Some((step, rank)) => graph.with_file_name(format!("{tag}_{step}_{rank}.vis.config")),
        None => graph.with_file_name(format!("{tag}.vis.config")),
    }
}

/// Writes the pairs that were made by hand, or all of them if there are none.
pub(crate) fn write_config(asking: &Asking<'_>, step: i64, rank: i64, path: &Path) -> Result<u64, Fault> {
    let scope = Scope { step, rank, side: Side::Target };
    let pairs = pairs_of(asking, scope)?;
    let mut json = JsonText::indented(4);
    json.begin_object();
    for (target, golden) in &pairs {
        json.key(target);
        json.string(golden);
    }
    json.end_object();
    let text = json.finish();
    msprobe_report::output::save(path, |file| file.write_all(text.as_bytes()))?;
    Ok(pairs.len() as u64)
}

fn pairs_of(asking: &Asking<'_>, scope: Scope) -> Result<Vec<(String, String)>, Fault> {
    let overlay: &Overlay = asking.overlay;
    let mut statement = asking.connection.prepare_cached(
        "SELECT node_name, matched_node_link, modified FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 \
         ORDER BY node_order",
    )?;
    let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source()])?;
    let (mut all, mut by_hand) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let (link, modified) = match overlay.get(scope, &name) {
            Some(state) => (state.link.last().cloned(), state.modified),
            None => {
                let link: Option<String> = row.get(1)?;
                let link: Vec<String> =
                    link.and_then(|link: String| serde_json::from_str(&link).ok()).unwrap_or_default();
                (link.last().cloned(), row.get::<_, i64>(2)? != 0)
            }
        };
        let Some(partner) = link else { continue };
        if modified {
            by_hand.push((name.clone(), partner.clone()));
        }
        if all.len() < MOST_PAIRS {
            all.push((name, partner));
        }
    }
    Ok(if by_hand.is_empty() { all } else { by_hand })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_pairs_lie_beside_the_graph() {
        let path = |graph: &str, of| config_path(Path::new(graph), of).display().to_string();
        assert_eq!(path("o/compare_1.vis", None), "o/compare_1.vis.config");
        assert_eq!(path("o/compare_1.vis.db", Some((0, 3))), "o/compare_1_0_3.vis.config");
    }
}
