//! Every way to ask wrongly, over a real socket: a 4xx with its code, nothing stored, and other
//! callers unharmed.

use duly_core::limits::{BATCH_ITEMS, BODY_BYTES, PAYLOAD_BYTES};
use duly_testkit::raw::{Answer, Connection};

use super::start;

/// Method, path, header lines, body; status and code of the answer.
type Case = (&'static str, &'static str, String, Vec<u8>, u16, &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn s18_bad_input_over_the_wire() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = start(data.path()).await?;
    let cases = bodies().into_iter().chain(sizes()).chain(questions()).chain(heads());
    let mut count = 0;
    for (method, path, headers, body, status, code) in cases {
        let mut connection = Connection::open(server.url()).await?;
        let answer = connection.ask(method, path, &headers, &body).await?;
        let about = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let found = (answer.status, answer.code());
        assert_eq!(found, (status, code.to_owned()), "{method} {path} {about}: {answer:?}");
        assert!(answer.header("x-request-id").is_some(), "{answer:?}");
        count += 1;
    }
    assert!(count >= 60, "only {count} cases");
    let mut connection = Connection::open(server.url()).await?;
    assert_eq!(server.all_tasks().await?.len(), 0, "something bad was stored");

    let mixed = r#"[{"type":"echo"},{"type":"echo","priority":-1},7,{"type":"echo","x":1}]"#;
    let answer = connection.post("/v1/tasks/batch", mixed.as_bytes()).await?;
    assert_eq!(answer.status, 207, "{answer:?}");
    assert_eq!(codes_of(&answer), ["", "INVALID_FIELDS", "INVALID_FIELDS", "INVALID_FIELDS"]);
    assert_eq!(server.all_tasks().await?.len(), 1, "only the good item is stored");
    assert!(server.client().ready().await?.is_ready());
    let (status, said) = server.interrupt().await?;
    assert!(status.success(), "{said}");
    assert!(!said.contains("panicked") && !said.contains("ERROR"), "{said}");
    Ok(())
}

fn codes_of(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let items = json["items"].as_array().expect("a batch answers with items");
    let code = |item: &serde_json::Value| item["problem"]["code"].as_str().map(str::to_owned);
    items.iter().map(|item| code(item).unwrap_or_default()).collect()
}

fn post(path: &'static str, body: &[u8], status: u16, code: &'static str) -> Case {
    let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    ("POST", path, headers, body.to_vec(), status, code)
}

fn get(path: &'static str, status: u16, code: &'static str) -> Case {
    ("GET", path, String::new(), Vec::new(), status, code)
}

/// Bodies that are no JSON or no task.
fn bodies() -> Vec<Case> {
    const MALFORMED: [&[u8]; 9] = [
        b"",
        b"{",
        b"nul",
        b"\0",
        b"{'type':'echo'}",
        b"{\"type\":\"echo\"}}",
        b"{\"type\":\"e\0cho\"}",
        b"{\"type\":\"echo\",\"payload\":\"\xff\xfe\"}",
        b"\xef\xbb\xbf{\"type\":\"echo\"}",
    ];
    const INVALID: [&str; 23] = [
        "[]",
        "7",
        "null",
        "{}",
        r#"{"type":7}"#,
        r#"{"type":""}"#,
        r#"{"type":"echo!"}"#,
        r#"{"type":"e\u0000cho"}"#,
        r#"{"type":"\ud800"}"#,
        r#"{"type":"echo","type":"echo"}"#,
        r#"{"type":"echo","tenant":"other"}"#,
        r#"{"type":"echo","priority":"5"}"#,
        r#"{"type":"echo","priority":-1}"#,
        r#"{"type":"echo","priority":10}"#,
        r#"{"type":"echo","priority":1.5}"#,
        r#"{"type":"echo","retries":1e400}"#,
        r#"{"type":"echo","retries":-99999999999999999999}"#,
        r#"{"type":"echo","delaySeconds":-0.001}"#,
        r#"{"type":"echo","delaySeconds":1e300}"#,
        r#"{"type":"echo","timeoutSeconds":0}"#,
        r#"{"type":"echo","runAt":"tomorrow"}"#,
        r#"{"type":"echo","runAt":"9999-12-31T23:59:59Z"}"#,
        r#"{"type":"echo","labels":{"a":1}}"#,
    ];
    let malformed = MALFORMED.iter().flat_map(|body| {
        [
            post("/v1/tasks", body, 400, "MALFORMED_JSON"),
            post("/tasks/batch", body, 400, "MALFORMED_JSON"),
        ]
    });
    let invalid =
        INVALID.iter().map(|body| post("/v1/tasks", body.as_bytes(), 422, "INVALID_FIELDS"));
    let mut cases: Vec<_> = malformed.chain(invalid).collect();
    let both = br#"{"type":"echo","runAt":"2030-01-01T00:00:00Z","delaySeconds":1}"#;
    cases.push(post("/v1/tasks", both, 422, "INVALID_FIELDS"));
    let unsupported = br#"{"type":"echo","notify":[]}"#;
    cases.push(post("/v1/tasks", unsupported, 422, "UNSUPPORTED_FIELD"));
    let nul = br#"{"type":"echo","payload":{"a":"\u0000"}}"#;
    cases.push(post("/v1/tasks", nul, 422, "INVALID_FIELDS"));
    cases
}

