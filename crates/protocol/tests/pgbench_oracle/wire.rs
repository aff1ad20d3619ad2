//! Holds what `bench_protocol` sends for a script against what pgbench sends, byte for byte: the startup message, the
//! names of prepared statements, pipelines, and what follows on errors.

use bench_base::error::{UserError, unpack};
use bench_protocol as wire;
use bench_protocol::{SessionEvent, Startup, TransactionStatus};
use bench_script as script;
use bench_script::{
    Action, Flow, Parameterized, Pipeline, PipelineMode, Prng, Script, Sql, Symbols, VariableId, Variables,
};

use crate::one_client;
use crate::pgbench::{Mode, Pgbench, PgbenchJob};
use crate::server;

/// Scripts in which all statements end with a semicolon, or directly before a meta command.
const SCRIPTS: [&str; 13] = [
    "\\set a 1 + 1\nSELECT :a;\nUPDATE t SET x = :one WHERE y = :a AND z = :one;\n",
    "SELECT 1 AS x\\gset\nSELECT 2 AS y\\aset z_\nSELECT 3;\n",
    "/* block */ BEGIN;\nSELECT :client_id;\n/* block */ END;\n\\if :one = 1\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\n",
    "/* fail 40001 1 */ SELECT :one;\nSELECT 2;\n",
    "/* block */ BEGIN;\nSELECT 1;\n/* fail 40P01 2 */ SELECT :one;\n/* block */ END;\n",
    "/* block */ BEGIN;\n/* fail 40001 9 */ SELECT :one;\n/* block */ END;\n",
    "SELECT 1;\n/* fail 23505 1 */ SELECT :one;\nSELECT 2;\n",
    "/* block */ BEGIN;\nSELECT 1;\n",
    "\\startpipeline\n",
    "\\syncpipeline\n",
    "SELECT 1;\n\\endpipeline\n",
    "-- comment\nSELECT 'é', :v; ;\nSELECT 1;\n",
    "SELECT 1 -- one\n ;\nSELECT 2 \t;\nSELECT 3 -- ;",
];

/// Those that the simple protocol refuses.
const PIPELINES: [&str; 16] = [
    "\\startpipeline\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\nSELECT :one, :a;\n/* block */ BEGIN;\n/* block */ END;\n\\endpipeline\nSELECT 3;\n",
    "SELECT 0;\n\\startpipeline\nSELECT 1;\nSELECT 0;\n\\endpipeline\n\\startpipeline\nSELECT 2;\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\n\\startpipeline\nSELECT 2;\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\n\\endpipeline\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\nSELECT 2 AS a\\gset\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\nSELECT 2 AS a\\aset\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\n\\if :one = 2\n\\endpipeline\n\\endif\n",
    "\\startpipeline\n/* block */ BEGIN;\nSELECT 1;\n/* fail 40001 2 */ SELECT :one;\n/* block */ END;\n\\endpipeline\n",
    "/* block */ BEGIN;\n\\startpipeline\nSELECT 1;\n/* fail 40P01 9 */ SELECT :one;\nSELECT 1;\n\\endpipeline\n/* block */ END;\n",
    "\\startpipeline\nSELECT 1;\n/* fail 40001 1 */ SELECT :one;\nSELECT 1;\n\\endpipeline\nSELECT 2;\n",
    "\\startpipeline\nSELECT 1;\n/* fail 23505 1 */ SELECT :one;\nSELECT 1;\n\\endpipeline\nSELECT 2;\n",
    "\\startpipeline\n/* block */ BEGIN;\nSELECT 1;\n\\endpipeline\n",
    "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\syncpipeline\n\\syncpipeline\n\\endpipeline\n",
    "\\startpipeline\n/* fail 40001 1 */ SELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\nSELECT 3;\n",
    "\\startpipeline\n/* block */ BEGIN;\n/* fail 40001 1 */ SELECT 1;\n\\syncpipeline\n/* block */ END;\n\\syncpipeline\n\\endpipeline\n",
];

/// The variables that they may use.
fn given() -> Vec<(String, String)> {
    [("one", "1"), ("v", "it's")].map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// A client of ours, connected with the server of these tests: sends as the driver of a run has to.
struct WireClient<'a> {
    script: &'a Script,
    mode: Mode,
    max_tries: u32,
    session: wire::WireSession,
    server: server::OracleSession,
    pipeline: PipelineMode,
    /// By the command's index.
    prepared: Vec<bool>,
    variables: Variables,
    random: Prng,
}

/// What ends a transaction early.
enum WireFailure {
    /// It may be tried again.
    Retryable,
    /// The client ends.
    Final(String),
}

