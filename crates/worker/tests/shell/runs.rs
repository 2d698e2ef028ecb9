//! Programs that run to their end, or do not start.

use std::time::{Duration, Instant};

use duly_core::limits::LOG_BYTES;
use duly_worker::Handler as _;
use duly_worker::handlers::Shell;
use serde_json::{Value, json};

use crate::fifo::Fifo;
use crate::{code, context, run, script, shell};

#[tokio::test]
async fn a_program_returns_what_it_printed() {
    let (result, log) = run(script("echo one; sleep 0.05; echo two >&2; printf three", "-")).await;
    let result = result.unwrap();
    assert_eq!(result["exit"], 0);
    assert_eq!(result["signal"], Value::Null);
    assert_eq!(result["stdoutTail"], "one\nthree");
    assert!(result["seconds"].as_f64().unwrap() >= 0.05, "{result}");
    assert_eq!(result.as_object().unwrap().len(), 4, "{result}");
    assert!(log.starts_with("one\n") && log.contains("two\n") && log.contains("three\n"), "{log}");
}

#[tokio::test]
async fn an_exit_code_that_was_not_expected_is_tried_again() {
    let (result, log) = run(script("echo fine; echo no luck >&2; exit 3", "-")).await;
    let message = "the program ended with exit status: 3: no luck";
    assert_eq!(code(&result.unwrap_err()), ("retry", "SHELL_EXIT", message));
    assert!(log.contains("fine\n") && log.contains("no luck\n"), "{log}");

    let (result, _) = run(script("echo bad; exit 1", "-")).await;
    let message = "the program ended with exit status: 1: bad";
    assert_eq!(code(&result.unwrap_err()).2, message, "without an error it is the output");

    let (result, _) = run(json!({"argv": ["sh", "-c", "exit 3"], "expectExit": [0, 3]})).await;
    assert_eq!(result.unwrap()["exit"], 3);
    let (result, _) = run(json!({"argv": ["true"], "expectExit": [1]})).await;
    let message = "the program ended with exit status: 0";
    assert_eq!(code(&result.unwrap_err()), ("retry", "SHELL_EXIT", message));
}

#[tokio::test]
async fn a_program_that_a_signal_ends_is_tried_again() {
    let (result, _) = run(script("kill -KILL $$", "-")).await;
    let message = "the program ended with signal: 9 (SIGKILL)";
    assert_eq!(code(&result.unwrap_err()), ("retry", "SHELL_SIGNAL", message));
}

#[tokio::test]
async fn what_cannot_be_started_fails() {
    for (payload, why) in [
        (json!({"argv": ["no-such-program"]}), "cannot start \"no-such-program\": No such file"),
        (json!({"argv": ["/"]}), "cannot start \"/\": Permission denied"),
        (json!({"argv": ["true"], "cwd": "/no/such"}), "cannot start \"true\" in \"/no/such\""),
    ] {
        let (result, _) = run(payload).await;
        let error = result.unwrap_err();
        let (decision, code, message) = code(&error);
        assert_eq!((decision, code), ("fail", "SHELL_START"));
        assert!(message.starts_with(why), "{message}");
    }
}

