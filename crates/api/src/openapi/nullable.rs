//! A field that is null is a field that is absent: the document says so for all that requests may leave out.

use std::collections::BTreeSet;

use utoipa::openapi::schema::{Components, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};

/// Schemas of bodies have names that end so.
const BODIES: &str = "Request";

/// Lets the optional fields of all bodies, and of what they consist of, be null.
pub(super) fn describe(components: &mut Components) {
    let bodies = components.schemas.keys().filter(|name| name.ends_with(BODIES));
    let mut open: Vec<String> = bodies.cloned().collect();
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let Some(RefOr::T(schema)) = components.schemas.get_mut(&name) else { continue };
        let mut parts = Vec::new();
        visit(schema, &mut parts);
        open.extend(parts.into_iter().filter(|part| seen.insert(part.clone())));
    }
}

/// Changes the optional fields of a schema, and names the schemas that it refers to.
fn visit(schema: &mut Schema, parts: &mut Vec<String>) {
    match schema {
        Schema::Object(object) => {
            let required = &object.required;
            for (name, field) in &mut object.properties {
                if !required.contains(name) {
                    allow_null(field);
                }
                follow(field, parts);
            }
        }
        Schema::OneOf(one) => one.items.iter_mut().for_each(|item| follow(item, parts)),
        Schema::AllOf(all) => all.items.iter_mut().for_each(|item| follow(item, parts)),
        _ => {}
    }
}

fn follow(schema: &mut RefOr<Schema>, parts: &mut Vec<String>) {
    match schema {
        RefOr::Ref(Ref { ref_location, .. }) => {
            parts.extend(ref_location.rsplit('/').next().map(str::to_owned));
        }
        RefOr::T(schema) => visit(schema, parts),
    }
}

fn allow_null(field: &mut RefOr<Schema>) {
    let kind = match field {
        RefOr::T(Schema::Object(object)) if object.enum_values.is_none() => &mut object.schema_type,
        RefOr::T(Schema::Array(array)) => &mut array.schema_type,
        _ => return,
    };
    if let SchemaType::Type(one) = kind
        && *one != Type::Null
    {
        *kind = SchemaType::Array(vec![one.clone(), Type::Null]);
    }
}
