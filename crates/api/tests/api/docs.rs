//! The viewer and what the server says of itself.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::Value;

use crate::support::{Hand, ask, engine, get, operations, request, router, router_over};

#[tokio::test]
async fn the_root_leads_to_the_viewer() {
    let router = router();
    let answer = ask(&router, get("/")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["location"]),
        (307, &"/docs".parse().unwrap())
    );
    let answer = ask(&router, get("/docs")).await;
    assert_eq!(answer.headers["location"], "/docs/");
}

#[tokio::test]
async fn s25_the_viewer_loads_nothing_from_other_hosts() {
    let router = router();
    let answer = ask(&router, get("/docs/")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/html");
    let page = String::from_utf8(answer.body).unwrap();
    assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    let csp = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(csp.contains("script-src 'self';") && csp.contains("connect-src 'self'"), "{csp}");
    // No inline script: the policy would stop it.
    assert_eq!(page.matches("<script").count(), page.matches("<script src=").count());
    for file in ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-initializer.js"] {
        assert!(page.contains(file), "{file}");
        assert_eq!(ask(&router, get(&format!("/docs/{file}"))).await.status, 200, "{file}");
    }
    let script = ask(&router, get("/docs/swagger-initializer.js")).await;
    let script = String::from_utf8(script.body).unwrap();
    assert!(script.contains("\"/openapi.json\""), "{script}");
    assert!(script.contains(r#""validatorUrl": "none""#), "{script}");
}

#[tokio::test]
async fn the_server_says_who_it_is() {
    let router = router();
    for path in ["/version", "/v1/version"] {
        let answer = ask(&router, get(path)).await;
        assert_eq!(answer.json()["name"], "duly");
        assert_eq!(answer.json()["api"], "v1");
    }
    assert_eq!(ask(&router, get("/livez")).await.json()["status"], "live");
}

/// The example of a body as the viewer fills it in: its own, or that of its schema.
fn example(content: &Value) -> Value {
    if let Some(own) = content.get("example") {
        return own.clone();
    }
    let schema = &content["schema"];
    let of = |schema: &Value| schema["$ref"].as_str().map(str::to_owned);
    let either = schema["oneOf"].as_array().and_then(|some| some.iter().find_map(of));
    let name = of(schema).or(either).unwrap_or_else(|| panic!("no example: {schema}"));
    let name = name.rsplit('/').next().unwrap().to_owned();
    let document = serde_json::to_value(duly_api::document()).unwrap();
    let example = document["components"]["schemas"][&name]["example"].clone();
    assert!(!example.is_null(), "{name} has no example");
    example
}

/// What the viewer sends for an operation on the first "Try it out".
fn prefilled(method: &Method, path: &str, operation: &Value) -> Vec<Request<Body>> {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let given = |place: &str| {
        let there = parameters.iter().filter(move |it| it["in"] == place);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let filled = there.filter(|it| it.get("example").is_some());
        let pairs = filled.map(|it| (it["name"].as_str().unwrap(), text(&it["example"])));
        pairs.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
    };
    let query: Vec<_> = given("query")
        .iter()
        .map(|(name, value)| format!("{name}={}", value.replace(' ', "%20")))
        .collect();
    let path =
        if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
    let headers = given("header");
    let send = |media_type: Option<&str>, body: Body| {
        let own = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let kind = media_type.map(|media_type| ("content-type", media_type));
        let headers: Vec<_> = own.chain(kind).collect();
        request(method.clone(), &path, &headers).map(|_| body)
    };
    let Some(contents) = operation["requestBody"]["content"].as_object() else {
        return vec![send(None, Body::empty())];
    };
    let bodies = contents.iter().map(|(media_type, content)| match example(content) {
        Value::String(text) => send(Some(media_type), text.into()),
        example => send(Some(media_type), example.to_string().into()),
    });
    bodies.collect()
}

/// Those that name a task, a queue or a session are left to the reader: a fresh server has none.
#[tokio::test]
async fn every_example_succeeds_on_a_fresh_server_again_and_again() {
    let engine = engine();
    let router = router_over(&engine);
    let _worker = Hand::of(&engine, &["echo"]).await;
    let mut tried = Vec::new();
    for (method, path, operation) in operations() {
        let about = operation.to_string().contains("sessionId") || path.starts_with("/v1/leases");
        // What this store, the model, is not copied by.
        let backs_up = path.ends_with("/admin/backup");
        // This server asks nobody who they are.
        let signs_in = path.starts_with("/v1/auth/");
        if path.contains('{') || about || backs_up || signs_in {
            continue;
        }
        for _ in 0..2 {
            for request in prefilled(&method, &path, &operation) {
                let answer = ask(&router, request).await;
                assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
                let text = String::from_utf8(answer.body).unwrap();
                let warns = text.contains("\"code\":\"NO_WORKER_FOR_TYPE\"");
                assert!(!warns, "{method} {path}: {text}");
                assert!(!answer.headers.contains_key("idempotency-replayed"), "{method} {path}");
            }
        }
        tried.push(format!("{method} {path}"));
    }
    for expected in ["POST /v1/tasks", "POST /v1/tasks/batch", "POST /v1/bulk-actions"] {
        assert!(tried.iter().any(|name| name == expected), "{expected} is not among {tried:?}");
    }
    assert!(tried.len() >= 15, "{tried:?}");
}

#[test]
fn nothing_that_names_one_thing_is_filled_in() {
    for (method, path, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let names_one = parameter["in"] == "path" || parameter["name"] == "Idempotency-Key";
            assert!(!names_one || parameter.get("example").is_none(), "{method} {path}");
        }
    }
}
