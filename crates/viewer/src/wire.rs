//! What is answered, as JSON. `web/src/viewer/api.ts` has the same types for the other side.
//!
//! Members are named as there; numbers that are not finite are the strings reports use for them; what is not known is null.

use msprobe_report::{Tone, json_number};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A number that may be none JSON has a word for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Num(pub(crate) f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json_number(self.0).serialize(serializer)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(crate) fn tone_word<S: Serializer>(tone: &Tone, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tone.as_str())
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Side {
    /// What is looked at.
    #[default]
    Target,
    /// What it is measured against.
    Golden,
}

impl Side {
    /// Its name in links and questions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Side::Target => "target",
            Side::Golden => "golden",
        }
    }

    /// Its name in stores.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Side::Target => "NPU",
            Side::Golden => "Bench",
        }
    }

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Target => Side::Golden,
            Side::Golden => Side::Target,
        }
    }

    pub(crate) fn of(word: &str) -> Option<Side> {
        [Side::Target, Side::Golden].into_iter().find(|side| side.as_str() == word)
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Catalogue {
    pub(crate) version: &'static str,
    pub(crate) roots: Vec<String>,
    pub(crate) items: Vec<Item>,
    pub(crate) notes: Vec<Note>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Note {
    pub(crate) path: String,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ItemKind {
    Graph,
    Comparison,
    Overflow,
    Gradients,
    Keydata,
    Trend,
    Dump,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) kind: ItemKind,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) modified: String,
    pub(crate) bytes: u64,
    pub(crate) steps: Vec<i64>,
    pub(crate) ranks: Vec<i64>,
    pub(crate) answer: Option<Value>,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) cells: Vec<Cell>,
    pub(crate) report: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cell {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) status: String,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) culprit: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GraphInfo {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) kind: &'static str,
    pub(crate) task: String,
    pub(crate) tool_tips: serde_json::Map<String, Value>,
    pub(crate) colours: Vec<Colour>,
    pub(crate) micro_steps: i64,
    pub(crate) overflow_check: bool,
    pub(crate) has_verdicts: bool,
    pub(crate) writable: bool,
    pub(crate) steps: Vec<i64>,
    pub(crate) ranks: Vec<i64>,
    pub(crate) answers: Vec<RankAnswer>,
    pub(crate) nodes: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Colour {
    pub(crate) hex: String,
    /// Two numbers, or none for nodes without a partner.
    pub(crate) range: Vec<f64>,
    pub(crate) description: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct RankAnswer {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) status: String,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) headline: String,
    pub(crate) culprit: Option<String>,
    pub(crate) node: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeBrief {
    pub(crate) name: String,
    pub(crate) label: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) order: i64,
    pub(crate) children: u64,
    pub(crate) parent: Option<String>,
    pub(crate) micro_step: i64,
    pub(crate) index: Option<f64>,
    pub(crate) verdict: Option<&'static str>,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) error_in: Option<Num>,
    pub(crate) error_out: Option<Num>,
    pub(crate) tolerated: Option<Num>,
    pub(crate) overflow: Option<&'static str>,
    pub(crate) partner: Option<String>,
    pub(crate) worst: Option<Worst>,
    pub(crate) orphan: Option<String>,
    pub(crate) has_peers: bool,
    pub(crate) modified: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Worst {
    pub(crate) name: String,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) index: Option<f64>,
    pub(crate) verdict: Option<&'static str>,
    pub(crate) overflow: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
