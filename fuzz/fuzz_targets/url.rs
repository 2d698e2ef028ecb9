//! Payloads of `http` tasks, by their URL: an address that would be dialled is public.

#![no_main]

use std::net::IpAddr;

use duly_core::id::TaskId;
use duly_core::lease::Lease;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::time::Timestamp;
use duly_worker::{Context, Guard};

libfuzzer_sys::fuzz_target!(|url: &str| {
    for url in [url.to_owned(), format!("http://{url}/")] {
        let payload = serde_json::json!({"url": url}).to_string();
        let address =
            duly_worker::fuzzing::dialled_address(&Guard::new(Vec::new()), &context(payload));
        assert!(address.is_none_or(is_public), "{url} leads to {address:?}");
    }
});

/// By the standard library, which knows the ranges on its own.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            !(it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_broadcast()
                || it.is_multicast()
                || it.is_documentation()
                || it.is_unspecified())
        }
        IpAddr::V6(it) => {
            !(it.is_loopback()
                || it.is_unspecified()
                || it.is_multicast()
                || it.is_unique_local()
                || it.is_unicast_link_local())
                && it.to_ipv4().is_none()
        }
    }
}

fn context(payload: String) -> Context {
    let now = Timestamp::from_millis(1_900_000_000_000);
    let task_type = TypeName::new("http").expect("a name");
    let (tenant, queue) = (TenantName::default_tenant(), QueueName::default_queue());
    Context::new(Lease {
        task: TaskId::mint(now, 7, 8),
        epoch: 1,
        run: 1,
        attempt: 1,
        retries: 3,
        lane: Lane { tenant, queue, task_type },
        timeout: None,
        granted_at: now,
        run_at: now,
        payload: payload.into(),
        has_parents: false,
        has_children: false,
        renders: false,
        parents: None,
    })
}
