//! The body of a key.

use std::time::Duration;

use duly_client::wire::{KeyRequest, lease};
use duly_core::access::{AccessRole, AccessRoles, TenantGrant};
use duly_core::limits::{KEY_LIFETIME, KEY_NAME_CHARS, KEY_NAMES};
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_engine::command::keys::KeyOrder;

use crate::error::ApiError;
use crate::fields::{self, Field, Fields};
use crate::session_fields::each_name;

/// Reads a [`KeyRequest`]. A key that does not say is for the tenant of the request.
pub(crate) fn order(body: &[u8], tenant: &TenantName) -> Result<KeyOrder, ApiError> {
    let (mut fields, object) = fields::open::<KeyRequest>(body)?;
    let field = fields.required(object.field("name"));
    let name = read_name(&mut fields, field);
    let roles = read_roles(&mut fields, object.field_or_null("roles"));
    let tenant = read_tenant(&mut fields, object.field("tenant"), tenant);
    // A list that is null is refused: left out, the key is not restricted.
    let queues = object.field_or_null("queues");
    let items = fields.list(queues, KEY_NAMES);
    let queues = each_name(&mut fields, queues, &items, QueueName::given);
    let types = object.field_or_null("types");
    let items = fields.list(types, KEY_NAMES);
    let types = each_name(&mut fields, types, &items, TypeName::given);
    let lifetime = read_lifetime(&mut fields, object.field("expiresInSeconds"));
    fields.end(tenant.map(|tenant| KeyOrder { name, tenant, roles, queues, types, lifetime }))
}

fn read_name(fields: &mut Fields, field: Field<'_, '_>) -> String {
    let Some(name) = fields.string(field) else { return String::new() };
    let chars = name.chars().count();
    if chars == 0 || chars > KEY_NAME_CHARS || name.chars().any(char::is_control) {
        let detail =
            format!("is 1 to {KEY_NAME_CHARS} characters, none of them a control character");
        fields.refuse(field.at, "OUT_OF_RANGE", detail);
    }
    name
}

fn read_roles(fields: &mut Fields, list: Field<'_, '_>) -> AccessRoles {
    let items = fields.filled_list(list, AccessRole::ALL.len());
    let mut roles = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let item = list.item(index, item);
        let Some(text) = fields.string(item) else { continue };
        match text.parse::<AccessRole>() {
            Ok(role) => roles.push(role),
            Err(unknown) => fields.refuse(item.at, "UNKNOWN_WORD", unknown.to_string()),
        }
    }
    roles.into_iter().collect()
}

fn read_tenant(fields: &mut Fields, field: Field<'_, '_>, own: &TenantName) -> Option<TenantGrant> {
    if !field.is_given() {
        return Some(TenantGrant::One(own.clone()));
    }
    let tenant = fields.string(field)?.parse();
    tenant.map_err(|bad| fields.refuse(field.at, "INVALID_NAME", format!("{bad}, or be *"))).ok()
}

fn read_lifetime(fields: &mut Fields, field: Field<'_, '_>) -> Option<Duration> {
    let number = fields.number(field)?;
    let range = Duration::from_secs(1)..=KEY_LIFETIME;
    let found = lease::duration(number).filter(|lifetime| range.contains(lifetime));
    if found.is_none() {
        let detail = format!("must be a number of seconds from 1 to {}", KEY_LIFETIME.as_secs());
        fields.refuse(field.at, "OUT_OF_RANGE", detail);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<KeyOrder, Vec<String>> {
        order(body.as_bytes(), &TenantName::default_tenant()).map_err(|error| {
            let errors = error.errors().iter();
            errors.map(|error| format!("{} {}", error.pointer, error.code)).collect()
        })
    }

    #[test]
    fn only_a_name_and_roles_are_required() {
        let read_order = read(r#"{"name":"mailer","roles":["viewer","worker"]}"#).unwrap();
        assert_eq!(read_order.tenant, TenantGrant::One(TenantName::default_tenant()));
        assert_eq!(read_order.roles.iter().count(), 2);
        assert!(read_order.queues.is_empty() && read_order.lifetime.is_none());
        let other = r#"{"name":"x","roles":["admin"],"tenant":"*","expiresInSeconds":1.5}"#;
        let other = read(other).unwrap();
        assert_eq!(other.tenant, TenantGrant::Installation);
        assert_eq!(other.lifetime, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let body = r#"{"name":"","roles":["root",3],"tenant":"A B","queues":["/"],"types":null,
            "expiresInSeconds":0,"hash":"x"}"#;
        let expected = [
            "/hash UNKNOWN_FIELD",
            "/name OUT_OF_RANGE",
            "/roles/0 UNKNOWN_WORD",
            "/roles/1 WRONG_TYPE",
            "/tenant INVALID_NAME",
            "/queues/0 INVALID_NAME",
            "/types WRONG_TYPE",
            "/expiresInSeconds OUT_OF_RANGE",
        ];
        assert_eq!(read(body).unwrap_err(), expected);
        assert_eq!(read("{}").unwrap_err(), ["/name REQUIRED", "/roles REQUIRED"]);
    }
}