#[allow(clippy::struct_field_names, reason = "the words of the contract")]
pub(crate) struct Children {
    pub(crate) node: NodeBrief,
    pub(crate) children: Vec<NodeBrief>,
    pub(crate) total: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Opened {
    pub(crate) opened: Vec<Children>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct PathTo {
    pub(crate) path: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeDetail {
    pub(crate) brief: NodeBrief,
    pub(crate) partner: Option<NodeBrief>,
    pub(crate) values: Vec<Values>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) merge_info: Vec<String>,
    pub(crate) merged_shapes: Vec<MergedShape>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) data_dir: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Values {
    pub(crate) direction: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<ValueRow>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValueRow {
    pub(crate) side: Side,
    pub(crate) name: String,
    pub(crate) is_matched: bool,
    pub(crate) cells: Vec<Option<String>>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stack {
    pub(crate) side: Side,
    pub(crate) frames: Vec<Frame>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Frame {
    pub(crate) text: String,
    pub(crate) is_user: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct MergedShape {
    pub(crate) value: String,
    pub(crate) shape: String,
    pub(crate) note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Peer {
    pub(crate) rank: i64,
    pub(crate) node: String,
    pub(crate) way: String,
    pub(crate) index: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Findings {
    pub(crate) total: u64,
    pub(crate) findings: Vec<NodeBrief>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Jump {
    pub(crate) found: Option<Found>,
    pub(crate) why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Found {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) side: Side,
    pub(crate) node: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchResult {
    pub(crate) total: u64,
    pub(crate) is_capped: bool,
    pub(crate) hits: Vec<Hit>,
    pub(crate) groups: Vec<Group>,
    pub(crate) facets: Vec<Facet>,
    pub(crate) elapsed_ms: f64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Hit {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) side: Side,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) verdict: Option<&'static str>,
    pub(crate) index: Option<f64>,
    pub(crate) overflow: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Group {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) count: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Facet {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<FacetValue>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct FacetValue {
    pub(crate) value: String,
    pub(crate) count: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pairs {
    pub(crate) total: u64,
    pub(crate) rows: Vec<NodeBrief>,
    /// Where the node stands that was asked for.
    pub(crate) place: Option<usize>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Profile {
    pub(crate) points: Vec<Point>,
    pub(crate) culprit: Option<String>,
    pub(crate) is_thinned: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub(crate) order: i64,
    pub(crate) name: String,
    pub(crate) error_in: Option<Num>,
    pub(crate) error_out: Option<Num>,
    pub(crate) tolerated: Option<Num>,
    pub(crate) index: Option<f64>,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    pub(crate) node: String,
    pub(crate) values: Vec<String>,
    pub(crate) measures: Vec<String>,
    pub(crate) points: Vec<SeriesPoint>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SeriesPoint {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) number: Option<Num>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    pub(crate) edition: u64,
    pub(crate) pairs: u64,
    pub(crate) failed: u64,
    pub(crate) is_unsaved: bool,
    pub(crate) can_undo: bool,
    pub(crate) can_redo: bool,
    pub(crate) text: String,
}

/// A graph file that is made of dumps.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Conversion {
    /// `idle`, `running`, `done` or `failed`.
    pub(crate) state: &'static str,
    pub(crate) percent: u8,
    pub(crate) messages: Vec<String>,
    pub(crate) error: Option<String>,
    pub(crate) hint: Option<String>,
    /// What its answer says.
    pub(crate) headline: Option<String>,
    /// The file, and the item it is.
    pub(crate) path: Option<String>,
    pub(crate) item: Option<String>,
}

impl Default for Conversion {
    fn default() -> Conversion {
        Conversion {
            state: "idle",
            percent: 0,
            messages: Vec::new(),
            error: None,
            hint: None,
            headline: None,
            path: None,
            item: None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Suggestions {
    pub(crate) suggestions: Vec<Suggestion>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Suggestion {
    pub(crate) node: NodeBrief,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Matrix {
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    pub(crate) cells: Vec<MatrixCell>,
    pub(crate) limit: Option<Num>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct MatrixCell {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) number: Option<Num>,
    #[serde(serialize_with = "tone_word")]
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ItemTables {
    pub(crate) tables: Vec<ItemTable>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemTable {
    pub(crate) name: String,
    pub(crate) headers: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) tones: Vec<&'static str>,
    pub(crate) is_cut: bool,
}
