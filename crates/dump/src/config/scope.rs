//! `scope` and `list`: which names bound what is collected.

use serde_json::Value;

use super::error::{Refusal, ScopeCode};
use super::python;
use super::values::{Level, Task};
use crate::names;
use crate::python_text::list_of_texts;

/// Which part of a run is collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scope {
    /// All of it.
    #[default]
    Everything,
    /// From one record to another, both included.
    Range {
        /// The name of the first record.
        first: String,
        /// The name of the last record; may be the first one.
        last: String,
    },
    /// These records (free benchmark).
    Names(Vec<String>),
}

impl Scope {
    /// The names as they stand in the file.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Scope::Everything => Vec::new(),
            Scope::Range { first, last } => vec![first, last],
            Scope::Names(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// Scope and list out of values that are not necessarily lists of strings; `api_prefixes` are those of the framework.
pub(super) fn parse(
    scope: &Value,
    list: &Value,
    task: Task,
    level: Level,
    api_prefixes: &[String],
) -> Result<(Scope, Vec<String>), Refusal> {
    if task == Task::FreeBenchmark && python::truthy(scope) && python::truthy(list) {
        return Err(Refusal::scope(
            ScopeCode::Conflict,
            format!(
                "scope和api_list不可以同时配置，实际配置为scope={}, api_list={}.",
                python::repr(scope),
                python::repr(list)
            ),
        ));
    }
    let list = list_names(list)?;
    let scope = scope_names(scope)?;
    let scope = if task == Task::FreeBenchmark {
        if scope.is_empty() { Scope::Everything } else { Scope::Names(scope) }
    } else {
        range(scope, level, api_prefixes)?
    };
    Ok((scope, list))
}

fn list_names(list: &Value) -> Result<Vec<String>, Refusal> {
    let refuse = |what: &str, value| Err(Refusal::scope(ScopeCode::InvalidApiList, wrong_type(what, value)));
    match list {
        Value::Array(items) => match items.iter().find(|item| !item.is_string()) {
            None => Ok(strings(items)),
            Some(item) => refuse("api_list中的元素须配置为字符串", item),
        },
        other if python::truthy(other) => refuse("api_list参数须配置为列表", other),
        _ => Ok(Vec::new()),
    }
}

fn scope_names(scope: &Value) -> Result<Vec<String>, Refusal> {
    let refuse = |what: &str, value| Err(Refusal::scope(ScopeCode::InvalidScope, wrong_type(what, value)));
    match scope {
        Value::Array(items) => match items.iter().find(|item| !item.is_string()) {
            None => Ok(strings(items)),
            Some(item) => refuse("scope列表元素要求类型为字符串", item),
        },
        Value::String(name) if !name.is_empty() => Ok(vec![name.clone()]),
        other if python::truthy(other) => refuse("scope参数须配置为字符串或列表", other),
        _ => Ok(Vec::new()),
    }
}

fn wrong_type(what: &str, value: &Value) -> String {
    format!("{what}，实际类型为<class '{}'>.", python::type_name(value))
}

fn strings(items: &[Value]) -> Vec<String> {
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn range(names: Vec<String>, level: Level, api_prefixes: &[String]) -> Result<Scope, Refusal> {
    let refuse = |message| Err(Refusal::scope(ScopeCode::InvalidScope, message));
    let [first, last] = match <[String; 2]>::try_from(names) {
        Ok(ends) => ends,
        Err(none) if none.is_empty() => return Ok(Scope::Everything),
        Err(names) => {
            let len = names.len();
            return refuse(format!("scope参数指定区间断点，须传入长度为2的列表，实际长度为{len}."));
        }
    };
    for name in [&first, &last] {
        let (api, module) = (names::is_api_scope_end(name, api_prefixes), names::is_module_scope_end(name));
        let wanted = match level {
            Level::L1 if !api => "api",
            Level::L0 if !module => "模块",
            Level::Mix if !api && !module => "api或模块",
            _ => continue,
        };
        return refuse(format!("scope参数格式错误，要求格式为{wanted}完整命名，实际为{name}."));
    }
    // Elsewhere the forms above say so already.
    if level == Level::Debug && names::is_of_module(&first) != names::is_of_module(&last) {
        return refuse(format!("scope={}", list_of_texts([first, last])));
    }
    Ok(Scope::Range { first, last })
}
