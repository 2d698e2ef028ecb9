//! The descriptions of the samples.

use crate::handlers::reference::{Example, Outcome, PayloadField, Reference, ResultField};

const FLAG: Option<&str> = Some("--samples");

const PAYLOAD: &[PayloadField] = &[PayloadField {
    name: "speed",
    r#type: "number, 0.01 to 1,000,000",
    default: Some("1"),
    meaning: "How many times as fast as usual; 10 takes a tenth of the time.",
}];

const STEPS: ResultField =
    ResultField { name: "steps", r#type: "whole number", meaning: "How many steps it took." };
const SAMPLE: ResultField =
    ResultField { name: "sample", r#type: "true", meaning: "Says that the numbers are invented." };

const fn number(name: &'static str, meaning: &'static str) -> ResultField {
    ResultField { name, r#type: "whole number", meaning }
}

pub(in crate::handlers) const CLEANUP_TEMP_FILES: Reference = Reference {
    r#type: "cleanup-temp-files",
    summary: "Pretends to remove old files, for 1 s.",
    flag: FLAG,
    notes: &["Reports progress, logs its steps and changes nothing. `duly dev --samples` runs it."],
    payload: PAYLOAD,
    result: &[
        number("filesFound", "Files that were looked at."),
        number("filesRemoved", "Files that would be gone."),
        number("bytesFreed", "Their size."),
        SAMPLE,
        STEPS,
    ],
    errors: &[],
    examples: &[Example {
        title: "Ten times as fast",
        payload: r#"{"speed": 10}"#,
        outcome: Outcome::Result(
            r#"{"bytesFreed": 2483415, "filesFound": 562, "filesRemoved": 105, "sample": true, "steps": 3}"#,
        ),
    }],
};

pub(in crate::handlers) const DAILY_REPORT: Reference = Reference {
    r#type: "daily-report",
    summary: "Pretends to write a report, for 5 s.",
    flag: FLAG,
    notes: &["Reports progress, logs its steps and changes nothing. `duly dev --samples` runs it."],
    payload: PAYLOAD,
    result: &[
        ResultField { name: "report", r#type: "string", meaning: "`daily`." },
        number("rows", "Rows of the report."),
        number("regions", "Regions in it."),
        number("revenueCents", "The sum of the orders."),
        SAMPLE,
        STEPS,
    ],
    errors: &[],
    examples: &[Example {
        title: "Ten times as fast",
        payload: r#"{"speed": 10}"#,
        outcome: Outcome::Result(
            r#"{"regions": 7, "report": "daily", "revenueCents": 4711000, "rows": 2093, "sample": true, "steps": 4}"#,
        ),
    }],
};

pub(in crate::handlers) const DATA_BACKUP: Reference = Reference {
    r#type: "data-backup",
    summary: "Pretends to back a database up, for 10 s.",
    flag: FLAG,
    notes: &["Reports progress, logs its steps and changes nothing. `duly dev --samples` runs it."],
    payload: PAYLOAD,
    result: &[
        number("tables", "Tables that were copied."),
        number("bytes", "Their size."),
        number("archiveBytes", "The size of the archive."),
        ResultField {
            name: "checksum",
            r#type: "string",
            meaning: "Eight hexadecimal digits that look like a checksum.",
        },
        SAMPLE,
        STEPS,
    ],
    errors: &[],
    examples: &[
        Example {
            title: "Ten times as fast",
            payload: r#"{"speed": 10}"#,
            outcome: Outcome::Result(
                r#"{"archiveBytes": 24190334, "bytes": 120951672, "checksum": "5bd1e995", "sample": true, "steps": 5, "tables": 24}"#,
            ),
        },
        Example {
            title: "A speed of nothing",
            payload: r#"{"speed": 0}"#,
            outcome: Outcome::Error("INVALID_PAYLOAD"),
        },
    ],
};
