//! From what a client asks for to a task that can be stored: every field is checked here, for
//! REST and for embedded callers alike.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::back_off::{self, Asked, BackOff, Jitter, Strategy};
use crate::http_header;
use crate::id::WorkflowId;
use crate::json;
use crate::limits::{
    BACK_OFF, BACK_OFF_FACTOR, DEFAULT_PRIORITY, DEFAULT_RETRIES, IDEMPOTENCY_KEY_CHARS, JITTER,
    LABEL_CHARS, LABELS, PAYLOAD_BYTES, PRIORITY, RETRIES, RUN_AHEAD, TIMEOUT,
};
use crate::mail;
use crate::name::{QueueName, RESERVED, TypeName, is_reserved};
use crate::task::Priority;
use crate::template;
use crate::time::Timestamp;
use crate::trace::TraceParent;
use crate::workflow::Dependency;

/// The fields of a submit, each of the right JSON type and otherwise unchecked.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// `type`
    pub task_type: Option<String>,
    /// `payload`, as JSON text
    pub payload: Option<String>,
    /// `queue`
    pub queue: Option<String>,
    /// `priority`
    pub priority: Option<f64>,
    /// `delaySeconds`
    pub delay_seconds: Option<f64>,
    /// `runAt`
    pub run_at: Option<String>,
    /// `retries`
    pub retries: Option<f64>,
    /// `backoff`
    pub back_off: Option<BackOffDraft>,
    /// `timeoutSeconds`
    pub timeout_seconds: Option<f64>,
    /// `jitterSeconds`
    pub jitter_seconds: Option<f64>,
    /// `labels`
    pub labels: BTreeMap<String, String>,
    /// `idempotencyKey`, or the header
    pub idempotency_key: Option<String>,
    /// `dependencies`, each parent once
    pub dependencies: Vec<Dependency>,
    /// `workflowId`
    pub workflow: Option<WorkflowId>,
    /// `render`
    pub render: bool,
}

/// The fields of `backoff`, each of the right JSON type and otherwise unchecked.
#[derive(Clone, Debug, Default)]
pub struct BackOffDraft {
    /// `strategy`
    pub strategy: Option<String>,
    /// `baseSeconds`
    pub base_seconds: Option<f64>,
    /// `factor`
    pub factor: Option<f64>,
    /// `capSeconds`
    pub cap_seconds: Option<f64>,
    /// `jitter`
    pub jitter: Option<String>,
}

/// One thing that is wrong with a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer to the field.
    pub pointer: String,
    /// Stable reason.
    pub code: &'static str,
    /// For people.
    pub detail: String,
}

impl FieldError {
    /// An error of the top-level field `name`.
    pub fn of(name: &str, code: &'static str, detail: impl Into<String>) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        Self { pointer: format!("/{name}"), code, detail: detail.into() }
    }
}

/// When a task may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This long after the store takes it.
    After(Duration),
    /// At this instant; one in the past means now.
    At(Timestamp),
}

impl Start {
    /// The instant, given the store's time.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::After(delay) => now.plus(delay),
            Self::At(instant) => instant.max(now),
        }
    }
}

/// A submit whose every field holds; what is still missing comes from the store's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Names the handler.
    pub task_type: TypeName,
    /// Where it waits.
    pub queue: QueueName,
    /// Its level.
    pub priority: Priority,
    /// When it may start.
    pub start: Start,
    /// The start is spread over this time, at random.
    pub jitter: Duration,
    /// How many failed attempts may be followed by another, if it says.
    pub retries: Option<u32>,
    /// How long they wait for each other, as far as it says.
    pub back_off: Asked,
    /// How long its handler may run.
    pub timeout: Option<Duration>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// JSON text.
    pub payload: Arc<str>,
    /// Makes a repeated submit answer with the first one's task.
    pub idempotency_key: Option<String>,
    /// What it waits for, by the parents' ids, each once.
    pub dependencies: Vec<Dependency>,
    /// The workflow that it joins.
    pub workflow: Option<WorkflowId>,
    /// Whether its payload holds expressions.
    pub render: bool,
    /// Which request it comes from; not part of what was asked for.
    pub trace: Option<TraceParent>,
}

