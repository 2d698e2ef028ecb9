//! Serves the routes on a socket, over HTTP/1 and HTTP/2, with a limit on every resource that a
//! peer could hold.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::config::Config;
use crate::peer::ConnectedFrom;
use crate::tls::Tls;

mod activity;
mod places;

use activity::{ActiveRequest, ConnectionActivity, StreamedBody, Usage};
use places::Places;

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// Headers of a request.
const HEADERS: usize = 100;
/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 32;
/// How often a silent HTTP/2 peer gets a ping, and how long its answer may take.
const PING: Duration = Duration::from_secs(20);
/// The largest complete answer whose sending is not watched.
const AT_ONCE: u64 = 1 << 20;
/// The pause after an accept that failed for lack of resources, such as file descriptors.
const BACK_OFF: Duration = Duration::from_millis(200);

/// Serves until `shutdown`. Then it accepts no connections, lets requests finish within the grace
/// period, and closes the rest.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: Config,
    shutdown: CancellationToken,
) {
    let tasks = Tasks { tracker: TaskTracker::new(), abort: CancellationToken::new() };
    let builder = builder(&config, tasks.clone());
    let total = Arc::new(Semaphore::new(config.connections));
    let limits = &config.limits;
    let places = Places::new(limits.connections_per_address, limits.proxies.clone());
    loop {
        let (stream, address, permit) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &total) => accepted,
        };
        let Some(place) = places.take(address.ip(), permit) else { continue };
        let connection = Connection {
            router: router.clone(),
            builder: builder.clone(),
            shutdown: shutdown.clone(),
            header_timeout: config.header_timeout,
            idle_timeout: config.idle_timeout,
            tls: config.tls.clone(),
        };
        tasks.spawn(async move {
            connection.begin(stream, address).await;
            drop(place);
        });
    }
    drop(listener);
    tasks.end(config.shutdown_grace).await;
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address, place),
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

/// Whether one connection failed before it could be accepted, and others may not.
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

/// All tasks of connections, so that shutdown can wait for them and end them.
#[derive(Clone)]
struct Tasks {
    tracker: TaskTracker,
    abort: CancellationToken,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        // Boxed, since the wait for its end would hold it three times over: 20 kB for each connection.
        let task = Box::pin(task);
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
    tls: Option<Tls>,
}

impl Connection {
    async fn begin(self, stream: TcpStream, address: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else { return self.serve(stream, address).await };
        let handshake = tls.acceptor().accept(stream);
        match tokio::time::timeout(self.header_timeout, handshake).await {
            Ok(Ok(stream)) => self.serve(stream, address).await,
            Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
            // The peer says nothing.
            Err(_) => {}
        }
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        address: SocketAddr,
    ) {
        let activity = Arc::new(ConnectionActivity::default());
        let service = service_fn(|mut received: hyper::Request<Incoming>| {
            received.extensions_mut().insert(ConnectedFrom(address.ip()));
            answer(self.router.clone(), ActiveRequest::begin(&activity), received)
        });
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
                () = check.as_mut() => match activity.check() {
                    // The HTTP library's own time-out starts only once it knows the version of
                    // HTTP. So a peer that sends nothing, or half a preface, is closed here.
                    Usage::Unused => return,
                    // The graceful shutdown has not ended the connection: the peer does not read
                    // its answer.
                    Usage::Idle if was_idle => return,
                    Usage::Idle => (is_closing, was_idle) = (true, true),
                    Usage::Busy => {}
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
    request: ActiveRequest,
    received: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let response = router.call(received).await;
    // A small body that is complete is sent at once, and its request ends here. The request of any
    // other body is active until the body ends.
    response.map(|response| match response.body().size_hint().exact() {
        Some(bytes) if bytes <= AT_ONCE => response,
        _ => response.map(|body| Body::new(StreamedBody::new(body, request))),
    })
}
