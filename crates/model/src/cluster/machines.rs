//! Which nodes share a machine, and with it its processors.

/// A node as far as it tells what machine it is on.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    /// Citus' number for it.
    pub node: i32,
    /// The name or address that other nodes reach it by.
    pub host: &'a str,
    /// What the machine says of itself; `None` where the node has not told.
    pub identity: Option<&'a str>,
}

/// For each node the first one that is on the same machine: one with the same identity, or where one of the two has none, on
/// the same host.
pub fn machines(tenants: &[Tenant]) -> Vec<i32> {
    let is_same = |one: &Tenant, other: &Tenant| match (one.identity, other.identity) {
        (Some(one), Some(other)) => one == other,
        _ => one.host == other.host,
    };
    let first = |tenant: &Tenant| tenants.iter().find(|other| is_same(tenant, other)).map(|other| other.node);
    tenants.iter().map(|tenant| first(tenant).unwrap_or(tenant.node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[(i32, &str, Option<&str>)]) -> Vec<i32> {
        let tenants: Vec<_> =
            nodes.iter().map(|&(node, host, identity)| Tenant { node, host, identity }).collect();
        machines(&tenants)
    }

    #[test]
    fn nodes_of_one_machine_have_one_number() {
        let same = [
            (1, "db0", Some("x")),
            (2, "127.0.0.1", Some("x")),
            (3, "db2", Some("y")),
            (4, "db0", Some("y")),
        ];
        assert_eq!(of(&same), [1, 1, 3, 3], "whatever they are called");
        assert_eq!(of(&[(2, "db0", None), (5, "db0", None), (7, "db1", None)]), [2, 2, 7]);
        assert_eq!(of(&[(2, "db0", Some("x")), (5, "db0", None)]), [2, 2]);
        assert_eq!(of(&[]), Vec::<i32>::new());
    }
}
