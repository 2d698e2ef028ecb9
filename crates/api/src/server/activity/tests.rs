use std::task::Waker;

use futures_util::stream;
use tokio::sync::mpsc;

use super::*;

type Pieces = mpsc::UnboundedSender<Result<Bytes, std::io::Error>>;

fn activity() -> Arc<ConnectionActivity> {
    Arc::default()
}

/// A body whose pieces a test sends, and its connection's activity after a check.
fn streamed() -> (Pieces, StreamedBody, Arc<ConnectionActivity>) {
    let activity = activity();
    let (pieces, receiver) = mpsc::unbounded_channel();
    let stream = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    let request = ActiveRequest::begin(&activity);
    let body = StreamedBody::new(Body::from_stream(stream), request);
    assert_eq!(activity.check(), Usage::Busy);
    (pieces, body, activity)
}

fn poll(body: &mut StreamedBody) -> Poll<bool> {
    let frame = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
    frame.map(|frame| frame.is_some())
}

#[test]
fn a_connection_is_busy_while_a_request_is_answered() {
    let activity = activity();
    assert_eq!(activity.check(), Usage::Unused);
    let request = ActiveRequest::begin(&activity);
    for _ in 0..3 {
        assert_eq!(activity.check(), Usage::Busy);
    }
    drop(request);
    assert_eq!(activity.check(), Usage::Idle);
    drop(ActiveRequest::begin(&activity));
    assert_eq!([activity.check(), activity.check()], [Usage::Busy, Usage::Idle]);
}

#[test]
fn a_stream_with_nothing_to_send_is_busy() {
    let (pieces, mut body, activity) = streamed();
    assert_eq!(poll(&mut body), Poll::Pending);
    for _ in 0..3 {
        assert_eq!(activity.check(), Usage::Busy);
    }
    pieces.send(Ok(Bytes::from_static(b"x"))).unwrap();
    assert_eq!(poll(&mut body), Poll::Ready(true));
    assert_eq!(poll(&mut body), Poll::Pending);
    assert_eq!([activity.check(), activity.check()], [Usage::Busy, Usage::Busy]);
    drop(pieces);
    assert_eq!(poll(&mut body), Poll::Ready(false));
    drop(body);
    assert_eq!([activity.check(), activity.check()], [Usage::Busy, Usage::Idle]);
}

#[test]
fn a_stream_that_is_not_read_is_idle() {
    let (pieces, mut body, activity) = streamed();
    assert_eq!(activity.check(), Usage::Idle, "the first piece was not even asked for");
    pieces.send(Ok(Bytes::from_static(b"x"))).unwrap();
    pieces.send(Ok(Bytes::from_static(b"y"))).unwrap();
    assert_eq!(poll(&mut body), Poll::Ready(true));
    assert_eq!([activity.check(), activity.check()], [Usage::Busy, Usage::Idle]);
    assert_eq!(poll(&mut body), Poll::Ready(true));
    assert_eq!([activity.check(), activity.check()], [Usage::Busy, Usage::Idle]);
    let other = ActiveRequest::begin(&activity);
    assert_eq!([activity.check(), activity.check()], [Usage::Busy, Usage::Busy]);
    drop((other, body));
    assert_eq!(activity.check(), Usage::Idle);
}
