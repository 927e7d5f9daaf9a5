//! Who may publish and subscribe to what.

use crate::filter::{covers, matches};

/// What a client wants to do with a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Publish to it.
    Publish,
    /// Subscribe to it.
    Subscribe,
}

/// What is allowed, or not, with the topics of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Of this user only; `None`: of everybody, also of those who give no name.
    pub user: Option<String>,
    /// With this only; `None`: with both.
    pub action: Option<Action>,
    /// The topics: a filter of MQTT in which `%u` stands for the user and `%c` for the client.
    pub filter: String,
    /// Whether it is allowed.
    pub allow: bool,
}

/// Rules in order: the first that fits decides. Without rules everything is allowed but writing
/// below `$SYS`; with rules, what none fits is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The rules.
    pub rules: Vec<Rule>,
}

impl Access {
    /// Whether a user, known to the protocol as `client`, may do this with a topic, or with every
    /// topic of a filter.
    #[must_use]
    pub fn allows(&self, user: Option<&str>, client: &str, action: Action, topic: &str) -> bool {
        if action == Action::Publish && topic.starts_with('$') {
            return false;
        }
        if self.rules.is_empty() {
            return true;
        }
        for rule in &self.rules {
            if rule.action.is_some_and(|of| of != action) {
                continue;
            }
            if rule.user.is_some() && rule.user.as_deref() != user {
                continue;
            }
            let Some(filter) = expand(&rule.filter, user, client) else { continue };
            let fits = match action {
                Action::Publish => matches(&filter, topic),
                // What is denied for a part is denied for the whole that includes the part.
                Action::Subscribe if rule.allow => covers(&filter, topic),
                Action::Subscribe => covers(&filter, topic) || covers(topic, &filter),
            };
            if fits {
                return rule.allow;
            }
        }
        false
    }
}

/// A rule's filter with names in place of `%u` and `%c`; `None` where there is no name, or one that
/// would be a wildcard or several levels.
fn expand(filter: &str, user: Option<&str>, client: &str) -> Option<String> {
    let is_level = |name: &str| !name.is_empty() && !name.contains(['/', '+', '#']);
    let mut expanded = filter.to_owned();
    if expanded.contains("%u") {
        expanded = expanded.replace("%u", user.filter(|user| is_level(user))?);
    }
    if expanded.contains("%c") {
        expanded = expanded.replace("%c", Some(client).filter(|client| is_level(client))?);
    }
    Some(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(user: Option<&str>, action: Option<Action>, filter: &str, allow: bool) -> Rule {
        Rule { user: user.map(str::to_owned), action, filter: filter.to_owned(), allow }
    }

    #[test]
    fn without_rules_all_but_the_brokers_own_topics_may_be_written() {
        let access = Access::default();
        assert!(access.allows(None, "c", Action::Publish, "a/b"));
        assert!(!access.allows(None, "c", Action::Publish, "$SYS/broker/uptime"));
        assert!(access.allows(None, "c", Action::Subscribe, "$SYS/#"));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let access = Access {
            rules: vec![
                rule(Some("ann"), None, "secret/#", true),
                rule(None, None, "secret/#", false),
                rule(None, Some(Action::Publish), "unit/%c/track", true),
                rule(None, Some(Action::Subscribe), "#", true),
            ],
        };
        assert!(access.allows(Some("ann"), "x", Action::Subscribe, "secret/+"));
        assert!(!access.allows(Some("bob"), "x", Action::Subscribe, "secret/+"));
        assert!(!access.allows(Some("bob"), "x", Action::Subscribe, "#"), "it has what is denied");
        assert!(access.allows(Some("bob"), "x", Action::Subscribe, "open/#"));
        assert!(access.allows(None, "x7", Action::Publish, "unit/x7/track"));
        assert!(!access.allows(None, "x7", Action::Publish, "unit/x8/track"));
    }

    #[test]
    fn a_name_that_is_a_wildcard_opens_nothing() {
        let access = Access { rules: vec![rule(None, None, "unit/%c/#", true)] };
        assert!(!access.allows(None, "#", Action::Subscribe, "unit/#"));
        assert!(!access.allows(None, "+", Action::Subscribe, "unit/+/a"));
        assert!(!access.allows(None, "a/b", Action::Publish, "unit/a/b/c"));
    }
}
