//! The example runs, prints its result and ends by itself.

use std::process::Command;

#[test]
fn the_example_counts_words_and_ends() {
    let ended = Command::new(env!("CARGO_BIN_EXE_embedded")).output().expect("it starts");
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "SUCCESS: 3\n");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}
