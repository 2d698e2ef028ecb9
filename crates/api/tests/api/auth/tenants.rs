//! Whose objects a caller may see.

use axum::http::Method;
use serde_json::json;

use super::issuer::{as_bearer, claims_of, config, guarded_router, token};
use crate::support::{ask, engine, request, router_of};

#[tokio::test]
async fn a_caller_for_the_installation_names_the_tenant() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let of_all = format!("Bearer {}", token(&claims_of("*", &["admin"])));
    let unnamed = ask(&router, request(Method::GET, "/tasks", &[("authorization", &of_all)])).await;
    let (status, code, _) = unnamed.problem();
    assert_eq!((status, code.as_str()), (422, "TENANT_REQUIRED"));
    for tenant in ["ada", "bob"] {
        let headers = [("authorization", of_all.as_str()), ("duly-tenant", tenant)];
        let answer = ask(&router, request(Method::GET, "/tasks", &headers)).await;
        assert_eq!(answer.status, 200, "{tenant}");
    }
    // What belongs to the installation has no tenant.
    for path in ["/settings", "/settings/history", "/nodes"] {
        let asked = request(Method::GET, path, &[("authorization", &of_all)]);
        assert_eq!(ask(&router, asked).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn s01_a_foreign_task_answers_like_one_that_is_not_there() {
    let engine = engine();
    let ada = router_of(&engine, "ada");
    let body = json!({"type": "echo"}).to_string();
    let task = ask(&ada, crate::support::post("/tasks", body)).await.json();
    let router = guarded_router(&engine, &config());
    let path = format!("/tasks/{}", task["taskId"].as_str().unwrap());
    let own = token(&claims_of("ada", &["viewer"]));
    assert_eq!(ask(&router, as_bearer(Method::GET, &path, &own)).await.status, 200);
    let foreign = token(&claims_of("bob", &["viewer"]));
    let found = ask(&router, as_bearer(Method::GET, &path, &foreign)).await;
    let random = "/tasks/01920000-0000-7000-8000-000000000000";
    let absent = ask(&router, as_bearer(Method::GET, random, &foreign)).await;
    assert_eq!(found.problem(), absent.problem());
    assert_eq!(found.json()["detail"], absent.json()["detail"]);
    // Naming the tenant does not help.
    let bearer = format!("Bearer {foreign}");
    let headers = [("authorization", bearer.as_str()), ("duly-tenant", "ada")];
    let (status, code, _) = ask(&router, request(Method::GET, &path, &headers)).await.problem();
    assert_eq!((status, code.as_str()), (403, "FORBIDDEN"));
}

#[tokio::test]
async fn an_admin_of_a_tenant_does_not_read_the_log_of_the_installation() {
    let router = guarded_router(&engine(), &config());
    for (tenant, path, status) in [
        ("default", "/audit", 200),
        ("default", "/audit?installation=true", 403),
        ("*", "/audit?installation=true", 200),
    ] {
        let bearer = format!("Bearer {}", token(&claims_of(tenant, &["admin"])));
        let headers = [("authorization", bearer.as_str()), ("duly-tenant", "default")];
        let answer = ask(&router, request(Method::GET, path, &headers)).await;
        assert_eq!(answer.status, status, "{tenant} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn an_admin_of_a_tenant_does_not_change_the_installation() {
    let router = guarded_router(&engine(), &config());
    for (method, path) in [
        (Method::PUT, "/settings"),
        (Method::POST, "/settings/rollback"),
        (Method::POST, "/admin/backup"),
        (Method::GET, "/admin/backup"),
    ] {
        let of_one = token(&claims_of("default", &["admin"]));
        let answer = ask(&router, as_bearer(method.clone(), path, &of_one)).await;
        let (status, code, _) = answer.problem();
        assert_eq!((status, code.as_str()), (403, "FORBIDDEN"), "{method} {path}");
        let of_all = token(&claims_of("*", &["admin"]));
        let status = ask(&router, as_bearer(method.clone(), path, &of_all)).await.status;
        assert!(![401, 403].contains(&status.as_u16()), "{method} {path}: {status}");
    }
}
