//! What can be asked. `web/src/viewer/api.ts` is the same list for the other side.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Query as Parts, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use msprobe_tensor::files::{Links, open_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::State;
use super::guard::guard;
use super::questions::{MatchBody, OpenBody, PlaceBody, Query};
use crate::assets;
use crate::catalogue;
use crate::convert::ConvertBody;
use crate::export;
use crate::fault::Fault;
use crate::prepare::OpenGraph;
use crate::store::{
    Asking, BUDGET, FACETS, FindingKind, FindingsAsked, Needle, PairsAsked, Patience, Scope, SearchAsked,
    Statistics,
};
use crate::trend::TrendAsked;
use crate::wire::Opened;

/// A request has to fit; files of pairs are the longest.
const MOST_BODY_BYTES: usize = 8 << 20;
/// Nodes that are opened by one question.
const MOST_OPENED: usize = 3000;
/// Children of one node that come with it when many are opened.
const OPENED_CHILDREN: u64 = 500;
/// Children of all of them together.
const MOST_OPENED_CHILDREN: usize = 60_000;
/// A page of a command that is longer is opened without us.
const MOST_PAGE_BYTES: u64 = 128 << 20;

type App = Shared<Arc<State>>;
type Answer = Result<Response, Fault>;
type Body<T> = Result<Json<T>, JsonRejection>;

pub(super) fn router(state: Arc<State>) -> Router {
    let graph = Router::new()
        .route("/children", get(children))
        .route("/open", post(open))
        .route("/path", get(path_to))
        .route("/node", get(node))
        .route("/findings", get(findings))
        .route("/jump", get(jump))
        .route("/search", get(search))
        .route("/pairs", get(pairs))
        .route("/pairs.csv", get(pairs_csv))
        .route("/profile", get(profile))
        .route("/series", get(series))
        .route("/timeline", get(timeline))
        .route("/suggestions", get(suggestions))
        .route("/edits", get(edits))
        .route("/match", post(match_pair))
        .route("/unmatch", post(unmatch))
        .route("/undo", post(undo))
        .route("/redo", post(redo))
        .route("/save", post(save))
        .route("/config/save", post(config_save))
        .route("/config/apply", post(config_apply));
    Router::new()
        .route("/api/catalogue", get(catalogue_of))
        .route("/api/convert", get(conversion).post(convert))
        .route("/api/graph/{id}", get(info))
        .nest("/api/graph/{id}", graph)
        .route("/api/gradients/{id}", get(gradients))
        .route("/api/keydata/{id}", get(key_data))
        .route("/api/trend/{id}", get(trend_info))
        .route("/api/trend/{id}/map", get(trend_map))
        .route("/api/trend/{id}/lines", get(trend_lines))
        .route("/api/item/{id}/tables", get(item_tables))
        .route("/api/export/{id}", get(export_item))
        .route("/report/{id}", get(report))
        .route("/viewer.js", get(|| async { asset("text/javascript; charset=utf-8", assets::PROGRAM) }))
        .route("/viewer.css", get(|| async { asset("text/css; charset=utf-8", assets::STYLE) }))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/", get(|| async { asset("text/html; charset=utf-8", assets::PAGE) }))
        .fallback(|| async { Fault::missing("there is nothing here") })
        .method_not_allowed_fallback(|| async {
            Fault::new(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here")
        })
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(middleware::from_fn_with_state(state.clone(), guard))
        .with_state(state)
}

fn asset(kind: &'static str, content: &'static [u8]) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], content).into_response()
}

fn body<T: DeserializeOwned>(body: Body<T>) -> Result<T, Fault> {
    match body {
        Ok(Json(body)) => Ok(body),
        Err(error) => Err(Fault::new(error.status(), error.body_text())),
    }
}

/// Does something that takes a while on a thread of its own, as long as somebody waits for it. So many at a time.
async fn work<T: Send + 'static>(
    state: Arc<State>,
    action: impl FnOnce(&State, &Patience) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let patience = Patience::new(BUDGET);
    let _somebody_waits = patience.guard();
    let Ok(place) = state.workers.clone().acquire_owned().await else {
        return Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "the server ends"));
    };
    let done = tokio::task::spawn_blocking(move || {
        let done = action(&state, &patience);
        drop(place);
        done
    });
    match done.await {
        Ok(done) => done,
        Err(_) => Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "this question cannot be answered")
            .with_hint("this is a fault of msprobe: please report it with the file")),
    }
}

