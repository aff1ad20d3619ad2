//! Whose sessions the clients of a run are.

use bench_base::error::UserError;

use super::run::RunSpec;
use super::script::{Role, ScriptSpec};

impl RunSpec {
    /// The role that the run belongs to.
    pub fn owner(&self) -> Role {
        self.caller.clone().unwrap_or_else(|| self.own_role())
    }

    /// The roles whose sessions the clients are, where these are others than the caller, separated by commas.
    pub fn run_as(&self) -> Option<String> {
        let roles = self.roles();
        let owner = self.owner();
        let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
        (self.target.is_none() && roles.iter().any(|role| role.oid != owner.oid)).then(|| names.join(", "))
    }

    /// The role of all sessions but those of scripts with a role of their own.
    pub fn own_role(&self) -> Role {
        Role { name: self.role.clone(), oid: self.role_oid }
    }

    /// The role whose sessions execute a script.
    fn role_of(&self, script: &ScriptSpec) -> Role {
        script.role.clone().unwrap_or_else(|| self.own_role())
    }

    /// The roles whose sessions the clients are, each once, in the order of the scripts.
    pub fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for role in self.scripts.iter().map(|script| self.role_of(script)) {
            if !roles.iter().any(|known| known.oid == role.oid) {
                roles.push(role);
            }
        }
        roles
    }

    /// How many clients are sessions of each role: the first ones of the first role, and so on. As many of a role as its
    /// transactions took of the captured time, for by Little's law that is how many of them were under way; one at least.
    ///
    /// # Errors
    /// 22023 for fewer clients than roles.
    pub fn sessions(&self) -> Result<Vec<(Role, u32)>, UserError> {
        let roles = self.roles();
        let clients = self.options.clients;
        if roles.len() > clients as usize {
            let message = format!("clients must be at least {}, not {clients}", roles.len());
            return Err(UserError::invalid(message)
                .detail("Each client is a session of one role, and the statements are those of several.")
                .hint("bench.capture_statements shows the role of each statement."));
        }
        let busy = |role: &Role| -> f64 {
            let own = self.scripts.iter().filter(|script| self.role_of(script).oid == role.oid);
            own.map(|script| f64::from(script.weight) * script.captured_ms.unwrap_or(1.0).max(1e-6)).sum()
        };
        let busy: Vec<f64> = roles.iter().map(busy).collect();
        let counts = divided(clients, &busy);
        Ok(roles.into_iter().zip(counts).collect())
    }

    /// The role that a client is a session of.
    pub fn role_of_client(&self, client: u32) -> Role {
        let mut first = 0;
        let own = self.sessions().unwrap_or_default().into_iter().find(|(_, clients)| {
            first += clients;
            client < first
        });
        own.map_or_else(|| self.own_role(), |(role, _)| role)
    }

    /// Which of the scripts a client executes: those whose role is the client's.
    pub fn executed_by(&self, client: u32) -> Vec<bool> {
        let own = self.role_of_client(client);
        self.scripts.iter().map(|script| self.role_of(script).oid == own.oid).collect()
    }
}

/// So many, divided by weights: to the largest remainders, and at least one to each.
fn divided(whole: u32, weights: &[f64]) -> Vec<u32> {
    let sum: f64 = weights.iter().sum();
    let free = whole - weights.len() as u32;
    let exact: Vec<f64> = weights
        .iter()
        .map(|weight| if sum > 0.0 { (weight / sum * f64::from(whole) - 1.0).max(0.0) } else { 0.0 })
        .collect();
    let wanted: f64 = exact.iter().sum();
    let scale = if wanted > 0.0 { f64::from(free) / wanted } else { 0.0 };
    let mut counts: Vec<u32> = exact.iter().map(|part| 1 + (part * scale) as u32).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    let remainder = |at: usize| (exact[at] * scale).fract();
    order.sort_by(|&a, &b| remainder(b).total_cmp(&remainder(a)));
    let left = whole.saturating_sub(counts.iter().sum());
    order.iter().cycle().take(left as usize).for_each(|&at| counts[at] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::divided;

    #[test]
    fn clients_are_divided_by_the_time_of_the_roles() {
        assert_eq!(divided(10, &[9.0, 1.0]), [9, 1]);
        assert_eq!(divided(2, &[1e9, 1e-9]), [1, 1]);
        assert_eq!(divided(64, &[1.0, 1.0, 2.0]), [16, 16, 32]);
        assert_eq!(divided(3, &[0.0, 0.0]).iter().sum::<u32>(), 3);
    }

    proptest! {
        #[test]
        fn all_clients_are_somebodys_and_nobody_is_left_out(
            weights in prop::collection::vec(0.0..1e6f64, 1..20),
            more in 0u32..1000,
        ) {
            let whole = weights.len() as u32 + more;
            let counts = divided(whole, &weights);
            prop_assert_eq!(counts.iter().sum::<u32>(), whole);
            prop_assert!(counts.iter().all(|&count| count >= 1));
        }
    }
}
