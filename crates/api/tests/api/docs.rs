//! The viewer and what the server says of itself.

use crate::support::{ask, get, router};

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
async fn the_viewer_loads_nothing_from_elsewhere() {
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