/// Bodies that are too large, too deep or too many.
fn sizes() -> Vec<Case> {
    const DEPTH: usize = 100_000;
    let bomb = format!(r#"{{"type":"echo","payload":{}{}}}"#, "[".repeat(DEPTH), "]".repeat(DEPTH));
    let open = format!(r#"{{"type":"echo","payload":{}"#, "[".repeat(DEPTH));
    let payload = format!(r#"{{"type":"echo","payload":"{}"}}"#, "x".repeat(PAYLOAD_BYTES));
    let items = format!("[{}]", vec![r#"{"type":"echo"}"#; BATCH_ITEMS + 1].join(","));
    let long = vec![b' '; BODY_BYTES + 1];
    let key = "k".repeat(256);
    let key = format!(r#"{{"type":"echo","idempotencyKey":"{key}"}}"#);
    let chunk = [format!("{:x}\r\n", 64 * 1024).into_bytes(), vec![b' '; 64 * 1024]].concat();
    let chunked = [[&chunk[..], b"\r\n"].concat().repeat(20), b"0\r\n\r\n".to_vec()].concat();
    let headers = "content-type: application/json\r\ntransfer-encoding: chunked\r\n".to_owned();
    vec![
        post("/v1/tasks", bomb.as_bytes(), 422, "INVALID_FIELDS"),
        post("/v1/tasks", open.as_bytes(), 400, "MALFORMED_JSON"),
        post("/v1/tasks", payload.as_bytes(), 413, "PAYLOAD_TOO_LARGE"),
        post("/v1/tasks", &long, 413, "BODY_TOO_LARGE"),
        post("/v1/tasks", key.as_bytes(), 422, "INVALID_FIELDS"),
        post("/v1/tasks/batch", items.as_bytes(), 413, "TOO_MANY_ITEMS"),
        post("/v1/tasks/batch", br#"{"items":[]}"#, 422, "INVALID_FIELDS"),
        ("POST", "/v1/tasks", headers, chunked, 413, "BODY_TOO_LARGE"),
    ]
}

/// Paths and parameters that cannot be.
fn questions() -> Vec<Case> {
    vec![
        get("/v1/tasks/01920000-0000-7000-8000-000000000000", 404, "TASK_NOT_FOUND"),
        get("/v1/tasks/01920000-0000-7000-8000-000000000000?wait=1s", 404, "TASK_NOT_FOUND"),
        get("/v1/tasks/1", 404, "TASK_NOT_FOUND"),
        get("/v1/tasks/%ff%fe", 404, "TASK_NOT_FOUND"),
        get("/v1/tasks/..%2f..%2fetc%2fpasswd", 404, "TASK_NOT_FOUND"),
        get("/v1/tasks/01920000-0000-7000-8000-000000000000?wait=-1s", 400, "INVALID_PARAMETER"),
        get("/v1/tasks/01920000-0000-7000-8000-000000000000?wait=9h", 400, "INVALID_PARAMETER"),
        get("/v1/tasks?limit=0", 400, "INVALID_PARAMETER"),
        get("/v1/tasks?limit=201", 400, "INVALID_PARAMETER"),
        get("/v1/tasks?limit=99999999999999999999", 400, "INVALID_PARAMETER"),
        get("/v1/tasks?limit=1&limit=1", 400, "INVALID_PARAMETER"),
        get("/v1/tasks?tenant=other", 400, "INVALID_PARAMETER"),
        get("/v1/tasks?cursor=", 400, "INVALID_CURSOR"),
        get("/v1/tasks?cursor=%27%20or%201%3D1", 400, "INVALID_CURSOR"),
        // Well formed, but made for the list of another tenant.
        get("/v1/tasks?cursor=AQAAAAAAAAAAAZIAAAAAcACAAAAAAAAAAA", 400, "INVALID_CURSOR"),
        get("/v1/nothing", 404, "NOT_FOUND"),
        ("DELETE", "/v1/tasks", String::new(), Vec::new(), 405, "METHOD_NOT_ALLOWED"),
    ]
}

/// Heads that promise something else than they should.
fn heads() -> Vec<Case> {
    let body = br#"{"type":"echo"}"#.to_vec();
    let with = |header: &str| format!("{header}\r\ncontent-length: {}\r\n", body.len());
    let json = |header: &str| with(&format!("content-type: application/json\r\n{header}"));
    let case =
        |headers: String, status, code| ("POST", "/v1/tasks", headers, body.clone(), status, code);
    vec![
        case(with("x-nothing: 1"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        case(with("content-type: text/plain"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        case(json("content-encoding: gzip"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        case(json("idempotency-key: \"open"), 422, "INVALID_FIELDS"),
        case(json("idempotency-key: a\r\nidempotency-key: b"), 422, "INVALID_FIELDS"),
        case(json("origin: http://evil.example"), 403, "CROSS_SITE"),
        case(json("sec-fetch-site: cross-site"), 403, "CROSS_SITE"),
        case(json("host: evil.example"), 400, "MISSING_HOST"),
    ]
}
