//! Running a script by the real pgbench and by ours, and what both say.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_script as script;
use bench_script::{
    Action, ClientSeeds, Flow, Prng, Script, Symbols, Value, VariableId, Variables, client_seeds,
};

use crate::server::{Recording, SentMessage, Server};

/// No script of these tests takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Part of a socket's name.
const PORT: u16 = 5432;

/// A script to be run, and with what.
#[derive(Clone, Debug)]
pub struct PgbenchJob {
    pub script: String,
    pub clients: u32,
    pub transactions: u32,
    pub seed: u64,
    /// As by -D.
    pub variables: Vec<(String, String)>,
    pub mode: Mode,
    /// As by --max-tries.
    pub max_tries: u32,
}

/// As by -M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Simple,
    Extended,
    Prepared,
}

/// What clients have done.
#[derive(Debug, Default, PartialEq)]
pub struct Doings {
    /// The statements that each client sent.
    pub sent: Vec<Vec<SentMessage>>,
    /// The lines that `debug()` prints. In order if there is one client, else sorted.
    pub debug: Vec<String>,
    /// The error that ended each client.
    pub errors: Vec<Option<RunError>>,
}

/// What ended a client early.
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    /// Where its command begins.
    pub line: u32,
    pub message: String,
}

/// An installed pgbench.
pub struct Pgbench {
    program: PathBuf,
    /// Its major version.
    pub major: u32,
    /// How many directories there have been.
    directories: AtomicU32,
}

/// Says something even when all goes well, which println! would not in a test.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A temporary directory of one run's own, with its script and its socket.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Pgbench {
    /// The pgbench that the variable PGBENCH_ORACLE names. Without it there is nothing to compare with.
    pub fn from_environment() -> Option<&'static Pgbench> {
        static PGBENCH: OnceLock<Option<Pgbench>> = OnceLock::new();
        PGBENCH.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Pgbench> {
        let Some(program) = env::var_os("PGBENCH_ORACLE").filter(|program| !program.is_empty()) else {
            say("skipped: PGBENCH_ORACLE does not name a pgbench");
            return None;
        };
        let output = Command::new(&program).arg("--version").output().expect("PGBENCH_ORACLE can be run");
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let number = version.split(") ").nth(1).unwrap_or(&version);
        let major = number.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok());
        // The random numbers of older ones are others.
        let Some(major) = major.filter(|major: &u32| *major >= 15) else {
            say(&format!("skipped: {version} is older than 15"));
            return None;
        };
        say(&format!("compared with {version}"));
        Some(Pgbench { program: program.into(), major, directories: AtomicU32::new(0) })
    }

    /// What pgbench does with a job; the error is what it says when it refuses the script.
    pub fn run(&self, job: &PgbenchJob) -> Result<Doings, String> {
        let (recordings, said) = self.record(job)?;
        let mut sent: Vec<Vec<SentMessage>> =
            recordings.into_iter().map(|recording| recording.sent).collect();
        sent.iter_mut().flatten().for_each(trim_end);
        Ok(job.doings(sent, &said))
    }

    /// What pgbench's clients send for a job, and what it says; the error is what it says when it refuses the script.
    pub fn record(&self, job: &PgbenchJob) -> Result<(Vec<Recording>, String), String> {
        let number = self.directories.fetch_add(1, Ordering::Relaxed);
        let name = format!("pgbench_oracle.{}.{number}", std::process::id());
        let directory = Directory(env::temp_dir().join(name));
        fs::create_dir(&directory.0).expect("a temporary directory");
        let file = directory.0.join("script");
        fs::write(&file, &job.script).expect("the script can be written");
        let server = Server::start(&directory.0, PORT).expect("a socket");
        let mut command = Command::new(&self.program);
        // Each variable of the environment that libpq or pgbench looks at could disturb.
        command.env_clear().env("PGHOST", &directory.0).env("PGPORT", PORT.to_string());
        command.env("PGUSER", "oracle").env("LC_ALL", "C");
        if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", path);
        }
        command.args(job.arguments()).arg("-f").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("pgbench can be run");
        let mut stderr = child.stderr.take().expect("a pipe");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            let _ = sender.send(said);
        });
        let said = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            child.kill().expect("pgbench can be ended");
            panic!("pgbench did not end: {job:?}")
        });
        let status = child.wait().expect("pgbench ends");
        let mut recordings = server.recorded();
        let said = String::from_utf8_lossy(&said).replace(&*file.to_string_lossy(), "script");
        // The first connection is pgbench's own, before those of its clients.
        if recordings.is_empty() {
            assert!(!status.success(), "pgbench did not connect, and says {said}");
            return Err(said);
        }
        recordings.remove(0);
        if recordings.is_empty() { Err(said) } else { Ok((recordings, said)) }
    }
}

