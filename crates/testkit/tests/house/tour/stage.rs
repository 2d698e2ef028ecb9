//! Where the tour is played: an empty directory, a free port, the real binary.

use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use duly_testkit::report;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

/// How long a block may take to end, or the server to say what is expected of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Ports outside the range from which the system serves its own callers, so that none is taken
/// between two starts of the server.
const PORTS: std::ops::Range<u16> = 12_000..30_000;

/// The directory, and what makes the README's port lead to a free one:
/// - a `duly` before the real one in `PATH`, which starts servers on that port;
/// - `DULY_SERVER`, by which the other commands find it;
/// - a `.curlrc` that connects there.
pub(super) struct Stage {
    directory: TempDir,
    port: u16,
}

impl Stage {
    /// Nothing where curl is missing, except in CI: there that is a fault.
    pub(super) fn set() -> Option<Self> {
        let curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
        if curl.is_err() {
            report::skip("curl is not installed", "apt-get install curl").expect("CI has curl");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let stage = Self { directory, port: free_port() };
        stage.prepare().expect("the directory can be written");
        Some(stage)
    }

    fn prepare(&self) -> std::io::Result<()> {
        let (directory, port) = (self.directory.path(), self.port);
        fs::create_dir(self.home())?;
        fs::create_dir(directory.join("bin"))?;
        let duly = directory.join("bin/duly");
        let script = format!(
            "#!/bin/sh\ncase $1 in\n\
             dev|serve) mode=$1; shift; set -- \"$mode\" --listen 127.0.0.1:{port} \"$@\" ;;\nesac\n\
             exec '{}' \"$@\"\n",
            binary().display()
        );
        fs::write(&duly, script)?;
        fs::set_permissions(&duly, fs::Permissions::from_mode(0o755))?;
        let curlrc = format!("connect-to = \"127.0.0.1:8080:127.0.0.1:{port}\"\n");
        fs::write(directory.join(".curlrc"), curlrc)
    }

    /// Writes a file where the lines are run.
    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.home().join(name), text).expect("the directory can be written");
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    #[expect(clippy::disallowed_methods, reason = "the tour needs the tools of this machine")]
    fn bash(&self, lines: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bash = Command::new("bash");
        bash.args(["-e", "-u", "-o", "pipefail", "-c", lines])
            .current_dir(self.home())
            .env_clear()
            .env("PATH", format!("{}:{path}", self.directory.path().join("bin").display()))
            .env("HOME", self.directory.path())
            .env("CURL_HOME", self.directory.path())
            .env("DULY_SERVER", format!("http://127.0.0.1:{}", self.port))
            .env("NO_PROXY", "*")
            .stdin(Stdio::null());
        bash
    }

    /// Runs the lines to their end; each must succeed. Returns all they printed.
    pub(super) fn run(&self, lines: &str, place: &str) -> String {
        let (code, printed) = self.open(lines).end();
        assert_eq!(code, Some(0), "{place}: failed:\n{lines}\nprinted\n{printed}");
        printed
    }

    /// Starts the lines in a terminal of their own.
    pub(super) fn open(&self, lines: &str) -> Terminal {
        let (child, output) = start(self.bash(lines));
        let (sender, printed) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let lock = self.home().join(".duly/duly.db.lock");
        Terminal { child: Guarded(child), printed, lock, port: self.port }
    }
}

/// A terminal in which something runs.
pub(super) struct Terminal {
    child: Guarded,
    printed: Receiver<String>,
    lock: PathBuf,
    port: u16,
}

impl Terminal {
    /// Waits until what was printed since the last call fits; otherwise tells what it was.
    pub(super) fn until(&self, mut fits: impl FnMut(&str) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let mut printed = String::new();
        while !fits(&printed) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.printed.recv_timeout(left) else { return Err(printed) };
            // The README knows one port only.
            let line = line.replace(&format!("127.0.0.1:{}", self.port), "127.0.0.1:8080");
            printed += &format!("{line}\n");
        }
        Ok(())
    }

    /// Waits for the end. Returns the exit code, which is none if it did not come in time, and
    /// what was printed since the last call.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let printed = self.until(|_| false).expect_err("nothing fits");
        let has_ended = start.elapsed() < PATIENCE;
        let code = has_ended.then(|| self.child.0.wait().expect("bash ends").code()).flatten();
        (code, printed)
    }

    /// Presses Ctrl-C for the server, and waits for the end.
    pub(super) fn interrupt(self) -> (Option<i32>, String) {
        let pid = fs::read_to_string(&self.lock).expect("a running server wrote its pid");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::INT).expect("the server runs");
        self.end()
    }
}

/// A process that does not outlive the test, nor do its children.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        if let (Ok(None), Some(group)) =
            (self.0.try_wait(), i32::try_from(self.0.id()).ok().and_then(Pid::from_raw))
        {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// Both outputs come through one pipe, in the order they were written.
fn start(mut bash: Command) -> (Child, BufReader<PipeReader>) {
    let (output, input) = std::io::pipe().expect("a pipe");
    bash.stdout(input.try_clone().expect("a pipe")).stderr(input).process_group(0);
    let child = bash.spawn().expect("bash starts");
    // The command keeps the pipe's ends open until it is dropped.
    drop(bash);
    (child, BufReader::new(output))
}

/// The binary beside this test's own: `cargo test --workspace` builds both.
fn binary() -> PathBuf {
    let own = std::env::current_exe().expect("this program");
    let binary = own.parent().and_then(Path::parent).map(|directory| directory.join("duly"));
    let binary = binary.filter(|path| path.is_file());
    binary.expect("the binary is not built: run `cargo build -p duly-cli`")
}

/// Stages of one process have ports of their own.
fn free_port() -> u16 {
    static STAGES: AtomicU32 = AtomicU32::new(0);
    let stage = STAGES.fetch_add(1, Ordering::Relaxed) * 1_000;
    let offset = (std::process::id() + stage) % u32::from(PORTS.end - PORTS.start);
    let start = PORTS.start + u16::try_from(offset).expect("below the length of the range");
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (start..PORTS.end).chain(PORTS.start..start).find(is_free).expect("a free port")
}
