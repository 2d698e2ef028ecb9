//! `duly doctor`: looks at what goes wrong most often and says what to do about it.

mod disk;
mod server;

use serde::Serialize;

use crate::args::{DoctorArgs, Output};
use crate::exit::Ending;
use crate::output;

/// What one check found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    check: &'static str,
    state: State,
    detail: String,
    /// What to do, unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, state: State::Ok, detail: detail.into(), remedy: None }
    }

    fn bad(
        check: &'static str,
        state: State,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, state, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Ending> {
    let mut findings = disk::check(&args.data);
    findings.extend(server::check(&args.client)?);
    match args.client.output {
        Output::Json => output::json(&findings)?,
        Output::Table | Output::Id => output::data(&table(&findings))?,
    }
    let failed = findings.iter().filter(|finding| finding.state == State::Fail).count();
    if failed > 0 {
        output::say(&format!("{failed} checks failed"));
        return Ok(Ending::Unwell);
    }
    output::say("nothing is in the way; next: duly dev");
    Ok(Ending::Ok)
}

fn table(findings: &[Finding]) -> String {
    let mut table = output::table(&["check", "state", "detail", "what to do"]);
    for finding in findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Warn => "warning",
            State::Fail => "FAILED",
        };
        let remedy = finding.remedy.clone().unwrap_or_default();
        table.add_row([finding.check.to_owned(), state.to_owned(), finding.detail.clone(), remedy]);
    }
    output::trimmed(&table)
}