impl PgbenchJob {
    fn arguments(&self) -> Vec<String> {
        let mode = match self.mode {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        };
        // One thread, so that clients connect in their order and messages come whole.
        let mut arguments: Vec<String> =
            ["-n", "-j", "1", "-M", mode].into_iter().map(str::to_owned).collect();
        arguments.push(format!("--client={}", self.clients));
        arguments.push(format!("--transactions={}", self.transactions));
        arguments.push(format!("--random-seed={}", self.seed));
        if self.max_tries > 1 {
            arguments.push(format!("--max-tries={}", self.max_tries));
        }
        for (name, value) in &self.variables {
            arguments.push(format!("-D{name}={value}"));
        }
        arguments
    }

    /// How to repeat it by hand.
    pub fn shown(&self) -> String {
        format!("{:?}\n---- script ----\n{}\n----------------", self.arguments(), self.script)
    }

    /// What pgbench has `said` is an error's message, and then which client it has ended.
    fn doings(&self, sent: Vec<Vec<SentMessage>>, said: &str) -> Doings {
        let mut doings = Doings { sent, debug: Vec::new(), errors: vec![None; self.clients as usize] };
        // pgbench tells the command's index, ours its line.
        let script = script::parse("script", &self.script, &mut Symbols::new());
        let line_of = |command: usize| Some(script.as_ref().ok()?.commands.get(command)?.line);
        let mut message = String::new();
        for line in said.lines() {
            if line.starts_with("debug(script=") {
                doings.debug.push(line.to_owned());
                continue;
            }
            let Some(text) = line.strip_prefix("pgbench: error: ") else {
                if !line.starts_with("pgbench: ") {
                    message += "\n";
                    message += line;
                }
                continue;
            };
            let mut words = text.split(' ');
            let client =
                (words.next() == Some("client")).then(|| words.next()?.parse::<usize>().ok()).flatten();
            match client {
                Some(client) if text.contains(" aborted in command ") => {
                    let number = text.split(" aborted in command ").nth(1).unwrap_or_default();
                    let number = number.split(' ').next().and_then(|number| number.parse().ok());
                    let line = number.and_then(line_of).unwrap_or_default();
                    doings.errors[client] = Some(RunError { line, message: std::mem::take(&mut message) });
                }
                _ => message = text.to_owned(),
            }
        }
        if self.clients > 1 {
            doings.debug.sort();
        }
        doings
    }

    /// What a client begins with.
    pub fn client(&self, client: u32, symbols: &mut Symbols) -> (Variables, ClientSeeds) {
        let has_default_seed = self.variables.iter().any(|(name, _)| name == "default_seed");
        let seeds = client_seeds(self.seed, self.clients, client, has_default_seed);
        let mut variables = Variables::new(symbols.len());
        for (name, value) in [
            ("client_id", i64::from(client)),
            ("default_seed", seeds.default_seed),
            ("random_seed", self.seed.cast_signed()),
            ("scale", 1),
        ] {
            variables.set(symbols.intern(name), Value::Integer(value));
        }
        for (name, value) in &self.variables {
            variables.set(symbols.intern(name), Value::Text(value.as_str().into()));
        }
        (variables, seeds)
    }

