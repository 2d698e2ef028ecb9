//! Which query parameters each route takes, as the OpenAPI document says. A parameter that a route
//! does not take is refused before the route sees the request, so that none is ever ignored.

use std::collections::HashMap;

use axum::http::{Method, Uri};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::error::ApiError;
use crate::query;

/// Everything under this prefix also answers without it.
const PREFIX: &str = "/v1";

/// The names of the parameters by route.
#[derive(Debug, Default)]
pub(crate) struct Parameters(HashMap<String, HashMap<Method, Vec<String>>>);

impl Parameters {
    /// Collects the parameters of a document; `others` are paths beside it that take none.
    pub(crate) fn new(document: &OpenApi, others: &[&str]) -> Self {
        let described = document.paths.paths.iter().map(|(path, item)| (path, by_method(item)));
        let mut routes: HashMap<_, _> =
            described.map(|(path, methods)| (unversioned(path).to_owned(), methods)).collect();
        for path in others {
            routes.insert((*path).to_owned(), HashMap::from([(Method::GET, Vec::new())]));
        }
        Self(routes)
    }

    /// Refuses a query with an unknown parameter or with one that is given twice. `path` is that
    /// of the route, such as `/v1/tasks/{id}`.
    pub(crate) fn check(&self, method: &Method, path: &str, uri: &Uri) -> Result<(), ApiError> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let route = self.0.get(unversioned(path)).and_then(|methods| methods.get(method));
        let Some(known) = route else { return Ok(()) };
        let pairs = query::pairs(uri)?;
        for (place, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(name) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let detail = format!("a query parameter is unknown here; known are: {known}");
                return Err(query::invalid(detail));
            }
            if pairs[..place].iter().any(|(other, _)| other == name) {
                return Err(query::invalid(format!("`{name}` is given twice")));
            }
        }
        Ok(())
    }
}

fn unversioned(path: &str) -> &str {
    path.strip_prefix(PREFIX).filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

fn by_method(item: &PathItem) -> HashMap<Method, Vec<String>> {
    let operations = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    let known = operations.into_iter();
    known.filter_map(|(method, operation)| Some((method, names(operation.as_ref()?)))).collect()
}

fn names(operation: &Operation) -> Vec<String> {
    let in_query = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(it) => (it.parameter_in == ParameterIn::Query).then(|| it.name.clone()),
        RefOr::Ref(_) => None,
    };
    operation.parameters.iter().flatten().filter_map(in_query).collect()
}