/// A change to a waiting task whose every field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// JSON text.
    pub payload: Option<Arc<str>>,
    /// Its level.
    pub priority: Option<Priority>,
    /// When it may start.
    pub start: Option<Start>,
    /// How many failed attempts may be followed by another.
    pub retries: Option<u32>,
    /// How long its handler may run.
    pub timeout: Option<Duration>,
    /// Searchable marks, all of them.
    pub labels: Option<BTreeMap<String, String>>,
}

impl Draft {
    /// Checks every field and reports all that is wrong at once.
    pub fn check(self) -> Result<Spec, Vec<FieldError>> {
        let mut errors = Vec::new();
        let task_type = self.check_type(&mut errors);
        let queue = self.check_queue(&mut errors);
        let priority = whole("priority", self.priority, 0..=PRIORITY.into(), &mut errors);
        let retries = whole("retries", self.retries, 0..=RETRIES, &mut errors);
        let start = self.check_start(&mut errors);
        let jitter = seconds("jitterSeconds", self.jitter_seconds, within(JITTER), &mut errors);
        let back_off = self.back_off.clone().unwrap_or_default().check(&mut errors);
        let timeout = self.check_timeout(&mut errors);
        errors.extend(self.payload.as_deref().and_then(|text| check_payload(text).err()));
        errors.extend(check_labels(&self.labels).err());
        self.check_key(&mut errors);
        if task_type.as_ref().is_some_and(|name| name.as_str() == http_header::TYPE) {
            let payload = self.payload.as_deref().unwrap_or_default();
            errors.extend(http_header::check_payload(payload).err());
        }
        if task_type.as_ref().is_some_and(|name| name.as_str() == mail::TYPE) {
            let payload = self.payload.as_deref().unwrap_or_default();
            errors.extend(mail::check_payload(payload, self.render));
        }
        if self.render && errors.is_empty() {
            let payload = self.payload.as_deref().unwrap_or_default();
            errors.extend(template::check(payload).err());
        }
        let mut dependencies = self.dependencies;
        dependencies.sort_unstable();
        let (Some(task_type), Some(queue), true) = (task_type, queue, errors.is_empty()) else {
            return Err(errors);
        };
        let level = priority.map_or(DEFAULT_PRIORITY, |level| {
            u8::try_from(level).expect("checked against the highest level")
        });
        Ok(Spec {
            task_type,
            queue,
            priority: Priority::new(level).expect("checked against the highest level"),
            start,
            jitter: jitter.unwrap_or_default(),
            back_off,
            retries,
            timeout,
            labels: self.labels,
            payload: self.payload.map_or_else(|| Arc::from("null"), Arc::from),
            idempotency_key: self.idempotency_key,
            dependencies,
            workflow: self.workflow,
            render: self.render,
            trace: None,
        })
    }

