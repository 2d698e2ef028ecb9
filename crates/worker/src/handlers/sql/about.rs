//! The description of the type `sql`.

use crate::handlers::reference::{
    ErrorCode, Example, Outcome, PayloadField, Reference, ResultField, Retried,
};

pub(in crate::handlers) const REFERENCE: Reference = Reference {
    r#type: "sql",
    summary: "Runs one statement on a database that the operator has named.",
    flag: Some("sources"),
    notes: &[
        "`duly serve` runs this type if its file names databases under `sources`, each with the \
         tenants that may use it ([operations.md](operations.md#databases-for-tasks)). `duly dev` \
         has one: `memory`, an empty SQLite database that is new for every statement.",
        "A source only reads, unless the operator lets it write. A statement that writes may run \
         again, if its worker dies before it has reported: write it so that a second time does no \
         harm. When the time limit is over or the task is cancelled, the statement is cancelled.",
        "Values become JSON without loss. From PostgreSQL: integers and floats as numbers, \
         `numeric` as a string, dates and times as strings in RFC 3339 (without a zone where the \
         type has none), `bytea` as base64, `json` and `jsonb` as they are, arrays of one \
         dimension as arrays. From SQLite: integers, floats, texts, and blobs as base64. Other \
         types are an error that says how to cast them.",
        "Parameters go the same way: PostgreSQL reads strings and numbers as the type that the \
         statement wants (`$1::uuid`), and strings for `bytea` as base64. In SQLite, true is 1, \
         and arrays and objects are their JSON text.",
    ],
    payload: PAYLOAD,
    result: RESULT,
    errors: ERRORS,
    examples: EXAMPLES,
};

const PAYLOAD: &[PayloadField] = &[
    PayloadField {
        name: "source",
        r#type: "string",
        default: None,
        meaning: "The name of the database.",
    },
    PayloadField {
        name: "statement",
        r#type: "string",
        default: None,
        meaning: "One statement. Its parameters are `$1`, `$2` and so on in PostgreSQL, `?1` or \
                  `?` in SQLite.",
    },
    PayloadField {
        name: "parameters",
        r#type: "array, at most 1,000 items",
        default: Some("none"),
        meaning: "The values of the parameters, in their order. They are never put into the text \
                  of the statement.",
    },
    PayloadField {
        name: "maxRows",
        r#type: "whole number, 0 to 10,000",
        default: Some("1,000"),
        meaning: "Further rows are left out.",
    },
];

const RESULT: &[ResultField] = &[
    ResultField {
        name: "rows",
        r#type: "array of objects",
        meaning: "The rows, by the names of their columns; at most 512 KiB.",
    },
    ResultField {
        name: "truncated",
        r#type: "boolean",
        meaning: "Whether rows were left out, for their number or their size.",
    },
    ResultField {
        name: "affected",
        r#type: "whole number or null",
        meaning: "How many rows the statement changed, if it has no rows of its own.",
    },
];

const ERRORS: &[ErrorCode] = &[
    ErrorCode {
        code: "SQL_SOURCE",
        retried: Retried::No,
        meaning: "There is no such source, or the task's tenant may not use it.",
    },
    ErrorCode {
        code: "SQL_STATEMENT",
        retried: Retried::No,
        meaning: "The database refuses the statement: its text, its parameters, a constraint, \
                  missing rights, or a write where only reading is allowed. The message has its \
                  reason.",
    },
    ErrorCode {
        code: "SQL_TYPE",
        retried: Retried::No,
        meaning: "A column or a value has no form in JSON. The message names the type.",
    },
    ErrorCode {
        code: "SQL_UNAVAILABLE",
        retried: Retried::Yes,
        meaning: "The database cannot be reached, is too busy or stops, or another transaction is \
                  in the way.",
    },
];

const EXAMPLES: &[Example] = &[
    Example {
        title: "A query with parameters",
        payload: r#"{"source": "memory", "statement": "SELECT ?1 + ?2 AS sum, ?3 AS name", "parameters": [1, 2, "Ada"]}"#,
        outcome: Outcome::Result(
            r#"{"rows": [{"sum": 3, "name": "Ada"}], "truncated": false, "affected": null}"#,
        ),
    },
    Example {
        title: "A source that only reads",
        payload: r#"{"source": "memory", "statement": "CREATE TABLE x (id INTEGER)"}"#,
        outcome: Outcome::Error("SQL_STATEMENT"),
    },
    Example {
        title: "A source that does not exist",
        payload: r#"{"source": "shop", "statement": "SELECT 1"}"#,
        outcome: Outcome::Error("SQL_SOURCE"),
    },
];
