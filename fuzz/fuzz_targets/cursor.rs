//! Cursors of all lists.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| duly_api::fuzzing::read_cursor(text));