fn json_bytes(answer: &impl Serialize) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(answer)
        .map_err(|error| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn json_response(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

/// Answers with what an action gives.
async fn answer<T: Serialize>(
    state: Arc<State>,
    action: impl FnOnce(&State, &Patience) -> Result<T, Fault> + Send + 'static,
) -> Answer {
    let bytes = work(state, move |state, patience| json_bytes(&action(state, patience)?)).await?;
    Ok(json_response(bytes))
}

/// Answers with what a graph says.
async fn ask<T: Serialize>(
    state: Arc<State>,
    id: String,
    question: impl FnOnce(&Asking<'_>) -> Result<T, Fault> + Send + 'static,
) -> Answer {
    answer(state, move |state, patience| state.app.graph(&id)?.ask(patience, question)).await
}

async fn catalogue_of(Shared(state): App) -> Answer {
    answer(state, |state, _| Ok(state.app.found(true).catalogue.clone())).await
}

async fn convert(Shared(state): App, request: Body<ConvertBody>) -> Answer {
    let asked = body(request)?;
    answer(state, move |state, _| state.app.convert(asked)).await
}

async fn conversion(Shared(state): App) -> Answer {
    answer(state, |state, _| Ok(state.app.conversion())).await
}

async fn info(Shared(state): App, Path(id): Path<String>) -> Answer {
    answer(state, move |state, _| {
        let graph = state.app.graph(&id)?;
        graph.read_names_behind();
        Ok(graph.info(&id, state.app.title(&id)))
    })
    .await
}

async fn children(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (scope, micro) = (query.scope()?, query.micro()?);
    let (offset, limit) = (query.number("offset")?.unwrap_or(0), query.number("limit")?.unwrap_or(500));
    let by = query.statistics()?;
    ask(state, id, move |asking| asking.by(by)?.children(scope, query.get("node"), micro, offset, limit))
        .await
}

async fn open(Shared(state): App, Path(id): Path<String>, request: Body<OpenBody>) -> Answer {
    let asked = body(request)?;
    let by = Statistics::of(asked.statistics())?;
    ask(state, id, move |asking| {
        let asking = asking.by(by)?;
        let scope = Scope { step: asked.step, rank: asked.rank, side: asked.side };
        let micro = asked.micro.filter(|micro| *micro >= 0);
        let mut opened = Vec::new();
        let mut given = 0;
        for name in asked.nodes.iter().take(MOST_OPENED) {
            match asking.children(scope, Some(name), micro, 0, OPENED_CHILDREN) {
                Ok(children) => {
                    given += children.children.len();
                    opened.push(children);
                }
                Err(fault) if fault.status == StatusCode::NOT_FOUND => {}
                Err(fault) => return Err(fault),
            }
            if given > MOST_OPENED_CHILDREN {
                break;
            }
        }
        Ok(Opened { opened })
    })
    .await
}

async fn path_to(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (scope, name) = (query.scope()?, query.need("node")?.to_owned());
    ask(state, id, move |asking| asking.path_to(scope, &name)).await
}

async fn node(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (scope, name) = (query.scope()?, query.need("node")?.to_owned());
    let by = query.statistics()?;
    ask(state, id, move |asking| asking.by(by)?.detail(scope, &name)).await
}

async fn findings(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let scope = query.scope()?;
    let mut kinds = Vec::new();
    for word in query.words("kinds") {
        kinds
            .push(FindingKind::of(&word).ok_or_else(|| Fault::bad(format!("{word} is no kind of finding")))?);
    }
    let asked = FindingsAsked {
        kinds,
        leaves: query.is_set("leaves"),
        micro: query.micro()?,
        after: query.number("after")?,
        limit: query.number("limit")?.unwrap_or(2000),
    };
    let by = query.statistics()?;
    ask(state, id, move |asking| asking.by(by)?.findings(scope, &asked)).await
}

async fn jump(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (step, rank) = (query.number("step")?, query.number("rank")?);
    let to = query.need("to")?.to_owned();
    answer(state, move |state, patience| {
        let graph = state.app.graph(&id)?;
        match to.as_str() {
            "first_divergence" => graph.ask(patience, |asking| asking.first_divergence(step, rank)),
            "first_nan" => graph.first_nan(step, rank, patience),
            other => Err(Fault::bad(format!("nobody knows how to jump to {other}"))),
        }
    })
    .await
}

async fn search(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let needle = needle(&query)?;
    let mut asked = SearchAsked {
        needle,
        step: query.number("step")?,
        rank: query.number("rank")?,
        micro: query.micro()?,
        limit: query.number("limit")?.unwrap_or(200),
        ..SearchAsked::default()
    };
    for facet in FACETS {
        let words = query.words(facet);
        if !words.is_empty() {
            asked.filters.insert(facet, words);
        }
    }
    let by = query.statistics()?;
    ask(state, id, move |asking| asking.by(by)?.search(&asked)).await
}

fn needle(query: &Query) -> Result<Option<Needle>, Fault> {
    Needle::new(query.get("q").unwrap_or_default(), query.is_set("regex"), query.is_set("case"))
}

fn pairs_asked(query: &Query) -> Result<PairsAsked, Fault> {
    Ok(PairsAsked {
        needle: needle(query)?,
        tones: query.words("tones"),
        sort: query.get("sort").unwrap_or("order").to_owned(),
        descending: query.is_set("descending"),
        offset: query.number("offset")?.unwrap_or(0),
        limit: query.number("limit")?.unwrap_or(200),
        node: query.get("node").map(str::to_owned),
    })
}

async fn pairs(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (scope, by, asked) = (query.scope()?, query.statistics()?, pairs_asked(&query)?);
    ask(state, id, move |asking| asking.by(by)?.pairs(scope, &asked)).await
}

async fn pairs_csv(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (scope, by, asked) = (query.scope()?, query.statistics()?, pairs_asked(&query)?);
    let csv = work(state, move |state, patience| {
        state.app.graph(&id)?.ask(patience, |asking| asking.by(by)?.pairs_csv(scope, &asked))
    })
    .await?;
    let name = format!("attachment; filename=\"pairs_step{}_rank{}.csv\"", scope.step, scope.rank);
    Ok((
        [(header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)],
        csv,
    )
        .into_response())
}

async fn profile(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let Scope { step, rank, .. } = query.scope()?;
    let by = query.statistics()?;
    ask(state, id, move |asking| asking.by(by)?.profile(step, rank)).await
}

async fn series(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (side, name) = (query.side()?, query.need("node")?.to_owned());
    ask(state, id, move |asking| asking.series(&name, side, query.get("value"), query.get("measure"))).await
}

async fn timeline(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let step = query.number("step")?.unwrap_or(0);
    ask(state, id, move |asking| asking.timeline(step)).await
}

async fn suggestions(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (scope, name) = (query.scope()?, query.need("node")?.to_owned());
    ask(state, id, move |asking| asking.suggestions(scope, &name)).await
}

async fn edits(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let Scope { step, rank, .. } = query.scope()?;
    answer(state, move |state, _| {
        Ok(state.app.graph(&id)?.journal().changed(step, rank, 0, 0, String::new()))
    })
    .await
}

async fn match_pair(Shared(state): App, Path(id): Path<String>, request: Body<MatchBody>) -> Answer {
    let asked = body(request)?;
    let golden = asked.golden.clone().ok_or_else(|| Fault::bad("the question has no golden"))?;
    answer(state, move |state, patience| {
        let roots = state.app.directories();
        let place = (asked.step, asked.rank);
        state.app.graph(&id)?.edit(place, &roots, patience, |matcher| {
            matcher.match_pair(&asked.target, &golden, asked.descendants)
        })
    })
    .await
}

async fn unmatch(Shared(state): App, Path(id): Path<String>, request: Body<MatchBody>) -> Answer {
    let asked = body(request)?;
    answer(state, move |state, patience| {
        let roots = state.app.directories();
        let place = (asked.step, asked.rank);
        state
            .app
            .graph(&id)?
            .edit(place, &roots, patience, |matcher| matcher.unmatch(&asked.target, asked.descendants))
    })
    .await
}

async fn step_back(state: Arc<State>, id: String, request: Body<PlaceBody>, is_undo: bool) -> Answer {
    let asked = body(request)?;
    answer(state, move |state, _| {
        let graph: Arc<OpenGraph> = state.app.graph(&id)?;
        let changed = graph.journal().step_back(asked.step, asked.rank, is_undo);
        Ok(changed)
    })
    .await
}

async fn undo(Shared(state): App, Path(id): Path<String>, request: Body<PlaceBody>) -> Answer {
    step_back(state, id, request, true).await
}

async fn redo(Shared(state): App, Path(id): Path<String>, request: Body<PlaceBody>) -> Answer {
    step_back(state, id, request, false).await
}

async fn save(Shared(state): App, Path(id): Path<String>) -> Answer {
    answer(state, move |state, _| state.app.graph(&id)?.save()).await
}

async fn config_save(Shared(state): App, Path(id): Path<String>, request: Body<PlaceBody>) -> Answer {
    let asked = body(request)?;
    answer(state, move |state, patience| {
        let path = state.app.graph(&id)?.save_config(asked.step, asked.rank, patience)?;
        Ok(serde_json::json!({"path": path.display().to_string()}))
    })
    .await
}

async fn config_apply(Shared(state): App, Path(id): Path<String>, request: Body<PlaceBody>) -> Answer {
    let asked = body(request)?;
    answer(state, move |state, patience| {
        let roots = state.app.directories();
        let pairs =
            asked.pairs.iter().filter_map(|(target, golden)| Some((target.as_str(), golden.as_str()?)));
        state
            .app
            .graph(&id)?
            .edit((asked.step, asked.rank), &roots, patience, |matcher| matcher.match_all(pairs))
    })
    .await
}

async fn gradients(Shared(state): App, Path(id): Path<String>) -> Answer {
    answer(state, move |state, _| catalogue::gradients(&state.app.report(&id)?)).await
}

async fn key_data(Shared(state): App, Path(id): Path<String>) -> Answer {
    answer(state, move |state, _| catalogue::key_data(&state.app.report(&id)?)).await
}

fn trend_asked(query: &Query) -> Result<TrendAsked, Fault> {
    Ok(TrendAsked {
        metric: query.need("metric")?.to_owned(),
        statistic: query.need("statistic")?.to_owned(),
        rank: query.number("rank")?,
        tags: query.words("tags"),
        text: query.get("q").unwrap_or_default().to_owned(),
    })
}

async fn trend_info(Shared(state): App, Path(id): Path<String>) -> Answer {
    answer(state, move |state, patience| state.app.trend(&id, patience)?.info()).await
}

async fn trend_map(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let asked = trend_asked(&query)?;
    answer(state, move |state, patience| state.app.trend(&id, patience)?.map(&asked)).await
}

async fn trend_lines(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let (asked, target) = (trend_asked(&query)?, query.number("target")?);
    let target = target.ok_or_else(|| Fault::bad("the question has no target"))?;
    answer(state, move |state, patience| state.app.trend(&id, patience)?.lines(&asked, target)).await
}

async fn item_tables(Shared(state): App, Path(id): Path<String>) -> Answer {
    answer(state, move |state, _| catalogue::item_tables(&state.app.report(&id)?)).await
}

async fn export_item(Shared(state): App, Path(id): Path<String>, Parts(query): Parts<Query>) -> Answer {
    let scope =
        export::ExportScope { step: query.number("step")?, rank: query.number("rank")?, only: Some(id) };
    let page = work(state, move |state, _| {
        let mut page = Vec::new();
        export::write(&state.app, &scope, &mut page)?;
        Ok(page)
    })
    .await?;
    let kind = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"report.html\""),
    ];
    Ok((kind, page).into_response())
}

async fn report(Shared(state): App, Path(id): Path<String>) -> Answer {
    let page = work(state, move |state, _| read_page(&state.app.page(&id)?)).await?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}

/// A page that is an ordinary file, and not too long.
fn read_page(path: &FilePath) -> Result<Vec<u8>, Fault> {
    use std::io::Read;
    let mut page = Vec::new();
    open_regular(path, Links::Refuse)?.take(MOST_PAGE_BYTES + 1).read_to_end(&mut page)?;
    if page.len() as u64 > MOST_PAGE_BYTES {
        return Err(Fault::bad("the page is too long to be shown here")
            .with_hint(format!("open {} itself", path.display())));
    }
    Ok(page)
}