    /// Checks the fields of a change to a task: those that can change, each only if it is there.
    pub fn check_change(self) -> Result<Change, Vec<FieldError>> {
        let mut errors = Vec::new();
        let fixed = [
            ("type", self.task_type.is_some()),
            ("queue", self.queue.is_some()),
            ("backoff", self.back_off.is_some()),
            ("jitterSeconds", self.jitter_seconds.is_some()),
            ("idempotencyKey", self.idempotency_key.is_some()),
            ("dependencies", !self.dependencies.is_empty()),
            ("workflowId", self.workflow.is_some()),
            ("render", self.render),
        ];
        for (name, _) in fixed.into_iter().filter(|(_, given)| *given) {
            errors.push(FieldError::of(name, "UNSUPPORTED_FIELD", "cannot be changed"));
        }
        let priority = whole("priority", self.priority, 0..=PRIORITY.into(), &mut errors);
        let retries = whole("retries", self.retries, 0..=RETRIES, &mut errors);
        let moved = self.run_at.is_some() || self.delay_seconds.is_some();
        let start = self.check_start(&mut errors);
        let timeout = self.check_timeout(&mut errors);
        errors.extend(self.payload.as_deref().and_then(|text| check_payload(text).err()));
        errors.extend(check_labels(&self.labels).err());
        if !errors.is_empty() {
            return Err(errors);
        }
        let level = |level| Priority::new(u8::try_from(level).ok()?);
        Ok(Change {
            payload: self.payload.map(Arc::from),
            priority: priority.and_then(level),
            start: moved.then_some(start),
            retries,
            timeout,
            labels: (!self.labels.is_empty()).then_some(self.labels),
        })
    }

    fn check_timeout(&self, errors: &mut Vec<FieldError>) -> Option<Duration> {
        let timeout = seconds("timeoutSeconds", self.timeout_seconds, within(TIMEOUT), errors);
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            errors.push(FieldError::of("timeoutSeconds", "OUT_OF_RANGE", "must be above 0"));
        }
        timeout
    }

    fn check_type(&self, errors: &mut Vec<FieldError>) -> Option<TypeName> {
        let Some(text) = &self.task_type else {
            errors.push(FieldError::of("type", "REQUIRED", "is required"));
            return None;
        };
        let name = TypeName::given(text);
        name.map_err(|bad| errors.push(FieldError::of("type", "INVALID_NAME", bad.to_string())))
            .ok()
    }

    fn check_queue(&self, errors: &mut Vec<FieldError>) -> Option<QueueName> {
        let Some(text) = &self.queue else { return Some(QueueName::default_queue()) };
        let name = QueueName::given(text);
        name.map_err(|bad| errors.push(FieldError::of("queue", "INVALID_NAME", bad.to_string())))
            .ok()
    }

    fn check_start(&self, errors: &mut Vec<FieldError>) -> Start {
        let delay = seconds("delaySeconds", self.delay_seconds, within(RUN_AHEAD), errors);
        let Some(text) = &self.run_at else { return Start::After(delay.unwrap_or_default()) };
        if self.delay_seconds.is_some() {
            let detail = "give delaySeconds or runAt, not both";
            errors.push(FieldError::of("runAt", "CONFLICTING_FIELDS", detail));
        }
        match Timestamp::parse(text) {
            Ok(instant) => Start::At(instant),
            Err(bad) => {
                errors.push(FieldError::of("runAt", "INVALID_TIME", bad.to_string()));
                Start::After(Duration::ZERO)
            }
        }
    }

    fn check_key(&self, errors: &mut Vec<FieldError>) {
        errors.extend(self.idempotency_key.as_deref().and_then(|key| check_key(key).err()));
    }
}

impl BackOffDraft {
    /// Checks every field; the errors are those of a body that holds it as `backoff`.
    pub(crate) fn check(&self, errors: &mut Vec<FieldError>) -> Asked {
        let mut own = Vec::new();
        let base = seconds("baseSeconds", self.base_seconds, within(BACK_OFF), &mut own);
        let cap = seconds("capSeconds", self.cap_seconds, within(BACK_OFF), &mut own);
        let growing = 1.0..=f64::from(BACK_OFF_FACTOR);
        if self.factor.is_some_and(|factor| !growing.contains(&factor)) {
            let detail = format!("must be a number from 1 to {BACK_OFF_FACTOR}");
            own.push(FieldError::of("factor", "OUT_OF_RANGE", detail));
        }
        let strategies = [
            ("none", Strategy::None),
            ("fixed", Strategy::Fixed),
            ("linear", Strategy::Linear),
            ("exponential", Strategy::Exponential),
        ];
        let jitters = [("none", Jitter::None), ("equal", Jitter::Equal), ("full", Jitter::Full)];
        let strategy = choice("strategy", self.strategy.as_deref(), &strategies, &mut own);
        let jitter = choice("jitter", self.jitter.as_deref(), &jitters, &mut own);
        let nested = |error: FieldError| FieldError {
            pointer: format!("/backoff{}", error.pointer),
            ..error
        };
        errors.extend(own.into_iter().map(nested));
        Asked { strategy, base, factor: self.factor, cap, jitter }
    }
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(
    name: &str,
    value: Option<&str>,
    words: &[(&str, T)],
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let value = value?;
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning);
    if found.is_none() {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let detail = format!("must be one of {}", words.join(", "));
        errors.push(FieldError::of(name, "UNKNOWN_WORD", detail));
    }
    found
}

