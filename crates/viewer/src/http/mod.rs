//! The server: connections that end, requests that are looked at before anything is done, and routes.

mod connection;
mod guard;
mod questions;
mod routes;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use self::guard::Guard;
use crate::app::App;
use crate::fault::Fault;

/// What is served, and to whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to look for things to show.
    pub paths: Vec<PathBuf>,
    /// The address to listen on.
    pub bind: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// Whether others than this machine may be served.
    pub allow_remote: bool,
}

/// Ends a server.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Now. Requests under way get a moment.
    pub fn now(&self) {
        self.0.send_replace(true);
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    state: Arc<State>,
    url: String,
    stop: watch::Sender<bool>,
}

/// What requests are answered with.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) app: App,
    pub(crate) guard: Guard,
    /// Questions that are answered at a time.
    pub(crate) workers: Arc<tokio::sync::Semaphore>,
}

impl Server {
    /// Listens. Nothing is looked for before somebody asks.
    pub fn bind(options: &Options) -> Result<Server, Fault> {
        if !options.bind.is_loopback() && !options.allow_remote {
            return Err(Fault::bad(format!("{} can be reached from other machines", options.bind))
                .with_hint("add --allow-remote if that is wanted: then a token is asked for"));
        }
        let app = App::new(&options.paths)?;
        let address = SocketAddr::new(options.bind, options.port);
        let listener = TcpListener::bind(address).map_err(|error| {
            Fault::bad(format!("cannot listen on {address}: {error}"))
                .with_hint("choose another port, or leave it out for any that is free")
        })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let guard = Guard::new(address, !options.bind.is_loopback())?;
        let url = guard.url();
        let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 8);
        let state = State { app, guard, workers: Arc::new(tokio::sync::Semaphore::new(workers)) };
        Ok(Server { listener, state: Arc::new(state), url, stop: watch::Sender::new(false) })
    }

    /// Where to look, with the token if one is needed.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server from elsewhere.
    pub fn stop(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Serves until it is stopped.
    pub fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(16)
            .thread_name("viewer")
            .build()?;
        let served = runtime.block_on(connection::serve(self.listener, self.state, self.stop.subscribe()));
        runtime.shutdown_timeout(Duration::from_secs(1));
        served
    }
}
