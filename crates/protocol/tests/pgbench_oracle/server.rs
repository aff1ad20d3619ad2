//! As much of a PostgreSQL server as pgbench needs for sending statements: it notes them and says that all went
//! well. So any text can be sent, sense or not, and what is noted is what went over the connection.
//!
//! A statement that begins with `/* fail 40001 2 */` fails with this SQLSTATE the first two times in its session;
//! `/* block */ BEGIN`, `/* block */ END` and `ROLLBACK` change the status of the transaction that the server tells.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// What a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentMessage {
    /// By the simple protocol.
    Query(String),
    /// By the extended protocol: the statement, and the values of its parameters.
    Bound(String, Vec<Option<String>>),
}

/// What came over a connection.
#[derive(Debug, Default)]
pub struct Recording {
    /// The statements.
    pub sent: Vec<SentMessage>,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Listens until it is dropped or asked what it has got.
pub struct Server {
    socket: PathBuf,
    ends: Arc<AtomicBool>,
    accepting: Option<JoinHandle<Vec<Recording>>>,
}

impl Server {
    /// A server that a client finds by `directory` as its host and by its `port`.
    pub fn start(directory: &Path, port: u16) -> io::Result<Server> {
        let socket = directory.join(format!(".s.PGSQL.{port}"));
        let listener = UnixListener::bind(&socket)?;
        let ends = Arc::new(AtomicBool::new(false));
        let ends_here = Arc::clone(&ends);
        let accepting = thread::spawn(move || {
            let mut sessions = Vec::new();
            for stream in listener.incoming() {
                if ends_here.load(Ordering::Acquire) {
                    break;
                }
                if let Ok(stream) = stream {
                    sessions.push(thread::spawn(|| OracleSession::default().serve(stream)));
                }
            }
            sessions.into_iter().map(|session| session.join().unwrap_or_default()).collect()
        });
        Ok(Server { socket, ends, accepting: Some(accepting) })
    }

    /// What came over each connection, in the order of their beginning. The clients have ended.
    pub fn recorded(mut self) -> Vec<Recording> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Recording> {
        let Some(accepting) = self.accepting.take() else { return Vec::new() };
        self.ends.store(true, Ordering::Release);
        // Wakes the thread that waits for connections.
        drop(UnixStream::connect(&self.socket));
        let sent = accepting.join().unwrap_or_default();
        drop(std::fs::remove_file(&self.socket));
        sent
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Their number in a message.
const NO_COLUMNS: &[u8] = &[0, 0];

/// One connection.
pub struct OracleSession {
    recording: Recording,
    /// Prepared statements by name; the unnamed one is the portal's as well.
    statements: HashMap<Vec<u8>, String>,
    /// The statement of the portal.
    bound: String,
    /// How often each statement that fails has failed.
    failures: HashMap<String, u32>,
    /// As ReadyForQuery tells it.
    status: u8,
    /// After an error, what comes before the next Sync is ignored.
    is_ignoring: bool,
    answer: Vec<u8>,
}

impl Default for OracleSession {
    fn default() -> Self {
        Self {
            recording: Recording::default(),
            statements: HashMap::new(),
            bound: String::new(),
            failures: HashMap::new(),
            status: b'I',
            is_ignoring: false,
            answer: Vec::new(),
        }
    }
}

impl OracleSession {
    /// Serves a client until it says goodbye, or breaks off.
    fn serve(mut self, mut stream: UnixStream) -> Recording {
        // However it ended, what was sent until then counts.
        let _ = self.converse(&mut stream);
        self.recording
    }

    fn converse(&mut self, stream: &mut UnixStream) -> io::Result<()> {
        let startup = read_body(stream)?;
        self.greet(&startup);
        loop {
            // A client that has gone may have sent something before.
            let _ = stream.write_all(&self.answer);
            self.answer.clear();
            let mut tag = [0];
            stream.read_exact(&mut tag)?;
            let body = read_body(stream)?;
            if !self.take(tag[0], &body) {
                return Ok(());
            }
        }
    }

    /// All that came, of a session that has ended.
    pub fn recorded(self) -> Recording {
        self.recording
    }

    /// What is to be answered so far.
    pub fn answer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answer)
    }

    /// Takes the body of the startup message.
    pub fn greet(&mut self, startup: &[u8]) {
        self.record(None, startup);
        self.say(b'R', &0_i32.to_be_bytes());
        for (name, value) in [("client_encoding", "UTF8"), ("server_version", "15.0")] {
            self.say(b'S', format!("{name}\0{value}\0").as_bytes());
        }
        self.say(b'Z', b"I");
    }

