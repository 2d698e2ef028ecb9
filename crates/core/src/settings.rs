//! What holds for the whole installation and may change while it runs.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::back_off::BackOff;
use crate::limits::{
    COMMENT_CHARS, CONCURRENCY, DEFAULT_RETENTION, DEFAULT_RETRIES, LOSS_LIMIT, RETENTION, RETRIES,
};
use crate::redact;
use crate::submit::{BackOffDraft, FieldError, seconds, whole};

/// The settings of an installation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Retries of a task that does not say.
    pub retries: u32,
    /// Back-off of a task, as far as it does not say.
    pub back_off: BackOff,
    /// Handlers that run at once in each server; as it was started if absent.
    pub worker_concurrency: Option<usize>,
    /// Lost leases after which a task is failed; as the server was started if absent.
    pub loss_limit: Option<u32>,
    /// How long ended tasks are kept.
    pub retention: Retention,
    /// Paths in payloads that are masked wherever a task is shown but to the worker that runs it.
    pub redact: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retries: DEFAULT_RETRIES,
            back_off: BackOff::default(),
            worker_concurrency: None,
            loss_limit: None,
            retention: Retention::default(),
            redact: Vec::new(),
        }
    }
}

/// How long ended tasks are kept, by their outcome; for ever if absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Those that succeeded.
    pub success: Option<Duration>,
    /// Those that failed: for ever by default, since an operator has to look at
    /// them.
    pub failed: Option<Duration>,
    /// Those that were cancelled.
    pub cancelled: Option<Duration>,
}

impl Retention {
    /// Nothing is ever deleted.
    pub const FOREVER: Self = Self { success: None, failed: None, cancelled: None };
}

impl Default for Retention {
    fn default() -> Self {
        let kept = Some(DEFAULT_RETENTION);
        Self { success: kept, failed: None, cancelled: kept }
    }
}

/// How long a tenant keeps ended tasks, by their outcome; as in the installation if absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnRetention {
    /// Those that succeeded.
    pub success: Option<Kept>,
    /// Those that failed.
    pub failed: Option<Kept>,
    /// Those that were cancelled.
    pub cancelled: Option<Kept>,
}

/// How long a task is kept after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kept {
    /// It is never deleted.
    Forever,
    /// So long.
    For(Duration),
}

impl Kept {
    /// The period; none if it never ends.
    pub fn period(self) -> Option<Duration> {
        match self {
            Self::Forever => None,
            Self::For(period) => Some(period),
        }
    }
}

impl OwnRetention {
    /// Nothing is ever deleted, whatever holds in the installation.
    pub const FOREVER: Self = Self {
        success: Some(Kept::Forever),
        failed: Some(Kept::Forever),
        cancelled: Some(Kept::Forever),
    };

    /// What holds for the tenant's tasks, over what holds in the installation.
    pub fn over(&self, installation: Retention) -> Retention {
        let over = |own: Option<Kept>, usual| own.map_or(usual, Kept::period);
        Retention {
            success: over(self.success, installation.success),
            failed: over(self.failed, installation.failed),
            cancelled: over(self.cancelled, installation.cancelled),
        }
    }
}

/// The fields of a change to the settings, each of the right JSON type and otherwise unchecked.
/// What is absent has its default, not the value of before.
#[derive(Clone, Debug, Default)]
pub struct SettingsDraft {
    /// `retries`
    pub retries: Option<f64>,
    /// `backoff`
    pub back_off: Option<BackOffDraft>,
    /// `workerConcurrency`
    pub worker_concurrency: Option<f64>,
    /// `lossLimit`
    pub loss_limit: Option<f64>,
    /// `retention`
    pub retention: RetentionDraft,
    /// `redact`
    pub redact: Option<Vec<String>>,
    /// `comment`
    pub comment: Option<String>,
}

/// The fields of `retention`: absent, `null` (for ever), or a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetentionDraft {
    /// `successSeconds`
    pub success_seconds: Option<Option<f64>>,
    /// `failedSeconds`
    pub failed_seconds: Option<Option<f64>>,
    /// `cancelledSeconds`
    pub cancelled_seconds: Option<Option<f64>>,
}

/// A change to the settings whose every field holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsChange {
    /// All of them.
    pub settings: Settings,
    /// Why, for people.
    pub comment: Option<String>,
}

