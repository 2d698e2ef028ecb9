//! The routes on a socket: HTTP/1 and HTTP/2 with a bound on everything a peer could hold.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::config::Config;

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// Headers of a request.
const HEADERS: usize = 100;
/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 32;
/// How often a silent HTTP/2 peer is asked whether it is there, and how long it may take.
const PING: Duration = Duration::from_secs(20);
/// An answer up to this size is sent at once.
const AT_ONCE: u64 = 1 << 20;
/// The pause after an accept that failed for want of something that others must give back.
const BACK_OFF: Duration = Duration::from_millis(200);

/// Serves until `shutdown`; then accepts nobody, lets requests finish within the grace, and
/// closes what is left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: Config,
    shutdown: CancellationToken,
) {
    let tasks = Tasks { tracker: TaskTracker::new(), abort: CancellationToken::new() };
    let builder = builder(&config, tasks.clone());
    let places = Arc::new(Semaphore::new(config.connections));
    loop {
        let (stream, place) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let connection = Connection {
            router: router.clone(),
            builder: builder.clone(),
            shutdown: shutdown.clone(),
            header_timeout: config.header_timeout,
            idle_timeout: config.idle_timeout,
        };
        tasks.spawn(async move {
            connection.serve(stream).await;
            drop(place);
        });
    }
    drop(listener);
    tasks.end(config.shutdown_grace).await;
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

/// Whether only the one connection failed, before it could be accepted.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

fn builder(config: &Config, tasks: Tasks) -> auto::Builder<Tasks> {
    let mut builder = auto::Builder::new(tasks);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(HEAD_BYTES).expect("the limit is small"))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

/// Everything that runs for connections, so that shutdown can wait for it and end it.
#[derive(Clone)]
struct Tasks {
    tracker: TaskTracker,
    abort: CancellationToken,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        self.tracker.spawn(async move { abort.run_until_cancelled(task).await });
    }

    async fn end(self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            tracing::warn!(left = self.tracker.len(), "closing connections that did not finish");
            self.abort.cancel();
            self.tracker.wait().await;
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

struct Connection {
    router: Router,
    builder: auto::Builder<Tasks>,
    shutdown: CancellationToken,
    header_timeout: Duration,
    idle_timeout: Duration,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let activity = Arc::new(Activity::default());
        let service =
            service_fn(|request| answer(self.router.clone(), Request::begin(&activity), request));
        let mut connection = pin!(self.builder.serve_connection(TokioIo::new(stream), service));
        let (mut is_closing, mut was_idle) = (false, false);
        let mut check = pin!(tokio::time::sleep(self.header_timeout));
        loop {
            tokio::select! {
                result = connection.as_mut() => {
                    if let Err(error) = result {
                        tracing::debug!(error = &*error, "connection failed");
                    }
                    return;
                }
                () = self.shutdown.cancelled(), if !is_closing => is_closing = true,
                () = check.as_mut() => match activity.look() {
                    // The protocol's own time-out starts only once the protocol is known, so
                    // a peer that says nothing, or half a preface, is ended here.
                    Seen::Nothing => return,
                    // Told to close and still here: a peer that does not read its answer.
                    Seen::Idle if was_idle => return,
                    Seen::Idle => (is_closing, was_idle) = (true, true),
                    Seen::Busy => {}
                },
            }
            if is_closing {
                connection.as_mut().graceful_shutdown();
            }
            if check.is_elapsed() {
                let pause = if was_idle { self.header_timeout } else { self.idle_timeout };
                check.as_mut().reset(Instant::now() + pause);
            }
        }
    }
}

async fn answer(
    mut router: Router,
    running: Request,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let response = router.call(request).await;
    let activity = Arc::clone(&running.0);
    drop(running);
    // A body that is there as a whole is sent at once; one that comes piece by piece keeps its
    // connection for as long as pieces come.
    response.map(|response| match response.body().size_hint().exact() {
        Some(bytes) if bytes <= AT_ONCE => response,
        _ => response.map(|body| Body::new(Streamed { body, activity })),
    })
}

/// A body whose pieces count as activity.
struct Streamed {
    body: Body,
    activity: Arc<Activity>,
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.activity.pieces.fetch_add(1, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Counts the requests of one connection.
#[derive(Default)]
struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
    /// How many had begun at the last look.
    seen: AtomicU64,
    /// Pieces of long answers that were sent, and how many there were at the last look.
    pieces: AtomicU64,
    pieces_seen: AtomicU64,
}

/// What happened on a connection since the last look.
enum Seen {
    /// Not one request, ever.
    Nothing,
    /// No new request, none is being answered, and no piece of an answer was sent.
    Idle,
    Busy,
}

impl Activity {
    fn look(&self) -> Seen {
        let ended = self.ended.load(Ordering::Relaxed);
        let begun = self.begun.load(Ordering::Relaxed);
        let seen = self.seen.swap(begun, Ordering::Relaxed);
        let pieces = self.pieces.load(Ordering::Relaxed);
        let sent = pieces != self.pieces_seen.swap(pieces, Ordering::Relaxed);
        match begun {
            0 => Seen::Nothing,
            _ if begun == seen && begun == ended && !sent => Seen::Idle,
            _ => Seen::Busy,
        }
    }
}

/// One request that is being answered; also one that is given up counts as ended.
struct Request(Arc<Activity>);

impl Request {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}
