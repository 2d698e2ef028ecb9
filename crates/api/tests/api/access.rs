//! Every route declares who may call it, beside its path.

use axum::http::Method;
use duly_api::{Access, route_table};

use crate::support::{ask, get, post, request, router};

#[test]
fn every_route_declares_its_access() {
    let table = route_table();
    let undeclared: Vec<_> = table.iter().filter(|(.., access)| access.is_none()).collect();
    assert!(undeclared.is_empty(), "{undeclared:?}");
    let documented = crate::support::operations().len();
    assert!(table.iter().count() > documented, "the table has fewer routes than the document");
}

#[tokio::test]
async fn every_declared_route_exists() {
    let router = router();
    for (method, path, _) in route_table().iter() {
        let path = path
            .replace("{id}", "01920000-0000-7000-8000-000000000000")
            .replace("{queue}", "default")
            .replace("{name}", "nightly")
            .replace("{*rest}", "index.html");
        let answer = ask(&router, request(method.clone(), &path, &[])).await;
        if answer.headers.get("content-type").is_some_and(|it| it == "application/problem+json") {
            let (_, code, _) = answer.problem();
            let is_missing = ["NOT_FOUND", "METHOD_NOT_ALLOWED"].contains(&code.as_str());
            assert!(!is_missing, "{method} {path} answers {code}");
        }
    }
}

#[test]
fn reads_are_for_viewers_and_no_change_is() {
    for (method, path, access) in route_table().iter() {
        // A preview stores nothing.
        let is_read = *method == Method::GET || path == "/schedules/preview";
        // Backups, keys, sinks, tenants and the audit log are for admins alone, also to look at.
        let closed = ["/admin/backup", "/audit", "/keys", "/sinks", "/tenants"];
        let is_closed = closed.iter().any(|it| path.starts_with(it));
        // Sign-in changes nothing that is stored.
        if path.starts_with("/auth") {
            continue;
        }
        let is_for_readers = matches!(access, Some(Access::Public | Access::Viewer));
        assert_eq!(is_for_readers, is_read && !is_closed, "{method} {path}");
    }
}

#[test]
fn roles_are_those_of_the_document() {
    for (path, method, role) in [
        ("/v1/tasks", "get", "viewer"),
        ("/v1/tasks", "post", "submitter"),
        ("/v1/leases", "post", "worker"),
        ("/v1/tasks/{id}/cancel", "post", "submitter"),
        ("/v1/tasks/{id}/replay", "post", "operator"),
        ("/v1/settings", "put", "installationAdmin"),
        ("/livez", "get", "public"),
    ] {
        let document = serde_json::to_value(duly_api::document()).unwrap();
        assert_eq!(document["paths"][path][method]["x-duly-access"], role, "{method} {path}");
    }
}

#[tokio::test]
async fn pages_ignore_the_query_and_routes_do_not() {
    let router = router();
    for path in ["/?theme=dark", "/docs?theme=dark", "/docs/?theme=dark"] {
        assert!(ask(&router, get(path)).await.status.as_u16() < 400, "{path}");
    }
    assert_eq!(ask(&router, get("/openapi.json?theme=dark")).await.status, 400);
    assert_eq!(ask(&router, post("/tasks?theme=dark", "{}")).await.status, 400);
}
