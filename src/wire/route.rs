//! The way of a run's connections to their server.

use std::time::Duration;

use bench_core::error::UserError;
use bench_core::spec::{Candidate, RunSpec};
use bench_core::target::{ChannelBinding, Secrets, Target};
use bench_core::wire::Startup;

use super::this_server;

/// What each of its connections needs.
pub struct Route {
    /// Where the server is.
    pub to: Candidate,
    pub startup: Startup,
    /// How long a connection may take to be made; `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// It leads to another server than this one, as whose process its backends are not known here.
    pub is_elsewhere: bool,
}

impl Route {
    /// The way to a target's host.
    pub fn to_target(options: &Target, secrets: &Secrets, to: Candidate) -> Self {
        let startup = Startup {
            user: options.user.clone(),
            database: options.dbname.clone(),
            parameters: Vec::new(),
            password: secrets.password.clone(),
            tls_server_end_point: None,
            requires_channel_binding: options.channel_binding == ChannelBinding::Require,
        };
        let timeout = options.connect_timeout.map(|secs| Duration::from_secs(secs.into()));
        let mut route = Self { to, startup, timeout, is_elsewhere: true };
        route.tell("client_encoding", "UTF8");
        route.tell("application_name", options.application_name.as_deref().unwrap_or("pgbench_ext"));
        if let Some(more) = &options.options {
            route.tell("options", more);
        }
        route
    }

    /// The way of a run's clients. `search_path` is theirs on this server, where it is not the role's own. The settings of
    /// the run are those of the session from its beginning, as a client's connection options are.
    ///
    /// # Errors
    /// 55000 where this server cannot be reached.
    pub fn of_run(spec: &RunSpec, search_path: Option<&str>, secrets: &Secrets) -> Result<Self, UserError> {
        let settings = &spec.options.settings;
        let mut route = match &spec.target {
            Some(target) => Self::to_target(&target.options, secrets, target.candidates[0].clone()),
            None => Self::to_this_server(spec, secrets)?,
        };
        let target_path = spec.target.as_ref().and_then(|target| target.search_path.as_deref());
        if let Some(path) = target_path.or(search_path) {
            route.tell("search_path", path);
        }
        for (name, value) in settings {
            route.tell(name, value);
        }
        Ok(route)
    }

    fn to_this_server(spec: &RunSpec, secrets: &Secrets) -> Result<Self, UserError> {
        let startup = Startup {
            user: spec.role.clone(),
            database: spec.database.clone(),
            password: secrets.password.clone(),
            ..Startup::default()
        };
        let mut route = Self { to: this_server()?, startup, timeout: None, is_elsewhere: false };
        route.tell("client_encoding", "UTF8");
        route.tell("application_name", "pgbench_ext");
        Ok(route)
    }

    /// Sets a parameter of the sessions, over what was said before.
    fn tell(&mut self, name: &str, value: &str) {
        let parameters = &mut self.startup.parameters;
        parameters.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        parameters.push((name.to_owned(), value.to_owned()));
    }
}
