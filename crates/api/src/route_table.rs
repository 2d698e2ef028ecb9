//! What each route declares: who may call it, and its query parameters. Both come from the OpenAPI
//! document, so they are declared once, beside the path.

use std::collections::HashMap;

use axum::http::{Method, Uri};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::access::Access;
use crate::error::ApiError;
use crate::query;

/// Everything under this prefix also answers without it.
const PREFIX: &str = "/v1";

/// The declarations of all routes, by path and method. Paths are without `/v1`.
#[derive(Debug, Default)]
pub struct RouteTable(HashMap<String, HashMap<Method, Route>>);

/// What one route declares.
#[derive(Debug)]
pub(crate) struct Route {
    access: Option<Access>,
    /// The names of the query parameters; `None` if the route ignores the query.
    parameters: Option<Vec<String>>,
}

/// A GET route that the OpenAPI document leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undocumented {
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    /// Whether query parameters are refused; otherwise the route ignores them.
    pub(crate) refuses_parameters: bool,
}

impl RouteTable {
    /// Collects the routes of a document, and others.
    pub(crate) fn new(document: &OpenApi, others: &[Undocumented]) -> Self {
        let described = document.paths.paths.iter().map(|(path, item)| (path, by_method(item)));
        let mut routes: HashMap<_, _> =
            described.map(|(path, methods)| (unversioned(path).to_owned(), methods)).collect();
        for other in others {
            let parameters = other.refuses_parameters.then(Vec::new);
            let route = Route { access: Some(other.access), parameters };
            routes.insert(other.path.to_owned(), HashMap::from([(Method::GET, route)]));
        }
        Self(routes)
    }

    /// All routes with the access that each declares, in no order. `None` is a mistake: a route
    /// that declares nothing.
    pub fn iter(&self) -> impl Iterator<Item = (&Method, &str, Option<Access>)> {
        self.0.iter().flat_map(|(path, methods)| {
            methods.iter().map(|(method, route)| (method, path.as_str(), route.access))
        })
    }

    /// The route of a request; none if the path has no such method, which answers 405. Refuses a
    /// route that is not in the table. `path` is that of the route, such as `/v1/tasks/{id}`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<Option<&Route>, ApiError> {
        let Some(methods) = self.0.get(unversioned(path)) else {
            return Err(undeclared(path));
        };
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let route = methods.get(method);
        match route {
            Some(Route { access: None, .. }) => Err(undeclared(path)),
            route => Ok(route),
        }
    }
}

fn undeclared(path: &str) -> ApiError {
    ApiError::internal(format!("the route {path} declares no access"))
}

impl Route {
    /// Who may call it.
    pub(crate) fn access(&self) -> Access {
        self.access.expect("a route without is never found")
    }

    /// Refuses a query with an unknown parameter or with one that is given twice.
    pub(crate) fn check_query(&self, uri: &Uri) -> Result<(), ApiError> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let Some(parameters) = self.parameters.as_ref() else { return Ok(()) };
        let pairs = query::pairs(uri)?;
        for (place, (name, _)) in pairs.iter().enumerate() {
            if !parameters.iter().any(|known| is_meant(known, name)) {
                let known =
                    if parameters.is_empty() { "none".to_owned() } else { parameters.join(", ") };
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

/// Whether a declared parameter is the one of a query: `label.*` stands for `label.customer`, and so on.
fn is_meant(declared: &str, name: &str) -> bool {
    match declared.strip_suffix('*') {
        Some(prefix) => name.len() > prefix.len() && name.starts_with(prefix),
        None => declared == name,
    }
}

fn unversioned(path: &str) -> &str {
    path.strip_prefix(PREFIX).filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

fn by_method(item: &PathItem) -> HashMap<Method, Route> {
    let operations = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    let known = operations.into_iter();
    known.filter_map(|(method, operation)| Some((method, route(operation.as_ref()?)))).collect()
}

fn route(operation: &Operation) -> Route {
    let in_query = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(it) => (it.parameter_in == ParameterIn::Query).then(|| it.name.clone()),
        RefOr::Ref(_) => None,
    };
    let parameters = operation.parameters.iter().flatten().filter_map(in_query).collect();
    Route { access: Access::declared(operation), parameters: Some(parameters) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::openapi;

    #[test]
    fn a_route_that_declares_nothing_is_refused() {
        let table = RouteTable::new(&openapi::document(), &[]);
        let find = |path: &str| table.find(&Method::GET, path);
        assert!(find("/v1/tasks/{id}").unwrap().is_some() && find("/tasks/{id}").is_ok());
        assert_eq!(find("/undeclared").unwrap_err().code(), Code::Internal);
    }

    #[test]
    fn an_operation_without_a_role_declares_nothing() {
        let mut document = openapi::document();
        let item = document.paths.paths.get_mut("/livez").unwrap();
        item.get.as_mut().unwrap().extensions = None;
        let table = RouteTable::new(&document, &[]);
        let undeclared: Vec<_> = table.iter().filter(|(.., access)| access.is_none()).collect();
        assert_eq!(undeclared, [(&Method::GET, "/livez", None)]);
        assert_eq!(table.find(&Method::GET, "/livez").unwrap_err().code(), Code::Internal);
    }
}