impl From<UserError> for WireFailure {
    fn from(error: UserError) -> Self {
        WireFailure::Final(error.message)
    }
}

impl WireClient<'_> {
    /// Sends what there is, and takes what comes back.
    fn exchange(&mut self) -> SessionEvent {
        let mut output = self.session.output();
        let mut last = true;
        while let Some((tag, rest)) = output.split_first() {
            let (length, rest) = rest.split_first_chunk().expect("a length");
            let (body, behind) = rest.split_at(u32::from_be_bytes(*length) as usize - 4);
            last = self.server.take(*tag, body);
            output = behind;
        }
        assert!(last || self.session.output().ends_with(b"X\0\0\0\x04"));
        self.session.sent(usize::MAX);
        self.session.receive(&self.server.answer()).expect("the server keeps to the protocol")
    }

    /// As [`exchange`](Self::exchange), to the end of a command.
    fn finish(&mut self) -> Result<(), WireFailure> {
        assert_eq!(self.exchange(), SessionEvent::Ready);
        match self.session.outcome().error {
            None => Ok(()),
            Some(error) if ["40001", "40P01"].contains(&&*unpack(error.sqlstate)) => {
                Err(WireFailure::Retryable)
            }
            Some(error) => Err(WireFailure::Final(error.message)),
        }
    }

    fn connect(&mut self) {
        let parameters = vec![("application_name".to_owned(), "pgbench".to_owned())];
        let (user, database) = ("oracle".to_owned(), "oracle".to_owned());
        let startup = Startup { user, database, parameters, ..Startup::default() };
        self.session.start(&startup).expect("fine");
        self.server.greet(&self.session.output()[4..]);
        self.session.sent(usize::MAX);
        assert_eq!(self.session.receive(&self.server.answer()), Ok(SessionEvent::Ready));
    }

    fn statement(&self, sql: &Sql) -> Parameterized {
        let mut parameterized = sql.parameterized(&self.variables).expect("parameters");
        parameterized.text += sql.ending();
        parameterized
    }

    /// As pgbench counts the statements, over all scripts.
    fn statement_name(&self, index: usize) -> String {
        let before = &self.script.commands[..index];
        format!("P_{}", before.iter().filter(|command| matches!(command.action, Action::Sql(_))).count())
    }

    /// Prepares a statement, unless it is.
    fn prepare(&mut self, index: usize, sql: &Sql) -> Result<(), WireFailure> {
        if std::mem::replace(&mut self.prepared[index], true) {
            return Ok(());
        }
        let text = self.statement(sql).text;
        self.session.prepare(&self.statement_name(index), &text)?;
        if self.pipeline.is_open() { Ok(()) } else { self.finish() }
    }

    fn send(&mut self, index: usize, sql: &Sql) -> Result<(), WireFailure> {
        self.pipeline.check_statement(sql)?;
        if self.mode == Mode::Simple {
            let mut text = String::new();
            sql.substitute(&self.variables, &mut text)?;
            self.session.query(&(text + sql.ending()))?;
            return self.finish();
        }
        if self.mode == Mode::Prepared {
            self.prepare(index, sql)?;
        }
        let Parameterized { text, parameters } = self.statement(sql);
        let value = |id: &VariableId| self.variables.get(*id).map(|value| value.to_text());
        let values = parameters.iter().map(value);
        match self.mode {
            Mode::Prepared => self.session.execute_prepared(&self.statement_name(index), values)?,
            _ => self.session.execute_params(&text, values)?,
        }
        if self.pipeline.is_open() { Ok(()) } else { self.finish() }
    }

    fn pipe(&mut self, index: usize, command: Pipeline) -> Result<(), WireFailure> {
        let is_simple = self.mode == Mode::Simple;
        if command == Pipeline::Start && self.mode == Mode::Prepared && !self.pipeline.is_open() {
            for (at, sql) in self.script.statements_in_pipeline(index) {
                self.prepare(at, sql)?;
            }
        }
        self.pipeline.perform(command, is_simple)?;
        match command {
            Pipeline::Start => self.session.start_pipeline(),
            Pipeline::Sync => self.session.sync_pipeline(),
            Pipeline::End => {
                self.session.end_pipeline();
                self.finish().inspect_err(|_| self.pipeline = PipelineMode::default())?;
            }
        }
        Ok(())
    }

    /// One try of a transaction.
    fn run(&mut self) -> Result<(), WireFailure> {
        let (mut index, mut otherwise) = (0, false);
        let script = self.script;
        while let Some(command) = script.commands.get(index) {
            match &command.action {
                Action::Sql(sql) => self.send(index, sql)?,
                Action::Pipeline(pipeline) => {
                    let result = self.pipe(index, *pipeline);
                    if matches!(result, Err(WireFailure::Retryable)) {
                        self.session.discard_until_sync();
                        assert_eq!(self.exchange(), SessionEvent::Ready);
                    }
                    result?;
                }
                _ => {}
            }
            let action = &command.action;
            let flow = action.perform(otherwise, &mut self.variables, &mut self.random, &mut |_| {})?;
            (index, otherwise) = match flow {
                Flow::Next | Flow::Sleep(_) => (index + 1, false),
                Flow::Jump(target) => (target, false),
                Flow::Otherwise(target) => (target, true),
            };
        }
        self.pipeline.check_end()?;
        match self.session.status() {
            TransactionStatus::Idle => Ok(()),
            _ => Err(WireFailure::Final(
                "end of script reached without completing the last transaction".to_owned(),
            )),
        }
    }

    /// All transactions; what ended it early.
    fn work(&mut self, transactions: u32) -> Option<String> {
        for _ in 0..transactions {
            for _ in 0..self.max_tries {
                match self.run() {
                    Ok(()) => break,
                    Err(WireFailure::Final(message)) => return Some(message),
                    Err(WireFailure::Retryable) if self.session.status() != TransactionStatus::Idle => {
                        self.session.query("ROLLBACK").expect("fine");
                        assert!(self.finish().is_ok());
                    }
                    Err(WireFailure::Retryable) => {}
                }
            }
        }
        None
    }
}