/// Checks the labels of a task or a workflow.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), FieldError> {
    if labels.len() > LABELS {
        let detail = format!("holds {} labels; the limit is {LABELS}", labels.len());
        return Err(FieldError::of("labels", "TOO_MANY", detail));
    }
    let fits = |text: &str| text.chars().count() <= LABEL_CHARS;
    let plain = |text: &str| !text.chars().any(char::is_control);
    let good = |(key, value): (&String, &String)| {
        !key.is_empty() && fits(key) && fits(value) && plain(key) && plain(value)
    };
    if let Some(key) = labels.keys().find(|key| is_reserved(key)) {
        let detail = format!("must not begin with `{RESERVED}`, as {key} does");
        return Err(FieldError::of("labels", "INVALID_LABEL", detail));
    }
    if labels.iter().all(good) {
        return Ok(());
    }
    let detail = format!(
        "keys and values are at most {LABEL_CHARS} characters, keys at least one, and no control \
         characters"
    );
    Err(FieldError::of("labels", "INVALID_LABEL", detail))
}

/// Checks the idempotency key of a request.
pub fn check_key(key: &str) -> Result<(), FieldError> {
    let length = key.chars().count();
    let fits = (1..=IDEMPOTENCY_KEY_CHARS).contains(&length);
    if fits && !key.chars().any(char::is_control) {
        return Ok(());
    }
    let detail = format!("is 1 to {IDEMPOTENCY_KEY_CHARS} characters without control characters");
    Err(FieldError::of("idempotencyKey", "INVALID_KEY", detail))
}

/// Checks JSON text as a payload: of a submit, and of a replay that changes it.
pub fn check_payload(text: &str) -> Result<(), FieldError> {
    if text.len() > PAYLOAD_BYTES {
        let detail = format!("is {} bytes; the limit is {PAYLOAD_BYTES}", text.len());
        return Err(FieldError::of("payload", PAYLOAD_TOO_LARGE, detail));
    }
    json::check(text).map_err(|bad| {
        let code = match bad {
            json::BadJson::TooDeep => "TOO_DEEP",
            json::BadJson::Nul => "NUL_CHARACTER",
            json::BadJson::HalfCharacter => "INVALID_UNICODE",
        };
        FieldError::of("payload", code, bad.to_string())
    })
}

/// The code of a payload over the limit, which answers 413 and not 422.
pub const PAYLOAD_TOO_LARGE: &str = "PAYLOAD_TOO_LARGE";

impl Spec {
    /// Whether the task is asked for later than the system looks ahead.
    pub fn is_too_far(&self, now: Timestamp) -> bool {
        self.start.resolve(now).plus(self.jitter) > now.plus(RUN_AHEAD)
    }

    /// When the task may start, given the store's time and one random number.
    pub fn run_at(&self, now: Timestamp, entropy: u64) -> Timestamp {
        self.start.resolve(now).plus(back_off::draw(self.jitter, entropy))
    }

