//! Who may do what on a running server: each role on each route of the document that it serves, with
//! objects of its own tenant and of another one.

mod foreign;
mod objects;

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use duly_core::access::AccessRole;
use serde_json::Value;

use crate::keys::Keys;
use crate::raw::{Answer, Connection};

/// What was tried.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Requests of a role to a route.
    pub cells: usize,
    /// Requests about another tenant's objects.
    pub foreign: usize,
}

/// An operation of the document.
struct Operation {
    method: String,
    path: String,
    /// The roles that suffice; empty for what is public.
    roles: Vec<String>,
    is_for_installation: bool,
}

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn allows(&self, role: AccessRole) -> bool {
        self.roles.iter().any(|one| one == role.as_str())
    }
}

/// A server with keys, and a connection to it.
struct Server<'a> {
    connection: Connection,
    keys: &'a Keys,
    /// By tenant and role.
    tokens: BTreeMap<(String, AccessRole), String>,
}

/// Tries the matrix on the node at this address.
///
/// # Errors
/// The first cell of the matrix that is not as the document says.
pub async fn check(url: &str, keys: &Keys) -> anyhow::Result<Tried> {
    let connection = Connection::open(url).await?;
    let mut server = Server { connection, keys, tokens: BTreeMap::new() };
    let operations = server.operations().await?;
    let cells = server.roles(&operations).await?;
    let foreign = server.foreign(&operations).await?;
    Ok(Tried { cells, foreign })
}

impl Server<'_> {
    async fn operations(&mut self) -> anyhow::Result<Vec<Operation>> {
        let document = self.connection.get("/openapi.json").await?.json();
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().context("no paths")? {
            for (method, operation) in item.as_object().context("no operations")? {
                operations.push(read(path, method, operation)?);
            }
        }
        Ok(operations)
    }

    /// A token for one role.
    async fn token(&mut self, tenant: &str, role: AccessRole) -> anyhow::Result<String> {
        let place = (tenant.to_owned(), role);
        if let Some(token) = self.tokens.get(&place) {
            return Ok(token.clone());
        }
        let token = self.keys.token_for(tenant, role.as_str()).await?;
        self.tokens.insert(place, token.clone());
        Ok(token)
    }

    async fn ask(
        &mut self,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        let mut headers = match token {
            Some(token) => format!("authorization: Bearer {token}\r\nduly-tenant: {ACTING}\r\n"),
            None => String::new(),
        };
        // A caller of one tenant may name its own alone.
        if !token.is_some_and(|token| self.is_for_all(token)) {
            headers = headers.replace(&format!("duly-tenant: {ACTING}\r\n"), "");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            headers.push_str("content-type: application/json\r\n");
        }
        headers.push_str(&format!("content-length: {}\r\n", body.len()));
        self.connection.ask(method, path, &headers, body.as_bytes()).await
    }

    fn is_for_all(&self, token: &str) -> bool {
        self.tokens.iter().any(|((tenant, _), one)| tenant == "*" && one == token)
    }

    /// Each role, of one tenant and of the installation, may call exactly its routes.
    async fn roles(&mut self, operations: &[Operation]) -> anyhow::Result<usize> {
        let mut cells = 0;
        for operation in operations {
            let path = objects::unknown(&operation.path);
            let call = (operation.method.as_str(), path.as_str());
            let name = operation.name();
            let status = self.ask(call, None, None).await?.status;
            if operation.roles.is_empty() {
                ensure!(![401, 403].contains(&status), "{name} is public and answers {status}");
                continue;
            }
            ensure!(status == 401, "{name} answers {status} to strangers");
            for role in AccessRole::ALL {
                for tenant in [ACTING, "*"] {
                    let token = self.token(tenant, role).await?;
                    let status = self.ask(call, Some(&token), None).await?.status;
                    let may =
                        operation.allows(role) && (!operation.is_for_installation || tenant == "*");
                    let is_right = if may { ![401, 403].contains(&status) } else { status == 403 };
                    ensure!(is_right, "{name} answers {status} to a {role} of {tenant}");
                    ensure!(status < 500, "{name} answers {status}");
                    cells += 1;
                }
            }
        }
        Ok(cells)
    }
}

/// The tenant of the callers.
const ACTING: &str = "rival";

fn read(path: &str, method: &str, operation: &Value) -> anyhow::Result<Operation> {
    let roles = operation["x-roles"].as_array();
    let roles = roles.with_context(|| format!("{method} {path} declares no roles"))?;
    Ok(Operation {
        method: method.to_uppercase(),
        path: path.to_owned(),
        roles: roles.iter().filter_map(|role| Some(role.as_str()?.to_owned())).collect(),
        is_for_installation: operation["x-tenant"] == "*",
    })
}
