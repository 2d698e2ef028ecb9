//! The description of the type `shell`.

use crate::handlers::reference::{
    ErrorCode, Example, Outcome, PayloadField, Reference, ResultField, Retried,
};

pub(in crate::handlers) const REFERENCE: Reference = Reference {
    r#type: "shell",
    summary: "Runs a program on the worker's machine.",
    flag: Some("--allow-shell"),
    notes: &[
        "With `--allow-shell` (on `duly dev`, `duly serve` or `duly worker run`) **everybody who \
         can submit tasks runs programs as the worker's user**: use a user with few rights, on a \
         machine that holds little. Without it, tasks of this type wait for a worker that has it.",
        "Standard output and standard error go to the attempt's log line by line and can be read \
         while the program runs: `duly task logs ID --follow`. Payloads and logs are stored as \
         they are: keep secrets out of both.",
        "A program runs in a process group of its own. When the time limit is over, the task is \
         cancelled or the lease is lost, the whole group gets SIGTERM, and SIGKILL 2 s later; when \
         a worker stops and its grace period is over, SIGKILL at once. What a program leaves \
         running in the background is killed when it ends. Two things escape: a process that has \
         made a group or session of its own (`setsid`), and everything, if the worker itself is \
         killed with SIGKILL.",
    ],
    payload: PAYLOAD,
    result: RESULT,
    errors: ERRORS,
    examples: EXAMPLES,
};

const PAYLOAD: &[PayloadField] = &[
    PayloadField {
        name: "argv",
        r#type: "array of strings",
        default: None,
        meaning: "The program and its arguments, passed as they are: no shell expands them, unless \
                  you name one, as in `[\"sh\", \"-c\", \"…\"]`. At most 1,000 items and 128 KiB.",
    },
    PayloadField {
        name: "env",
        r#type: "object of strings",
        default: Some("none"),
        meaning: "Environment variables to add. The program inherits only `PATH`, `HOME`, `LANG` \
                  and `TZ` from the worker, and gets `DULY_TASK_ID`, `DULY_EPOCH`, `DULY_ATTEMPT` \
                  and `DULY_IDEMPOTENCY_KEY`. At most 1,000 variables and 128 KiB.",
    },
    PayloadField {
        name: "cwd",
        r#type: "string",
        default: Some("the worker's directory"),
        meaning: "The directory in which it runs.",
    },
    PayloadField {
        name: "stdin",
        r#type: "string",
        default: Some("nothing"),
        meaning: "What the program reads from standard input.",
    },
    PayloadField {
        name: "expectExit",
        r#type: "array of exit codes, 0 to 255",
        default: Some("`[0]`"),
        meaning: "The exit codes that are a success.",
    },
];

const RESULT: &[ResultField] = &[
    ResultField { name: "exit", r#type: "whole number", meaning: "The exit code." },
    ResultField {
        name: "signal",
        r#type: "null",
        meaning: "Always null: a program that a signal ended did not succeed.",
    },
    ResultField { name: "seconds", r#type: "number", meaning: "How long the program ran." },
    ResultField {
        name: "stdoutTail",
        r#type: "string",
        meaning: "The last 4 KiB of standard output.",
    },
];

const ERRORS: &[ErrorCode] = &[
    ErrorCode {
        code: "SHELL_EXIT",
        retried: Retried::Yes,
        meaning: "The exit code is not in `expectExit`. The message holds the code and the last \
                  line that the program printed.",
    },
    ErrorCode {
        code: "SHELL_SIGNAL",
        retried: Retried::Yes,
        meaning: "A signal ended the program: it crashed, or another process killed it.",
    },
    ErrorCode {
        code: "SHELL_START",
        retried: Retried::Sometimes,
        meaning: "The program did not start: it or its `cwd` does not exist, or it may not be \
                  executed. Retried only if the worker was short of processes, files or memory.",
    },
];

const EXAMPLES: &[Example] = &[
    Example {
        title: "Run a program",
        payload: r#"{"argv": ["echo", "hello"]}"#,
        outcome: Outcome::Result(
            r#"{"exit": 0, "signal": null, "seconds": 0.003, "stdoutTail": "hello\n"}"#,
        ),
    },
    Example {
        title: "Run a script with a variable and standard input; `grep` exits with 1 if nothing matches",
        payload: r#"{"argv": ["sh", "-c", "grep \"$WORD\""], "env": {"WORD": "b"}, "stdin": "a\nb\n", "expectExit": [0, 1]}"#,
        outcome: Outcome::Result(
            r#"{"exit": 0, "signal": null, "seconds": 0.004, "stdoutTail": "b\n"}"#,
        ),
    },
    Example {
        title: "A program that does not exist",
        payload: r#"{"argv": ["no-such-program"]}"#,
        outcome: Outcome::Error("SHELL_START"),
    },
];
