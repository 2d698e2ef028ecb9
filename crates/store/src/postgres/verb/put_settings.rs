//! Put settings: make the next version of them.

use duly_core::event::Event;
use duly_core::limits::SETTINGS_VERSIONS;
use duly_core::ports::store::{Put, PutSettings};

use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::postgres::error::Result;
use crate::postgres::settings::{self, NEWEST};

impl Verb for PutSettings {
    type Answer = Put;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Put> {
        // One node at a time; readers do not wait.
        let lock = "/* settings.lock */ LOCK TABLE duly.settings IN SHARE ROW EXCLUSIVE MODE";
        scope.execute(lock, &[]).await?;
        let body = settings::encode(&self.settings);
        let newest = scope.query(NEWEST, &[]).await?.into_iter().next();
        let (mut version, mut repeated) = (0_i64, false);
        if let Some(newest) = newest {
            version = newest.try_get(0)?;
            // As they are written: a damaged version can be replaced too.
            let (comment, known): (Option<&str>, &str) = (newest.try_get(2)?, newest.try_get(3)?);
            repeated = known == body && comment == self.comment.as_deref();
        }
        let current = version.unsigned_abs();
        if current == self.expected.saturating_add(1) && repeated {
            return Ok(Put::Done { version: current });
        }
        if current != self.expected {
            return Ok(Put::Conflict { current });
        }
        let insert = "/* settings.put */ INSERT INTO duly.settings
            (version, changed_at, comment, body) VALUES ($1, $2, $3, $4)";
        let made = version + 1;
        scope.execute(insert, &[&made, &scope.now.millis(), &self.comment, &body]).await?;
        let delete = "/* settings.forget_old */ DELETE FROM duly.settings WHERE version <= $1";
        scope.execute(delete, &[&made.saturating_sub(SETTINGS_VERSIONS.into())]).await?;
        scope.told.emit(&Event::settings_changed(made.unsigned_abs(), scope.now));
        Ok(Put::Done { version: made.unsigned_abs() })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::put_settings()
    }
}
