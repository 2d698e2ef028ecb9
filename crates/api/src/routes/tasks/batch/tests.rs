use super::*;
use crate::error::Code;

async fn codes(body: &str, format: Format) -> Result<Vec<Option<Code>>, Code> {
    let (specs, refusals) =
        read(body.as_bytes(), format, |_| Ok(())).await.map_err(|error| error.code())?;
    let codes: Vec<_> =
        refusals.into_iter().map(|refused| refused.map(|error| error.code())).collect();
    assert_eq!(specs.len(), codes.iter().filter(|code| code.is_none()).count());
    Ok(codes)
}

const LINES: Format = Format::Lines("application/x-ndjson");

#[tokio::test]
async fn items_are_judged_one_by_one() {
    let body = r#" [{"type":"a"}, {"type":"!"}, 7, {"type":"b","payload":[1, 2]}] "#;
    let bad = Some(Code::InvalidFields);
    assert_eq!(codes(body, Format::Array).await, Ok(vec![None, bad, bad, None]));
    let body = "{\"type\":\"a\"}\r\n\n{oops\n{\"type\":\"\u{e9}\"}\n  \n{\"type\":\"b\"}";
    let expected = vec![None, Some(Code::MalformedJson), bad, None];
    assert_eq!(codes(body, LINES).await, Ok(expected));
}

#[tokio::test]
async fn a_body_that_is_no_batch_is_refused_whole() {
    for (body, code) in [
        ("", Code::MalformedJson),
        ("[", Code::MalformedJson),
        (r#"[{"type":"a"},{"type":}]"#, Code::MalformedJson),
        (r#"[{"type":"a"}]x"#, Code::MalformedJson),
        (r#"[{"type":"a"},]"#, Code::MalformedJson),
        (r#"{"type":"a"}"#, Code::InvalidFields),
        ("null", Code::InvalidFields),
    ] {
        assert_eq!(codes(body, Format::Array).await, Err(code), "{body}");
    }
    assert_eq!(codes("[]", Format::Array).await, Ok(vec![]));
    assert_eq!(codes("\n\n", LINES).await, Ok(vec![]));
}

#[tokio::test]
async fn the_limit_is_exact() {
    for (count, expected) in [(10_000, Ok(10_000)), (10_001, Err(Code::TooManyItems))] {
        let array = format!("[{}]", vec![r#"{"type":"a"}"#; count].join(","));
        let lines = "{\"type\":\"a\"}\n".repeat(count);
        assert_eq!(codes(&array, Format::Array).await.map(|codes| codes.len()), expected);
        assert_eq!(codes(&lines, LINES).await.map(|codes| codes.len()), expected);
    }
    let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(codes(&deep, Format::Array).await, Ok(vec![Some(Code::InvalidFields)]));
}