    /// What ours does with it; the error is why it refuses the script.
    pub fn run_here(&self) -> Result<Doings, UserError> {
        let mut symbols = Symbols::new();
        let script = script::parse("script", &self.script, &mut symbols)?;
        let mut doings = Doings::default();
        for client in 0..self.clients {
            let (variables, seeds) = self.client(client, &mut symbols);
            let (mut sent, debug) = (Vec::new(), &mut doings.debug);
            let result = if self.mode == Mode::Simple {
                let emit = &mut |line: script::PreviewLine| {
                    if line.output.starts_with("debug(script=") {
                        debug.push(line.output);
                    } else {
                        sent.push(SentMessage::Query(line.output));
                    }
                };
                script::preview(
                    &script,
                    0,
                    variables,
                    seeds.functions,
                    self.transactions,
                    &mut |_, _| true,
                    emit,
                    &mut || {},
                )
            } else {
                with_parameters(&script, variables, seeds.functions, self.transactions, &mut sent)
            };
            sent.iter_mut().for_each(trim_end);
            doings.sent.push(sent);
            doings.errors.push(
                result.err().map(|error| RunError {
                    line: line_of(&error).unwrap_or_default(),
                    message: error.message,
                }),
            );
        }
        if self.clients > 1 {
            doings.debug.sort();
        }
        Ok(doings)
    }
}

/// Takes semicolons and blanks off a statement's end: pgbench sends those that it finds there, ours does not.
fn trim_end(statement: &mut SentMessage) {
    let (SentMessage::Query(text) | SentMessage::Bound(text, _)) = statement;
    text.truncate(text.trim_end_matches([';', ' ', '\t', '\n', '\r', '\x0b', '\x0c']).len());
}

/// The line of a script that an error's detail names.
pub fn line_of(error: &UserError) -> Option<u32> {
    let after = error.detail.as_deref()?.split_once(", line ")?.1;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// As `script::preview`, for statements with parameters.
fn with_parameters(
    script: &Script,
    mut variables: Variables,
    mut random: Prng,
    transactions: u32,
    sent: &mut Vec<SentMessage>,
) -> Result<(), UserError> {
    let constants = variables.clone();
    for _ in 0..transactions {
        let (mut index, mut otherwise) = (0, false);
        while let Some(command) = script.commands.get(index) {
            if let Action::Sql(sql) = &command.action {
                let parameterized = sql.parameterized(&constants)?;
                // Null as pgbench sends it; the engine sends a null.
                let value = |id: &VariableId| variables.get(*id).map(|value| value.to_text().into_owned());
                let values = parameterized.parameters.iter().map(value).collect();
                sent.push(SentMessage::Bound(parameterized.text, values));
            }
            let flow = command
                .action
                .perform(otherwise, &mut variables, &mut random, &mut |_| ())
                .map_err(|error| script.at(index, error))?;
            (index, otherwise) = match flow {
                Flow::Next | Flow::Sleep(_) => (index + 1, false),
                Flow::Jump(target) => (target, false),
                Flow::Otherwise(target) => (target, true),
            };
        }
    }
    Ok(())
}

/// Whether pgbench may do anything, and go on for ever, where ours has found this: its C leaves it open.
pub fn is_undefined(script: &str, error: &RunError) -> bool {
    let from_line = script.splitn(error.line as usize, '\n').last().unwrap_or_default();
    // Meta commands may be longer than a line; the next one begins with a backslash.
    let command = from_line.split("\n\\").next().unwrap_or_default();
    // What pgbench's abs makes of a boolean is the number that these bytes would be.
    let is_boolean =
        error.message == "cannot coerce boolean to double" && command.to_ascii_lowercase().contains("abs");
    is_boolean || error.message == "bigint abs out of range" || error.message.ends_with("(not NaN)")
}

/// Whether ours refuses a script on purpose that pgbench takes: the README and the messages say so.
pub fn is_deliberate(error: &UserError) -> bool {
    const STATEMENT_TOO_COMPLEX: &str = "54001";
    error.sqlstate == sqlstate::FEATURE_NOT_SUPPORTED
        || error.sqlstate == STATEMENT_TOO_COMPLEX
        || error.message.starts_with("unterminated")
        // pgbench finds the following only when it comes to them.
        || error.message.starts_with("too many function arguments")
        || error.message.starts_with("invalid variable name")
}
