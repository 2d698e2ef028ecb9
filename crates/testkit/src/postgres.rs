//! A PostgreSQL server of a test's own, which may be ended in the middle of whatever it does. The
//! programs must be installed; nothing else of the machine is used.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustix::process::geteuid;
use tokio::process::{Child, Command};

use crate::wait::{PATIENCE, eventually, within};

/// Who may do everything, and the database that nodes use.
const NAME: &str = "duly";
/// Where Debian keeps the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Runs the server until its standard input ends, also when whoever holds the other end is killed,
/// and then ends it as `pg_ctl stop -m immediate` does.
const KEEPER: &str = "trap '' HUP INT TERM; \"$@\" & read -r _; kill -QUIT $!; wait $!";
/// The server refuses to run as root; this is its user then.
const USER: &str = "postgres";

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    data: PathBuf,
    port: u16,
    is_durable: bool,
    child: Child,
}

impl Postgres {
    /// Starts a server with an empty database in a folder, which is made anew. Unless it is
    /// durable, a crash of the machine, but not of the server, may cost what was committed.
    pub async fn start(folder: &Path, is_durable: bool) -> anyhow::Result<Self> {
        let programs = programs()?;
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        if let Some((user, group)) = other_user()? {
            chown(folder, Some(user), Some(group))?;
        }
        let data = std::path::absolute(folder)?.join("data");
        let mut initdb = command(&programs.join("initdb"))?;
        initdb.arg("--pgdata").arg(&data).args(["--username", NAME, "--auth", "trust"]);
        initdb.args(["--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"]);
        done("initdb", initdb).await?;
        let port = free_port()?;
        let child = spawn(&programs, &data, port, is_durable)?;
        let mut server = Self { programs, data, port, is_durable, child };
        server.answers().await?;
        server.order("postgres", &format!("CREATE DATABASE {NAME}")).await?;
        Ok(server)
    }

    /// Where it listens, such as `127.0.0.1:5432`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What a node calls its database that reaches the server at this address.
    pub fn url_at(address: &str) -> String {
        format!("postgres://{NAME}@{address}/{NAME}")
    }

    /// Ends every connection to the database; returns how many.
    pub async fn terminate_all(&self) -> anyhow::Result<u64> {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let count = self.order(NAME, end).await?;
        count.trim().parse().with_context(|| format!("not a number: {count:?}"))
    }

    /// Ends it at once, without a last word to anybody.
    pub async fn crash(&mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        within("PostgreSQL ends", self.child.wait()).await??;
        Ok(())
    }

    /// Starts it again on the same port, and waits until it has read its log.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.child = spawn(&self.programs, &self.data, self.port, self.is_durable)?;
        self.answers().await
    }

    /// Ends it and removes its data.
    pub async fn remove(mut self) -> anyhow::Result<()> {
        self.crash().await?;
        Ok(std::fs::remove_dir_all(&self.data)?)
    }

    async fn answers(&mut self) -> anyhow::Result<()> {
        let ask = || async { self.order("postgres", "SELECT 1").await.ok() };
        if let Err(error) = eventually("PostgreSQL answers", PATIENCE, ask).await {
            bail!("{error}; it said: {}", self.log());
        }
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(log_of(&self.data)).unwrap_or_default()
    }

    async fn order(&self, database: &str, sql: &str) -> anyhow::Result<String> {
        let mut psql = command(&self.programs.join("psql"))?;
        psql.args(["-qtAX", "-h", "127.0.0.1", "-U", NAME, "-d", database, "-c", sql]);
        psql.arg("-p").arg(self.port.to_string());
        done("psql", psql).await
    }
}

/// Dumps a database into a file, as `pg_dump` does while others use it.
pub async fn dump(url: &str, file: &Path) -> anyhow::Result<()> {
    let mut program = client("pg_dump")?;
    program.args(["--format=custom", "--dbname", url, "--file"]).arg(file);
    done("pg_dump", program).await?;
    Ok(())
}

/// Fills an empty database from such a file.
pub async fn restore(file: &Path, url: &str) -> anyhow::Result<()> {
    let mut program = client("pg_restore")?;
    program.args(["--exit-on-error", "--dbname", url]).arg(file);
    done("pg_restore", program).await?;
    Ok(())
}

/// A program that anybody may run.
fn client(name: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(programs()?.join(name));
    command.env_clear().stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

fn log_of(data: &Path) -> PathBuf {
    data.with_file_name("log")
}

fn spawn(programs: &Path, data: &Path, port: u16, is_durable: bool) -> anyhow::Result<Child> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log_of(data))?;
    let mut server = command(Path::new("/bin/sh"))?;
    server.args(["-c", KEEPER, "keeper"]).arg(programs.join("postgres"));
    server.stdin(Stdio::piped()).kill_on_drop(false);
    server.arg("-D").arg(data).arg("-p").arg(port.to_string());
    // A path below the target may be too long for a socket.
    server.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
    if !is_durable {
        server.args(["-c", "fsync=off", "-c", "full_page_writes=off"]);
    }
    server.stdout(log.try_clone()?).stderr(log);
    server.spawn().context("cannot start PostgreSQL")
}

async fn done(name: &str, mut command: Command) -> anyhow::Result<String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = within(name, command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} ended with {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// A program of the server, run by whoever may run it.
fn command(program: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(program);
    command.current_dir("/").env_clear().stdin(Stdio::null()).kill_on_drop(true);
    if let Some((user, group)) = other_user()? {
        command.uid(user).gid(group);
    }
    Ok(command)
}

/// Root becomes another user here: user and group of the server.
fn other_user() -> anyhow::Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut fields = fields.filter(|fields| fields.len() > 3 && fields[0] == USER);
    let fields = fields.next().context("there is no user postgres: install PostgreSQL")?;
    Ok(Some((fields[2].parse()?, fields[3].parse()?)))
}

/// The newest programs of Debian, or else those of the path.
fn programs() -> anyhow::Result<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let debian = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let debian = debian.filter(|(_, folder)| folder.join("initdb").exists()).max();
    let usual = ["/usr/local/bin", "/usr/bin", "/usr/local/pgsql/bin"].map(PathBuf::from);
    let usual = usual.into_iter().find(|folder| folder.join("initdb").exists());
    debian
        .map(|(_, folder)| folder)
        .or(usual)
        .context("PostgreSQL is not installed: run scripts/services install")
}

/// A port that is free now, below those that the system hands out to clients: while the server is
/// away, whoever dials it must not be given its port.
fn free_port() -> anyhow::Result<u16> {
    let mut random = StdRng::from_os_rng();
    let mut ports = std::iter::repeat_with(|| random.random_range(20_000..32_000)).take(100);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).context("no free port between 20000 and 32000 on 127.0.0.1")
}