#[tokio::test]
async fn the_environment_is_cleared() {
    let path = std::env::vars_os().find(|(name, _)| name == "PATH").unwrap();
    let own = [("HOME", "/nowhere"), ("SECRET", "hunter2"), ("DULY_TOKEN", "hunter3")];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let shell = Shell::new(own.into_iter().chain([path.clone()]));
    let context = context(&json!({"argv": ["env"], "env": {"GREETING": "hi", "HOME": "/tmp"}}));
    let output = shell.run(context.clone()).await.unwrap().into_text().unwrap();
    let result: Value = serde_json::from_str(&output).unwrap();
    let mut printed: Vec<_> = result["stdoutTail"].as_str().unwrap().lines().collect();
    printed.sort_unstable();
    let id = context.task();
    let expected = [
        "DULY_ATTEMPT=1".to_owned(),
        "DULY_EPOCH=1".to_owned(),
        format!("DULY_IDEMPOTENCY_KEY={id}-1"),
        format!("DULY_TASK_ID={id}"),
        "GREETING=hi".to_owned(),
        "HOME=/tmp".to_owned(),
        format!("PATH={}", path.1.to_str().unwrap()),
    ];
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn a_program_reads_what_it_is_given_and_nothing_else() {
    let text = "ä\0line\n".repeat(20_000);
    let (result, _) = run(json!({"argv": ["wc", "-c"], "stdin": text})).await;
    assert_eq!(result.unwrap()["stdoutTail"], format!("{}\n", text.len()));
    let (result, _) = run(json!({"argv": ["cat"]})).await;
    assert_eq!(result.unwrap()["stdoutTail"], "", "it does not wait for input");
    let (result, _) = run(json!({"argv": ["true"], "stdin": text})).await;
    assert_eq!(result.unwrap()["exit"], 0, "a program need not read its input");
    let (result, _) = run(json!({"argv": ["pwd"], "cwd": "/"})).await;
    assert_eq!(result.unwrap()["stdoutTail"], "/\n");
}

#[tokio::test]
async fn much_output_is_read_and_its_end_kept() {
    let (result, log) = run(script("head -c 30000000 /dev/zero; yes | head -c 3000000", "-")).await;
    let tail = result.unwrap()["stdoutTail"].as_str().unwrap().to_owned();
    assert_eq!(tail.len(), 4 * 1024);
    assert!(tail.ends_with("y\ny\n"));
    assert!(log.len() <= LOG_BYTES && log.ends_with("y\ny\n"));
}

#[tokio::test]
async fn what_a_program_leaves_behind_neither_holds_the_attempt_nor_stays() {
    let mut fifo = Fifo::new();
    let started = Instant::now();
    let text = r#"exec 3>"$0"; sleep 1000 & echo started | tee /dev/fd/3"#;
    let (result, _) = run(script(text, fifo.path())).await;
    assert_eq!(result.unwrap()["stdoutTail"], "started\n");
    assert!(started.elapsed() < Duration::from_secs(500), "the pipe was still open");
    assert_eq!(fifo.line().await, "started");
    fifo.all_gone().await;
}

#[tokio::test]
async fn a_payload_must_make_sense() {
    let many: Vec<String> = vec!["x".to_owned(); 1_001];
    let large = "x".repeat(128 * 1024 - 1);
    for payload in [
        json!(null),
        json!({}),
        json!({"argv": "echo hi"}),
        json!({"argv": []}),
        json!({"argv": [""]}),
        json!({"argv": ["echo", 1]}),
        json!({"argv": many}),
        json!({"argv": ["e", large]}),
        json!({"argv": ["echo", "\0"]}),
        json!({"argv": ["echo"], "shell": true}),
        json!({"argv": ["echo"], "env": {"": "x"}}),
        json!({"argv": ["echo"], "env": {"A=B": "x"}}),
        json!({"argv": ["echo"], "env": {"A": "\0"}}),
        json!({"argv": ["echo"], "env": {"DULY_EPOCH": "9"}}),
        json!({"argv": ["echo"], "env": {"A": large}}),
        json!({"argv": ["echo"], "cwd": ""}),
        json!({"argv": ["echo"], "expectExit": []}),
        json!({"argv": ["echo"], "expectExit": [256]}),
        json!({"argv": ["echo"], "expectExit": 0}),
    ] {
        let error = shell().run(context(&payload)).await.unwrap_err();
        let (decision, code, _) = code(&error);
        let shown: String = payload.to_string().chars().take(100).collect();
        assert_eq!((decision, code), ("fail", "INVALID_PAYLOAD"), "{shown}");
    }
    let largest = "x".repeat(128 * 1024 - "true".len() - 2);
    let (result, _) = run(json!({"argv": ["true", largest]})).await;
    assert_eq!(result.unwrap()["exit"], 0);
}
