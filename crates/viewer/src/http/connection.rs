//! Connections: so many at a time, each of them for as long as its other end does something.

use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};

use super::State;
use super::routes::router;

/// Connections at a time; others wait to be accepted.
const MOST_CONNECTIONS: usize = 128;
/// A request line and its headers have to be there after this.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// The other end has to take or give something within this.
const PATIENCE: Duration = Duration::from_secs(90);
/// Bytes of request headers.
const HEADER_BYTES: usize = 32 * 1024;

pub(super) async fn serve(
    listener: TcpListener,
    state: Arc<State>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let app = router(state);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(()) };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        // Out of descriptors, or gone already: neither ends the server.
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(app.clone());
        tokio::spawn(async move {
            let io = TokioIo::new(Patient::new(stream, PATIENCE));
            // Whatever goes wrong with a connection concerns nobody but its other end.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_PATIENCE)
                .max_buf_size(HEADER_BYTES)
                .serve_connection(io, service)
                .await;
            drop(place);
        });
    }
}

/// A stream that ends when nothing moves for too long.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    waiting: Pin<Box<Sleep>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient { stream, patience, waiting: Box::pin(tokio::time::sleep(patience)) }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting.as_mut().reset(Instant::now() + self.patience);
            return polled;
        }
        match self.waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient<TcpStream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.judge(context, polled)
    }
}

impl AsyncWrite for Patient<TcpStream> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Read;

    use super::*;

    /// Both ends of a connection, the first one with little patience.
    async fn ends() -> (Patient<TcpStream>, std::net::TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (Patient::new(stream, Duration::from_millis(500)), other)
    }

    async fn write_all(own: &mut Patient<TcpStream>, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|context| Pin::new(&mut *own).poll_write(context, bytes)).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn who_takes_nothing_is_not_written_to_for_ever() {
        run(async {
            let (mut own, _other) = ends().await;
            let ended = write_all(&mut own, &vec![0; 64 << 20]).await.unwrap_err();
            assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn who_takes_little_by_little_gets_everything() {
        run(async {
            let (mut own, mut other) = ends().await;
            let bytes = 48 << 20;
            // Longer than the patience, but never without taking something.
            let reading = std::thread::spawn(move || {
                let (mut got, mut piece) = (0, vec![0; 1 << 19]);
                while got < bytes {
                    got += other.read(&mut piece).unwrap();
                    std::thread::sleep(Duration::from_millis(15));
                }
            });
            let began = Instant::now();
            write_all(&mut own, &vec![0; bytes]).await.unwrap();
            assert!(began.elapsed() > own.patience, "slow enough to be told from being fast");
            reading.join().unwrap();
        });
    }

    #[test]
    fn who_says_nothing_is_not_listened_to_for_ever() {
        run(async {
            let (mut own, _other) = ends().await;
            let mut bytes = [0; 8];
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = poll_fn(|context| Pin::new(&mut own).poll_read(context, &mut buffer)).await;
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
