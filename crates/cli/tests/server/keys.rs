//! `duly serve` with keys: who gets in, and what stops the start.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use duly_testkit::Node;
use duly_testkit::command::{self, Ended, run_with};
use duly_testkit::wait::within;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::DULY;

/// A folder with a secret and the configuration that names it.
struct Site {
    folder: tempfile::TempDir,
}

const SECRET: &str = "bm90IHJhbmRvbSwgYnV0IGxvbmcgYW5kIG1peGVkIGVub3VnaCE=";

impl Site {
    fn new() -> anyhow::Result<Self> {
        let site = Self { folder: tempfile::tempdir()? };
        site.write("secret", SECRET)?;
        let keys = format!("[{{id: main, algorithm: HS256, secretFile: {}}}]", site.path("secret"));
        site.write("duly.yaml", &format!("auth: {{keys: {keys}}}\n"))?;
        Ok(site)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.path("duly.db"))
    }

    async fn token(&self, tenant: &str, roles: &str) -> anyhow::Result<String> {
        let config = self.path("duly.yaml");
        let line = ["token", "create", "--config", &config, "--tenant", tenant];
        let line = [&line[..], &["--roles", roles, "--subject", "ada"]].concat();
        Ok(duly(&line, &[]).await?.line()?.to_owned())
    }

    async fn start(&self, extra: &[&str]) -> anyhow::Result<Node> {
        let config = self.path("duly.yaml");
        Node::start_with_keys(Path::new(DULY), "guarded", &self.store(), &config, extra).await
    }

    /// How a start ends that must not succeed.
    async fn refused(&self, config: &str, extra: &[&str]) -> anyhow::Result<Ended> {
        let file = self.write("bad.yaml", config)?.display().to_string();
        let store = self.store();
        let line = ["serve", "--store", &store, "--config", &file, "--listen"];
        duly(&[&line[..], extra].concat(), &[]).await
    }
}

