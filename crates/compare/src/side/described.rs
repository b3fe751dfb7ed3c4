//! Type, shape and statistics of a value as it is written.

use std::sync::Arc;

use msprobe_dump::model::{Value, Written};
use msprobe_dump::read::Json;
use msprobe_tensor::DType;

use super::texts::Texts;
use super::{Scalar, ValueKind, ValueShape};
use crate::python_text::{python_class, python_str};

/// Type, shape and statistics of a value.
pub(super) struct Described {
    pub(super) kind: ValueKind,
    pub(super) dtype: Arc<str>,
    pub(super) element: Option<DType>,
    pub(super) shape: ValueShape,
    pub(super) statistics: [Scalar; 4],
}

impl Described {
    pub(super) fn of(value: &Value<'_>, texts: &mut Texts) -> Described {
        let nothing = [const { Scalar::Null }; 4];
        let four = |scalar: Scalar| [scalar.clone(), scalar.clone(), scalar.clone(), scalar];
        let content = value.value;
        let type_name = value.type_name.and_then(Written::text).unwrap_or_default();
        if let Some(dtype) = value.dtype {
            let shape = match (value.sizes, value.shape) {
                (Some(sizes), _) => ValueShape::Sizes(texts.sizes(sizes)),
                (None, Some(shape)) => ValueShape::of_text(&texts.shown(shape)),
                (None, None) => ValueShape::Unknown,
            };
            let element = value.known_dtype();
            let statistics =
                value.statistics.map(|written| written.map_or(Scalar::Null, |it| texts.scalar(it)));
            let kind = if dtype.bytes() == b"null" { ValueKind::None } else { ValueKind::Tensor };
            return Described { kind, dtype: texts.shown(dtype), element, shape, statistics };
        }
        // What is shown of a value without a shape is that of one without dimensions.
        let scalar = ValueShape::Sizes(texts.sizes(&[]));
        let of = |kind, dtype: &str, shape, statistics, texts: &mut Texts| Described {
            kind,
            dtype: texts.get(dtype),
            element: None,
            shape,
            statistics,
        };
        match &*type_name {
            "torch.Size" => {
                let sizes = content
                    .map_or(ValueShape::Unknown, |content| ValueShape::of_text(&python_str(&json(content))));
                of(ValueKind::Size, &type_name, sizes, nothing, texts)
            }
            "slice" => {
                let sizes = content.map_or_else(Vec::new, |content| list_sizes(&json(content)));
                let shape = ValueShape::Tuple(texts.sizes(&sizes));
                of(ValueKind::Slice, &type_name, shape, nothing, texts)
            }
            "ellipsis" => {
                let value = content.map_or(Scalar::Null, |content| texts.scalar(content));
                of(ValueKind::Ellipsis, &type_name, scalar, four(value), texts)
            }
            "torch.ProcessGroup" => {
                let ranks = value.group_ranks.map_or_else(|| "None".to_owned(), |it| python_str(&json(it)));
                let ranks = Scalar::Text(texts.get(&ranks));
                of(ValueKind::Group, &type_name, scalar, four(ranks), texts)
            }
            _ => {
                let class = content.map_or(python_class(&Json::Null), |content| python_class(&json(content)));
                let value = content.map_or(Scalar::Null, |content| texts.scalar(content));
                of(ValueKind::Plain, class, scalar, four(value), texts)
            }
        }
    }
}

/// A value that cannot be parsed is told by its digest.
pub(super) fn json(written: Written<'_>) -> Json<'_> {
    written.json().unwrap_or(Json::Null)
}

/// The shape numpy would give a list.
fn list_sizes(value: &Json<'_>) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut value = value;
    while let Json::List(elements) = value {
        sizes.push(elements.len() as u64);
        match elements.first() {
            Some(first) if elements.iter().all(|element| matches!(element, Json::List(_))) => value = first,
            _ => break,
        }
    }
    sizes
}
