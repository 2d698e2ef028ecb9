//! S4: the matrix of roles and routes, generated from the served document.

use axum::Router;
use axum::http::Method;
use duly_core::access::AccessRole;
use serde_json::Value;

use super::issuer::{as_bearer, claims_of, config, router_with, token};
use crate::support::{ask, get, request};

const HTTP_METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

struct Operation {
    method: Method,
    path: String,
    /// The roles that suffice; empty for what is public.
    roles: Vec<String>,
    is_for_installation: bool,
}

/// The operations of the document that the server publishes, without a token.
async fn published(router: &Router) -> Vec<Operation> {
    let document = ask(router, get("/openapi.json")).await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(HTTP_METHODS.contains(&method.as_str()), "{method} {path}");
            operations.push(read(path, method, operation));
        }
    }
    assert!(operations.len() >= 50, "{}", operations.len());
    operations
}

fn read(path: &str, method: &str, operation: &Value) -> Operation {
    let roles = operation["x-roles"].as_array().unwrap_or_else(|| panic!("{method} {path}"));
    let roles: Vec<_> = roles.iter().map(|role| role.as_str().unwrap().to_owned()).collect();
    let security = operation["security"].as_array().unwrap();
    assert_eq!(security.is_empty(), roles.is_empty(), "{method} {path}");
    for status in ["401", "403", "429"] {
        let is_documented = operation["responses"].get(status).is_some();
        assert!(is_documented || roles.is_empty(), "{method} {path}: {status}");
    }
    let path = path
        .replace("{id}", "01920000-0000-7000-8000-000000000000")
        .replace("{queue}", "default")
        .replace("{name}", "nightly");
    let is_for_installation = operation["x-tenant"] == "*";
    Operation { method: method.to_uppercase().parse().unwrap(), path, roles, is_for_installation }
}

/// Status and code of the answer.
async fn answer(router: &Router, operation: &Operation, token: Option<&str>) -> (u16, String) {
    let (method, path) = (operation.method.clone(), operation.path.as_str());
    let asked = match token {
        Some(token) => as_bearer(method, path, token),
        None => request(method, path, &[]),
    };
    let answer = ask(router, asked).await;
    let is_problem =
        answer.headers.get("content-type").is_some_and(|it| it == "application/problem+json");
    let code = if is_problem { answer.problem().1 } else { String::new() };
    (answer.status.as_u16(), code)
}

#[tokio::test]
async fn s04_each_role_may_call_exactly_its_routes() {
    let router = router_with(&config());
    for operation in published(&router).await {
        let name = format!("{} {}", operation.method, operation.path);
        let (status, code) = answer(&router, &operation, None).await;
        if operation.roles.is_empty() {
            assert!(![401, 403].contains(&status), "{name}: {code}");
            continue;
        }
        assert_eq!((status, code.as_str()), (401, "UNAUTHENTICATED"), "{name} without a token");
        for role in AccessRole::ALL {
            for tenant in ["default", "*"] {
                let token = token(&claims_of(tenant, &[role.as_str()]));
                let (status, code) = answer(&router, &operation, Some(&token)).await;
                let is_held = operation.roles.iter().any(|one| one == role.as_str());
                let may = is_held && (!operation.is_for_installation || tenant == "*");
                if may {
                    assert!(![401, 403].contains(&status), "{name} as {role} of {tenant}: {code}");
                } else {
                    let found = (status, code.as_str());
                    assert_eq!(found, (403, "FORBIDDEN"), "{name} as {role} of {tenant}");
                }
                assert!(status != 500, "{name} as {role} of {tenant}");
                // What is about the installation needs no tenant to be named.
                let asks = operation.is_for_installation && code == "TENANT_REQUIRED";
                assert!(!asks, "{name} as {role} of {tenant}");
            }
        }
    }
}

#[tokio::test]
async fn s09_a_worker_only_works() {
    let router = router_with(&config());
    let token = token(&claims_of("default", &["worker"]));
    let mut allowed = Vec::new();
    for operation in published(&router).await {
        let (status, _) = answer(&router, &operation, Some(&token)).await;
        // Signing in itself takes no role.
        let is_sign_in = operation.path.starts_with("/v1/auth/");
        if !operation.roles.is_empty() && !is_sign_in && status != 403 {
            allowed.push(operation.path);
        }
    }
    assert!(allowed.len() >= 6, "{allowed:?}");
    let is_work =
        |path: &String| path.starts_with("/v1/sessions") || path.starts_with("/v1/leases");
    assert!(allowed.iter().all(is_work), "{allowed:?}");
}

#[tokio::test]
async fn s27_what_is_public_is_public_and_nothing_else() {
    let router = router_with(&config());
    for path in ["/livez", "/readyz", "/version", "/v1/version", "/openapi.json", "/docs/", "/"] {
        let status = ask(&router, get(path)).await.status;
        assert!(status.as_u16() < 400, "{path}: {status}");
        // A token that is wrong does no harm where none is needed.
        let asked = as_bearer(Method::GET, path, "wrong");
        assert!(ask(&router, asked).await.status.as_u16() < 400, "{path}");
    }
    for path in ["/tasks", "/v1/tasks", "/settings", "/nodes", "/workers", "/admin/backup"] {
        assert_eq!(ask(&router, get(path)).await.status, 401, "{path}");
    }
    // A caller who may not read learns nothing of the parameters either.
    assert_eq!(ask(&router, get("/tasks?bogus=1")).await.status, 401);
    assert_eq!(ask(&router, request(Method::HEAD, "/tasks", &[])).await.status, 401);
}