    /// How long the task waits once the store has taken it; nothing if it waits for an instant that
    /// lies ahead.
    pub fn delay(&self, now: Timestamp, entropy: u64) -> Option<Duration> {
        let after = match self.start {
            Start::After(delay) => delay,
            Start::At(instant) if instant <= now => Duration::ZERO,
            Start::At(_) => return None,
        };
        Some(after + back_off::draw(self.jitter, entropy))
    }

    /// Hash of what was asked for, to tell a repeated submit from a reused key. What was not said
    /// counts as the first version of the settings says, whatever they say now: a submit that is
    /// repeated after they changed is still the same.
    pub fn body_hash(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        json::hash_bytes(self.task_type.as_str().as_bytes(), &mut hasher);
        json::hash_bytes(self.queue.as_str().as_bytes(), &mut hasher);
        hasher.update([self.priority.level()]);
        match self.start {
            Start::After(delay) => json::hash_bytes(&delay.as_millis().to_be_bytes(), &mut hasher),
            Start::At(instant) => json::hash_bytes(&instant.millis().to_be_bytes(), &mut hasher),
        }
        hasher.update(self.jitter.as_millis().to_be_bytes());
        hasher.update(self.retries.unwrap_or(DEFAULT_RETRIES).to_be_bytes());
        let back_off =
            serde_json::to_vec(&self.back_off.or(BackOff::default())).expect("a policy is JSON");
        json::hash_bytes(&back_off, &mut hasher);
        hasher.update(self.timeout.map_or(0, |timeout| timeout.as_millis()).to_be_bytes());
        hasher.update((self.labels.len() as u64).to_be_bytes());
        for (key, value) in &self.labels {
            json::hash_bytes(key.as_bytes(), &mut hasher);
            json::hash_bytes(value.as_bytes(), &mut hasher);
        }
        json::hash(&self.payload, &mut hasher);
        self.hash_links(&mut hasher);
        hasher.finalize().into()
    }

    /// What ties the task to others. A task without ties hashes as it did before there were any: keys
    /// are remembered for a day.
    fn hash_links(&self, into: &mut Sha256) {
        for Dependency { parent, on } in &self.dependencies {
            into.update([b'd']);
            into.update(parent.as_bytes());
            json::hash_bytes(on.as_str().as_bytes(), into);
        }
        if let Some(workflow) = self.workflow {
            into.update([b'w']);
            into.update(workflow.as_bytes());
        }
        if self.render {
            into.update([b'r']);
        }
    }
}

/// A whole number within a range.
pub(crate) fn whole(
    name: &str,
    value: Option<f64>,
    range: RangeInclusive<u32>,
    errors: &mut Vec<FieldError>,
) -> Option<u32> {
    let value = value?;
    let (least, most) = range.into_inner();
    if value.fract() != 0.0 || !(f64::from(least)..=f64::from(most)).contains(&value) {
        let detail = format!("must be a whole number from {least} to {most}");
        errors.push(FieldError::of(name, "OUT_OF_RANGE", detail));
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Some(value as u32)
}

const fn within(most: Duration) -> RangeInclusive<Duration> {
    Duration::ZERO..=most
}

/// A number of seconds within a range, to the millisecond.
pub(crate) fn seconds(
    name: &str,
    value: Option<f64>,
    range: RangeInclusive<Duration>,
    errors: &mut Vec<FieldError>,
) -> Option<Duration> {
    let value = value?;
    let (least, most) = range.into_inner();
    if !(least.as_secs_f64()..=most.as_secs_f64()).contains(&value) {
        let (least, most) = (least.as_secs(), most.as_secs());
        let detail = format!("must be a number of seconds from {least} to {most}");
        errors.push(FieldError::of(name, "OUT_OF_RANGE", detail));
        return None;
    }
    // Rounded up: nothing starts before the time that was asked for.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Some(Duration::from_millis((value * 1000.0 - 1e-6).ceil().max(0.0) as u64))
}

#[cfg(test)]
mod tests;
