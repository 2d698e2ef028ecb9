//! Bodies of submits and of changes.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| duly_api::fuzzing::read_task(body));
