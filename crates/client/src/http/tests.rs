use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Answers one request with fixed bytes and returns the request.
async fn answer_once(listener: TcpListener, answer: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut asked = vec![0; 16 * 1024];
    let length = stream.read(&mut asked).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&asked[..length]).into_owned()
}

async fn local() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, Client::new(&url, Some("secret")).unwrap())
}

#[test]
fn addresses_that_cannot_work_are_refused_at_once() {
    for url in ["", "localhost:8080", "ftp://x", "http://", "http://x/?a=1", "http://x/#a"] {
        assert!(matches!(Client::new(url, None), Err(Error::BadAddress { .. })), "{url}");
    }
    assert!(matches!(Client::new("http://x", Some("a\nb")), Err(Error::BadToken)));
}

#[test]
fn a_path_in_the_address_is_kept() {
    for base in ["http://h/duly", "http://h/duly/"] {
        let client = Client::new(base, None).unwrap();
        assert_eq!(client.url(&["v1", "tasks"]).as_str(), "http://h/duly/v1/tasks");
    }
}

#[tokio::test]
async fn a_problem_keeps_its_code() {
    let (listener, client) = local().await;
    let body = concat!(
        "HTTP/1.1 422 Unprocessable\r\ncontent-length: 82\r\n\r\n",
        r#"{"type":"urn:duly:error:X","title":"t","status":422,"code":"X_Y","detail":"do z"} "#,
    );
    let task = SubmitRequest::new("email");
    let (asked, answer) = tokio::join!(answer_once(listener, body), client.submit(&task));
    assert!(asked.starts_with("POST /v1/tasks HTTP/1.1"), "{asked}");
    assert!(asked.contains("authorization: Bearer secret"), "{asked}");
    assert_eq!(answer.unwrap_err().code(), Some("X_Y"));
}

#[tokio::test]
async fn an_error_carries_the_delay_that_the_server_asks_for() {
    for (head, wait) in
        [("retry-after: 7\r\n", Some(7)), ("retry-after: soon\r\n", None), ("", None)]
    {
        for body in ["busy", r#"{"type":"t","title":"t","status":503,"code":"X","detail":"d"}"#] {
            let (listener, client) = local().await;
            let length = body.len();
            let answer =
                format!("HTTP/1.1 503 Busy\r\n{head}content-length: {length}\r\n\r\n{body}");
            let (_, answer) = tokio::join!(answer_once(listener, &answer), client.version());
            let error = answer.unwrap_err();
            assert_eq!(error.retry_after(), wait.map(Duration::from_secs), "{head}{body}");
            assert!(error.is_retryable() && error.status() == Some(503), "{error}");
        }
    }
}

#[tokio::test]
async fn another_server_is_not_taken_for_duly() {
    let (listener, client) = local().await;
    let body = "HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nnope!";
    let (_, answer) = tokio::join!(answer_once(listener, body), client.version());
    assert!(matches!(answer, Err(Error::Unexpected { status: 404, .. })));
}

#[tokio::test]
async fn an_unreachable_server_error_says_what_to_start() {
    let (listener, client) = local().await;
    drop(listener);
    let error = client.version().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }));
    assert!(error.to_string().contains("`duly dev`"), "{error}");
}
