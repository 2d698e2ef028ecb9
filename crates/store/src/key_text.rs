//! How SQL stores write the parts of an API key that are lists.

use std::fmt::Display;

use duly_core::access::AccessRoles;

/// Roles, with commas between them.
pub(crate) fn encode_roles(roles: AccessRoles) -> String {
    encode_names(&roles.iter().collect::<Vec<_>>())
}

/// Nothing if it is damaged: a key must not get roles that it was not given.
pub(crate) fn decode_roles(text: &str) -> Option<AccessRoles> {
    parts(text).map(|role| role.parse().ok()).collect()
}

/// Names, none of which has a comma in it.
pub(crate) fn encode_names<T: Display>(names: &[T]) -> String {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    names.join(",")
}

/// Nothing if one of them is damaged.
pub(crate) fn decode_names<T: TryFrom<String>>(text: &str) -> Option<Vec<T>> {
    parts(text).map(|name| T::try_from(name.to_owned()).ok()).collect()
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use duly_core::access::AccessRole;

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for roles in
            [AccessRoles::NONE, AccessRoles::all(), [AccessRole::Worker].into_iter().collect()]
        {
            assert_eq!(decode_roles(&encode_roles(roles)), Some(roles));
        }
        assert_eq!(decode_roles("viewer,root"), None);
    }
}