impl SettingsDraft {
    /// Checks every field and reports all that is wrong at once.
    pub fn check(self) -> Result<SettingsChange, Vec<FieldError>> {
        let mut errors = Vec::new();
        let default = Settings::default();
        let retries = whole("retries", self.retries, 0..=RETRIES, &mut errors);
        let back_off = self.back_off.unwrap_or_default().check(&mut errors);
        let most = u32::try_from(CONCURRENCY).expect("a worker is not that large");
        let concurrency =
            whole("workerConcurrency", self.worker_concurrency, 1..=most, &mut errors);
        let loss_limit = whole("lossLimit", self.loss_limit, 1..=LOSS_LIMIT, &mut errors);
        let retention = self.retention.check(&mut errors).over(default.retention);
        let redact = redact::check_paths(self.redact.unwrap_or_default(), &mut errors);
        if self.comment.as_deref().is_some_and(|comment| !is_comment(comment)) {
            let detail = format!("is at most {COMMENT_CHARS} characters, none of them U+0000");
            errors.push(FieldError::of("comment", "OUT_OF_RANGE", detail));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let settings = Settings {
            retries: retries.unwrap_or(default.retries),
            back_off: back_off.or(default.back_off),
            worker_concurrency: concurrency.and_then(|number| usize::try_from(number).ok()),
            loss_limit,
            retention,
            redact,
        };
        Ok(SettingsChange { settings, comment: self.comment.filter(|text| !text.is_empty()) })
    }
}

/// Whether a text may be kept as a comment.
fn is_comment(text: &str) -> bool {
    text.chars().count() <= COMMENT_CHARS && !text.contains('\0')
}

impl RetentionDraft {
    /// Checks every field; the errors are those of a body that holds it as `retention`.
    pub(crate) fn check(self, errors: &mut Vec<FieldError>) -> OwnRetention {
        const RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=RETENTION;
        let mut own = Vec::new();
        let mut kept = |name, given: Option<Option<f64>>| match given? {
            None => Some(Kept::Forever),
            number => seconds(name, number, RANGE, &mut own).map(Kept::For),
        };
        let retention = OwnRetention {
            success: kept("successSeconds", self.success_seconds),
            failed: kept("failedSeconds", self.failed_seconds),
            cancelled: kept("cancelledSeconds", self.cancelled_seconds),
        };
        let nested = |error: FieldError| FieldError {
            pointer: format!("/retention{}", error.pointer),
            ..error
        };
        errors.extend(own.into_iter().map(nested));
        retention
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back_off::Strategy;

    fn errors(draft: SettingsDraft) -> Vec<String> {
        let errors = draft.check().expect_err("a bad draft");
        errors.into_iter().map(|error| format!("{} {}", error.pointer, error.code)).collect()
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let change = SettingsDraft::default().check().unwrap();
        assert_eq!(change, SettingsChange { settings: Settings::default(), comment: None });
        let week = Some(Duration::from_secs(7 * 24 * 60 * 60));
        let retention = Retention { success: week, failed: None, cancelled: week };
        assert_eq!(change.settings.retention, retention);
        let fixed = BackOffDraft { strategy: Some("fixed".to_owned()), ..BackOffDraft::default() };
        let draft = SettingsDraft { back_off: Some(fixed), ..SettingsDraft::default() };
        let expected = BackOff { strategy: Strategy::Fixed, ..BackOff::default() };
        assert_eq!(draft.check().unwrap().settings.back_off, expected);
    }

    #[test]
    fn a_period_that_is_null_never_ends() {
        let retention = RetentionDraft {
            success_seconds: Some(None),
            failed_seconds: Some(Some(1.5)),
            cancelled_seconds: None,
        };
        let draft = SettingsDraft { retention, ..SettingsDraft::default() };
        let expected = Retention {
            success: None,
            failed: Some(Duration::from_millis(1500)),
            cancelled: Some(DEFAULT_RETENTION),
        };
        assert_eq!(draft.check().unwrap().settings.retention, expected);
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let bad = BackOffDraft { factor: Some(0.5), ..BackOffDraft::default() };
        let draft = SettingsDraft {
            retries: Some(1001.0),
            back_off: Some(bad),
            worker_concurrency: Some(0.0),
            loss_limit: Some(1.5),
            retention: RetentionDraft {
                success_seconds: Some(Some(0.5)),
                failed_seconds: Some(Some(f64::NAN)),
                cancelled_seconds: Some(Some(1e12)),
            },
            redact: Some(vec!["card".to_owned()]),
            comment: Some("x".repeat(COMMENT_CHARS + 1)),
        };
        let expected = [
            "/retries OUT_OF_RANGE",
            "/backoff/factor OUT_OF_RANGE",
            "/workerConcurrency OUT_OF_RANGE",
            "/lossLimit OUT_OF_RANGE",
            "/retention/successSeconds OUT_OF_RANGE",
            "/retention/failedSeconds OUT_OF_RANGE",
            "/retention/cancelledSeconds OUT_OF_RANGE",
            "/redact/0 INVALID_PATH",
            "/comment OUT_OF_RANGE",
        ];
        assert_eq!(errors(draft), expected);
    }

    #[test]
    fn settings_of_an_older_version_are_read_with_defaults() {
        let read: Settings = serde_json::from_str(r#"{"retries":7}"#).unwrap();
        assert_eq!(read, Settings { retries: 7, ..Settings::default() });
        let redact = vec!["/card".to_owned()];
        let all = Settings { worker_concurrency: Some(9), loss_limit: Some(2), redact, ..read };
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), all);
    }
}