/// What ours sends for the only client of a job, and what ended it.
fn ours(job: &PgbenchJob) -> (Vec<u8>, Option<String>) {
    let mut symbols = Symbols::new();
    let script = script::parse("script", &job.script, &mut symbols).expect("a script");
    let (variables, seeds) = job.client(0, &mut symbols);
    let mut client = WireClient {
        script: &script,
        mode: job.mode,
        max_tries: job.max_tries,
        session: wire::WireSession::new(),
        server: server::OracleSession::default(),
        pipeline: PipelineMode::default(),
        prepared: vec![false; script.commands.len()],
        variables,
        random: seeds.functions,
    };
    client.connect();
    let failure = client.work(job.transactions);
    client.session.terminate();
    client.exchange();
    (client.server.recorded().bytes, failure)
}

/// Bytes of which a difference can be read: a line for each message.
fn shown(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tag = 0_u8;
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (body, behind) = rest.split_at(u32::from_be_bytes(*length) as usize - 4);
        lines.push(format!("{} {}", tag.escape_ascii(), body.escape_ascii()));
        let Some((next, behind)) = behind.split_first() else { break };
        (tag, bytes) = (*next, behind);
    }
    lines
}

fn compare(pgbench: &Pgbench, job: &PgbenchJob) {
    let (recordings, said) = pgbench.record(job).expect("pgbench takes the script");
    let [theirs] = &recordings[..] else { panic!("{} connections", recordings.len()) };
    let (ours, failure) = ours(job);
    assert_eq!(shown(&theirs.bytes), shown(&ours), "{}\n{said}", job.shown());
    assert_eq!(theirs.bytes, ours, "{}\n{said}", job.shown());
    match failure {
        Some(failure) => assert!(said.contains(&failure), "{}\n{said}\nours: {failure}", job.shown()),
        None => assert!(!said.contains(" aborted "), "{}\n{said}", job.shown()),
    }
}

fn job(script: &str) -> PgbenchJob {
    PgbenchJob { variables: given(), ..one_client(script.to_owned(), 1) }
}

#[test]
fn messages_are_pgbenchs() {
    let Some(pgbench) = Pgbench::from_environment() else { return };
    let mut compared = 0;
    // \syncpipeline is there since PostgreSQL 17.
    let is_known = |script: &&&str| pgbench.major >= 17 || !script.contains("syncpipeline");
    for script in SCRIPTS.iter().chain(&PIPELINES).filter(is_known) {
        for mode in [Mode::Simple, Mode::Extended, Mode::Prepared] {
            let job = PgbenchJob { transactions: 3, max_tries: 3, mode, ..job(script) };
            compare(pgbench, &job);
            compared += 1;
        }
    }
    println!("{compared} scripts");
}

/// Several statements in one message are a matter of the simple protocol.
#[test]
fn compound_statements_are_pgbenchs() {
    let Some(pgbench) = Pgbench::from_environment() else { return };
    for script in ["SELECT 1 \\; SELECT :one \\;;\n", "SELECT 1 AS a \\; SELECT 2 AS b\\aset\nSELECT :a;\n"] {
        compare(pgbench, &PgbenchJob { transactions: 2, ..job(script) });
    }
}
