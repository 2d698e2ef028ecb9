use duly_core::time::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/","type":"dev.duly.settings.changed.v1",
"subject":"settings","time":"2030-01-31T08:00:00.000Z","datacontenttype":"application/json","data":{"version":2}}"#;

/// Answers requests one after the other, each on a connection that it then closes; returns what was asked.
async fn serve(listener: TcpListener, answers: &[&str]) -> Vec<String> {
    let mut asked = Vec::new();
    for answer in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 16 * 1024];
        let length = stream.read(&mut request).await.unwrap();
        asked.push(String::from_utf8_lossy(&request[..length]).into_owned());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    asked
}

fn stream_of(blocks: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{blocks}"
    )
}

fn event() -> String {
    EVENT.replace('\n', "")
}

#[tokio::test]
async fn a_stream_comes_back_behind_what_it_has_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
    let refused = r#"{"type":"t","title":"t","status":401,"code":"UNAUTHENTICATED","detail":"d"}"#;
    let answers = [
        stream_of(&format!("retry: 1\nid: 1.1\n\nevent: event\nid: 1.2\ndata: {}\n\n", event())),
        "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_owned(),
        stream_of(": heartbeat\nid: 1.3\n\nevent: news\ndata: {}\n\n: heartbeat\n\n"),
        stream_of(
            "event: reset\nid: 2.1\ndata: {}\n\nevent: gone\ndata: {\"topic\":\"task:x\"}\n\n\
                   event: closed\ndata: {\"code\":\"KEY_REVOKED\",\"detail\":\"the key is gone\"}\n\n",
        ),
        format!("HTTP/1.1 401 No\r\ncontent-length: {}\r\n\r\n{refused}", refused.len()),
    ];
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let read = async {
        let query = StreamQuery {
            topics: vec!["events".to_owned(), "task:x".to_owned()],
            filter: "event:settings.changed".to_owned(),
            since: Some("30s".to_owned()),
        };
        let mut stream = client.follow(query).await.unwrap();
        let mut items = Vec::new();
        loop {
            match stream.next().await {
                Ok(item) => items.push(item),
                Err(error) => return (items, error),
            }
        }
    };
    let (asked, (items, error)) = tokio::join!(serve(listener, &answers), read);
    assert_eq!(error.code(), Some("UNAUTHENTICATED"));
    let told = |item: &StreamItem| match item {
        StreamItem::Event(event) => {
            assert!(event.time > Timestamp::EPOCH);
            event.r#type.clone()
        }
        StreamItem::Gone(topic) => format!("gone {topic}"),
        StreamItem::Reset => "reset".to_owned(),
        StreamItem::Interrupted(why) => format!("interrupted: {why}"),
        StreamItem::Resumed => "resumed".to_owned(),
        other => panic!("{other:?}"),
    };
    let told: Vec<_> = items.iter().map(told).collect();
    assert_eq!(told[0], "dev.duly.settings.changed.v1");
    assert!(told[1].starts_with("interrupted") && told[2].contains("status 503"), "{told:?}");
    assert_eq!(told[3], "resumed");
    assert!(told[4].starts_with("interrupted"), "{told:?}");
    let last = ["resumed", "reset", "gone task:x", "interrupted: the key is gone"];
    assert_eq!(told[5..], last);
    let place = |asked: &str| {
        let line = asked.lines().find_map(|line| line.strip_prefix("last-event-id: "));
        line.map(str::to_owned)
    };
    let places: Vec<_> = asked.iter().map(|asked| place(asked)).collect();
    let expected = [None, Some("1.2"), Some("1.2"), Some("1.3"), Some("2.1")];
    assert_eq!(places, expected.map(|place| place.map(str::to_owned)));
    let first =
        "GET /v1/events?topics=events%2Ctask%3Ax&filter=event%3Asettings.changed&since=30s ";
    assert!(asked[0].starts_with(first), "{}", asked[0]);
    assert!(asked[1..].iter().all(|asked| !asked.contains("since=")), "{asked:?}");
}

#[tokio::test]
async fn a_stream_that_cannot_begin_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
    drop(listener);
    let query = StreamQuery { topics: vec!["stats".to_owned()], ..StreamQuery::default() };
    assert!(matches!(client.follow(query).await, Err(Error::Unreachable { .. })));
}
