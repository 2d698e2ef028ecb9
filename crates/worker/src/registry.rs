//! Which handler runs which type of task.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use duly_core::name::TypeName;

use crate::handler::Handler;

/// The handlers of one worker by the type they run.
#[derive(Clone, Default)]
pub struct Registry {
    handlers: HashMap<TypeName, Arc<dyn Handler>>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of one type.
    ///
    /// # Panics
    /// When the name is not a valid type name or has a handler already: both are mistakes in the
    /// program that builds the registry.
    #[must_use]
    pub fn with(mut self, name: &str, handler: impl Handler + 'static) -> Self {
        let name = TypeName::new(name).unwrap_or_else(|bad| panic!("the type {name:?}: {bad}"));
        match self.handlers.entry(name) {
            Entry::Occupied(taken) => panic!("the type {:?} has two handlers", taken.key()),
            Entry::Vacant(free) => free.insert(Arc::new(handler)),
        };
        self
    }

    /// Keeps only the handlers of these types.
    #[must_use]
    pub fn only(mut self, types: &[TypeName]) -> Self {
        self.handlers.retain(|name, _| types.contains(name));
        self
    }

    /// The types that have a handler, in alphabetical order.
    pub fn types(&self) -> Vec<TypeName> {
        let mut types: Vec<_> = self.handlers.keys().cloned().collect();
        types.sort_unstable();
        types
    }

    /// The handler of a type.
    pub fn get(&self, name: &TypeName) -> Option<&Arc<dyn Handler>> {
        self.handlers.get(name)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.types()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::{Echo, Sleep};

    #[test]
    fn types_are_sorted() {
        let registry = Registry::new().with("sleep", Sleep).with("echo", Echo);
        let types: Vec<_> = registry.types().iter().map(ToString::to_string).collect();
        assert_eq!(types, ["echo", "sleep"]);
    }

    #[test]
    fn a_worker_can_be_kept_to_some_types() {
        let echo = TypeName::new("echo").unwrap();
        let registry = Registry::new().with("sleep", Sleep).with("echo", Echo);
        assert_eq!(registry.only(std::slice::from_ref(&echo)).types(), [echo]);
    }

    #[test]
    #[should_panic(expected = "has two handlers")]
    fn a_type_has_one_handler() {
        let _ = Registry::new().with("echo", Echo).with("echo", Echo);
    }
}