async fn duly(line: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Ended> {
    run_with(Path::new(DULY), line, variables).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s27_a_server_does_not_start_without_keys_or_with_weak_ones() -> anyhow::Result<()> {
    let site = Site::new()?;
    let key = |rest: &str| format!("auth: {{keys: [{{id: k, algorithm: HS256, {rest}}}]}}\n");
    let here = "127.0.0.1:0";
    for (config, extra, words) in [
        (String::new(), vec![here], "--insecure"),
        (String::new(), vec![here], "docs/security.md"),
        (String::new(), vec!["0.0.0.0:0", "--insecure"], "loopback only"),
        (key(&format!("secret: {SECRET}")), vec![here, "--insecure"], "leave one of them out"),
        ("auth: {keys: []}\n".to_owned(), vec![here], "has no keys"),
        (key("secret: c2hvcnQ="), vec![here], "weak"),
        (key("secret: 'hunter2 is no secret'"), vec![here], "not base64"),
        (key("secretFile: absent"), vec![here], "cannot read absent"),
        (key(""), vec![here], "secretFile"),
        (key("secret: 12345678"), vec![here], "quote it"),
        ("auth: {keys: [{id: k, algorithm: none}]}\n".to_owned(), vec![here], "unknown variant"),
        ("auth: {key: []}\n".to_owned(), vec![here], "unknown field `key`"),
    ] {
        let ended = site.refused(&config, &extra).await?;
        assert_eq!(ended.code, Some(2), "{config}: {ended:?}");
        assert!(ended.stderr.contains(words), "{config}: {words:?} is not in {}", ended.stderr);
        for secret in ["hunter2", "c2hvcnQ=", "12345678", SECRET] {
            assert!(!ended.stderr.contains(secret), "{config} shows its secret");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_sign_in_with_tokens_and_keys() -> anyhow::Result<()> {
    let site = Site::new()?;
    let node = site.start(&[]).await?;
    let call = async |line: &[&str], variables: &[(&str, &str)]| {
        let line = [line, &["--server", node.url()]].concat();
        duly(&line, variables).await
    };
    let run = ["task", "run", "echo", "--wait", "-o", "id"];
    let stranger = call(&run, &[]).await?;
    assert_eq!(stranger.code, Some(4), "{stranger:?}");
    let operator = site.token("default", "operator").await?;
    let ran = call(&run, &[("DULY_TOKEN", &operator)]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let file = site.write("token", &format!("{operator}\n"))?.display().to_string();
    let ran = call(&["task", "list", "--token-file", &file, "-o", "id"], &[]).await?;
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1), "{ran:?}");
    let viewer = site.token("default", "viewer").await?;
    let refused = call(&run, &[("DULY_TOKEN", &viewer)]).await?;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("submitter"), "{refused:?}");
    // A token for all tenants names one.
    let all = site.token("*", "admin").await?;
    let unnamed = call(&["task", "list"], &[("DULY_TOKEN", &all)]).await?;
    assert!(unnamed.code == Some(1) && unnamed.stderr.contains("Duly-Tenant"), "{unnamed:?}");
    let named = call(&["task", "list", "--as-tenant", "other"], &[("DULY_TOKEN", &all)]).await?;
    assert_eq!(named.code, Some(0), "{named:?}");
    // It creates a key, which works until it is revoked.
    let admin = [("DULY_TOKEN", all.as_str()), ("DULY_TENANT", "default")];
    let made = call(&["key", "create", "ci", "--role", "submitter"], &admin).await?;
    let key = made.line()?.to_owned();
    let listed = call(&["task", "list", "-o", "id"], &[("DULY_TOKEN", &key)]).await?;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let ids = call(&["key", "list", "-o", "id"], &admin).await?;
    let revoked = call(&["key", "revoke", ids.line()?], &admin).await?;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let late = call(&["task", "list"], &[("DULY_TOKEN", &key)]).await?;
    assert_eq!(late.code, Some(4), "{late:?}");
    node.terminate().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_server_answers_who_trusts_its_authority() -> anyhow::Result<()> {
    let site = Site::new()?;
    let key = |name: &str| format!("{}/../api/tests/api/keys/{name}", env!("CARGO_MANIFEST_DIR"));
    let tls = format!("{{certFile: {}, keyFile: {}}}", key("server.cert.pem"), key("server.pem"));
    let auth = std::fs::read_to_string(site.path("duly.yaml"))?;
    let listen = format!("listen: {{address: '127.0.0.1:0', tls: {tls}}}\n");
    let file = site.write("tls.yaml", &format!("{auth}{listen}"))?;
    let mut server = Command::new(DULY)
        .args(["serve", "--store", &site.store(), "--config"])
        .arg(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().context("no output")?).lines();
    let url = within("the server prints its URL", lines.next_line()).await??;
    let url = url.context("the server ended")?;
    assert!(url.starts_with("https://"), "{url}");
    let token = site.token("default", "viewer").await?;
    let authority = key("ca.cert.pem");
    let line = ["task", "list", "--server", &url];
    let stranger = duly(&line, &[("DULY_TOKEN", &token)]).await?;
    assert_eq!(stranger.code, Some(1), "nobody vouches for it: {stranger:?}");
    let variables = [("DULY_TOKEN", token.as_str()), ("DULY_CA_FILE", authority.as_str())];
    let friend = duly(&line, &variables).await?;
    assert_eq!(friend.code, Some(0), "{friend:?}");
    within("the server ends", server.kill()).await??;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_signed_only_with_what_the_file_names() -> anyhow::Result<()> {
    let site = Site::new()?;
    let config = site.path("duly.yaml");
    let empty = site.write("empty.yaml", "store: sqlite:x\n")?.display().to_string();
    let create = async |config: &str, more: &[&str]| {
        let line = ["token", "create", "--config", config, "--tenant", "default"];
        let line = [&line[..], &["--roles", "viewer", "--subject", "ada"], more].concat();
        command::run(Path::new(DULY), &line).await
    };
    for (config, more, words) in [
        (&empty, &[][..], "no `auth:`"),
        (&config, &["--key", "other"], "no key other"),
        (&config, &["--expires-in", "0s"], "--expires-in"),
        (&config, &["--expires-in", "9000h"], "API key"),
        (&config, &["--roles", "root"], "viewer, submitter"),
    ] {
        let ended = create(config, more).await?;
        assert_eq!(ended.code, Some(2), "{more:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{more:?}: {ended:?}");
    }
    let signed = create(&config, &["--expires-in", "10m"]).await?;
    assert_eq!(signed.line()?.split('.').count(), 3, "{signed:?}");
    assert!(!signed.stderr.contains(signed.line()?), "the token is on standard output alone");
    Ok(())
}