    /// Takes a message; `false` if it was the last one.
    pub fn take(&mut self, tag: u8, body: &[u8]) -> bool {
        self.record(Some(tag), body);
        match tag {
            b'S' => {
                self.is_ignoring = false;
                self.say(b'Z', &[self.status]);
            }
            b'Q' => {
                let statement = text(until_zero(body).0);
                self.recording.sent.push(SentMessage::Query(statement.clone()));
                if statement == "ROLLBACK" {
                    // What pgbench sends by itself must not return rows.
                    self.status = b'I';
                    self.say(b'C', b"ROLLBACK\0");
                } else if !self.fails(&statement) {
                    self.say(b'T', NO_COLUMNS);
                    self.say_row();
                }
                self.is_ignoring = false;
                self.say(b'Z', &[self.status]);
            }
            b'P' | b'B' | b'D' | b'E' if self.is_ignoring => {}
            b'P' => {
                let (name, rest) = until_zero(body);
                self.statements.insert(name.to_vec(), text(until_zero(rest).0));
                self.say(b'1', b"");
            }
            b'B' => {
                let (_portal, rest) = until_zero(body);
                let (name, rest) = until_zero(rest);
                self.bound = self.statements.get(name).cloned().unwrap_or_default();
                self.recording.sent.push(SentMessage::Bound(self.bound.clone(), values(rest)));
                self.say(b'2', b"");
            }
            b'D' => self.say(b'T', NO_COLUMNS),
            b'E' => {
                let statement = self.bound.clone();
                if !self.fails(&statement) {
                    self.say_row();
                }
            }
            _ => return false,
        }
        true
    }

    /// Whether the statement fails; its error is told then, and otherwise what it does to the transaction.
    fn fails(&mut self, statement: &str) -> bool {
        let has = |word: &str| statement.starts_with(word);
        if has("/* block */ END") {
            self.status = b'I';
        } else if has("/* block */ BEGIN") {
            self.status = b'T';
        }
        let mut words = statement.split(' ').skip_while(|word| *word != "fail").skip(1);
        let (code, times) = (words.next(), words.next().and_then(|times| times.parse().ok()).unwrap_or(0));
        let failures = self.failures.entry(statement.to_owned()).or_default();
        let code = match code {
            _ if self.status == b'E' => "25P02",
            Some(code) if *failures < times => code,
            _ => return false,
        };
        *failures += 1;
        if self.status == b'T' {
            self.status = b'E';
        }
        self.is_ignoring = true;
        self.say(b'E', format!("SERROR\0VERROR\0C{code}\0Mas told\0\0").as_bytes());
        true
    }

    /// Each statement returns a row, so that no `\gset` fails, without columns, so that it sets nothing.
    fn say_row(&mut self) {
        self.say(b'D', NO_COLUMNS);
        self.say(b'C', b"SELECT 1\0");
    }

    /// Adds a message to what is to be answered.
    fn say(&mut self, tag: u8, body: &[u8]) {
        self.answer.push(tag);
        self.answer.extend((body.len() as u32 + 4).to_be_bytes());
        self.answer.extend(body);
    }

    fn record(&mut self, tag: Option<u8>, body: &[u8]) {
        self.recording.bytes.extend(tag);
        self.recording.bytes.extend((body.len() as u32 + 4).to_be_bytes());
        self.recording.bytes.extend(body);
    }
}

/// What follows a message's length, which counts itself.
fn read_body(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length).saturating_sub(4) as usize];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// The bytes before the first zero, and those behind it.
fn until_zero(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0).expect("a terminated text");
    (&bytes[..end], &bytes[end + 1..])
}

/// The parameters' values of a Bind message, all of them texts.
fn values(mut body: &[u8]) -> Vec<Option<String>> {
    let formats = take_u16(&mut body);
    for _ in 0..formats {
        take_u16(&mut body);
    }
    let count = take_u16(&mut body);
    let mut value = || {
        let (high, low) = (take_u16(&mut body), take_u16(&mut body));
        let length = (u32::from(high) << 16) | u32::from(low);
        if length == u32::MAX {
            return None;
        }
        let (value, rest) = body.split_at(length as usize);
        body = rest;
        Some(text(value))
    };
    (0..count).map(|_| value()).collect()
}

fn take_u16(bytes: &mut &[u8]) -> u16 {
    let (number, rest) = bytes.split_first_chunk().expect("two bytes");
    *bytes = rest;
    u16::from_be_bytes(*number)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
