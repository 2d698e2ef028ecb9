//! All routes and the layer around them.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use bytes::Bytes;
use duly_engine::Engine;
use utoipa_swagger_ui::{Config as ViewerConfig, SwaggerUi};

use crate::access::Access;
use crate::app::App;
use crate::config::Config;
use crate::error::{ApiError, Code};
use crate::route_table::{RouteTable, Undocumented};
use crate::routes::{health, versioned};
use crate::{edge, openapi};

const DOCUMENT: &str = "/openapi.json";

/// The routes that are not in the OpenAPI document.
const UNDOCUMENTED: [Undocumented; 5] = [
    Undocumented { path: DOCUMENT, access: Access::Public, refuses_parameters: true },
    page("/"),
    page("/docs"),
    page("/docs/"),
    page("/docs/{*rest}"),
];

/// A page for browsers.
const fn page(path: &'static str) -> Undocumented {
    Undocumented { path, access: Access::Public, refuses_parameters: false }
}

/// What every route declares.
pub fn route_table() -> RouteTable {
    RouteTable::new(&openapi::document(), &UNDOCUMENTED)
}

/// The whole interface over one engine.
pub fn router(engine: Engine, config: Config) -> Router {
    let (described, document) = openapi::described().split_for_parts();
    let app = App::new(engine, config, RouteTable::new(&document, &UNDOCUMENTED));
    let document = document.to_json().expect("the document can be written as JSON");
    let document = Bytes::from(document);
    let serve_document =
        get(async move || ([(CONTENT_TYPE, "application/json")], document.clone()));
    // The validator's badge would be fetched from its own site.
    let viewer = ViewerConfig::from(DOCUMENT).validator_url("none").deep_linking(true);
    described
        .merge(versioned().split_for_parts().0)
        .nest("/v1", health::routes().split_for_parts().0)
        .route(DOCUMENT, serve_document.clone())
        .route("/v1/openapi.json", serve_document)
        .merge(SwaggerUi::new("/docs").config(viewer))
        .route("/", get(async || Redirect::temporary("/docs")))
        .fallback(async || edge::not_found())
        .method_not_allowed_fallback(async || {
            ApiError::new(Code::MethodNotAllowed, "the header Allow lists the methods of this path")
        })
        .layer(from_fn_with_state(app.clone(), edge::around))
        .with_state(app)
}
