//! Put settings: make the next version of them.

use duly_core::event::Event;
use duly_core::limits::SETTINGS_VERSIONS;
use duly_core::ports::store::{Put, PutSettings};
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::settings;

impl Verb for PutSettings {
    type Answer = Put;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Put> {
        let body = settings::encode(&self.settings);
        let newest = newest(scope)?;
        let current = newest.as_ref().map_or(0, |newest| newest.version.unsigned_abs());
        let repeated = |newest: &Newest| newest.body == body && newest.comment == self.comment;
        if current == self.expected.saturating_add(1) && newest.as_ref().is_some_and(repeated) {
            return Ok(Put::Done { version: current });
        }
        if current != self.expected {
            return Ok(Put::Conflict { current });
        }
        // The key refuses a second row of this version.
        scope
            .connection
            .prepare_cached(
                "/* settings.put */ INSERT INTO settings (version, changed_at, comment, body)
                 VALUES (?, ?, ?, ?)",
            )?
            .execute(params![current + 1, scope.now.millis(), self.comment, body])?;
        scope
            .connection
            .prepare_cached("/* settings.forget_old */ DELETE FROM settings WHERE version <= ?")?
            .execute([(current + 1).saturating_sub(SETTINGS_VERSIONS.into())])?;
        scope.emit(&Event::settings_changed(current + 1, scope.now));
        scope.index.settings = self.settings.clone();
        Ok(Put::Done { version: current + 1 })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::put_settings()
    }
}

/// The newest version as it is written: a damaged one can be replaced too.
struct Newest {
    version: i64,
    comment: Option<String>,
    body: String,
}

fn newest(scope: &Scope<'_>) -> Result<Option<Newest>> {
    let mut statement = scope.connection.prepare_cached(
        "/* settings.current */ SELECT version, comment, body FROM settings
         ORDER BY version DESC LIMIT 1",
    )?;
    let newest = statement.query_row([], |row| {
        Ok(Newest { version: row.get(0)?, comment: row.get(1)?, body: row.get(2)? })
    });
    Ok(newest.optional()?)
}
