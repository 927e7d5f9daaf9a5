//! Who may publish and subscribe to what.

use crate::filter::{covers, matches, overlap};

/// Where answers go of clients whose protocol has addresses of its own for them.
pub(crate) const REPLIES: &str = "$reply/";

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
/// below `$SYS`; with rules, what none fits is not. Reply addresses (`$reply/…`) are of whoever
/// knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The rules.
    pub rules: Vec<Rule>,
}

impl Access {
    /// Whether a user, known to the protocol as `client`, may publish to a topic.
    #[must_use]
    pub fn may_publish(&self, user: Option<&str>, client: &str, topic: &str) -> bool {
        // Whoever was told a reply address may use it.
        topic.starts_with(REPLIES)
            || !topic.starts_with('$') && self.allows(user, client, Action::Publish, topic)
    }

    /// Whether a user may get what is published to a topic.
    #[must_use]
    pub fn may_receive(&self, user: Option<&str>, client: &str, topic: &str) -> bool {
        topic.starts_with(REPLIES) || self.allows(user, client, Action::Subscribe, topic)
    }

    /// Whether a user may subscribe to a filter: that is so if some of its topics may be received.
    /// The others are left out when something is published to them.
    #[must_use]
    pub fn may_subscribe(&self, user: Option<&str>, client: &str, filter: &str) -> bool {
        if filter.starts_with(REPLIES) {
            // Nobody gets those of others, which a wildcard would find.
            return !filter.contains(['+', '#']);
        }
        let mut fitting = self.of(user, client, Action::Subscribe);
        self.rules.is_empty()
            || fitting
                .find_map(|(rule, allow)| match allow {
                    true => overlap(&rule, filter).then_some(true),
                    false => covers(&rule, filter).then_some(false),
                })
                .unwrap_or(false)
    }

    /// Whether a user may receive every topic of a filter, for subscriptions of which nothing can
    /// be left out later.
    #[must_use]
    pub fn may_subscribe_whole(&self, user: Option<&str>, client: &str, filter: &str) -> bool {
        let mut fitting = self.of(user, client, Action::Subscribe);
        self.rules.is_empty()
            || fitting
                .find_map(|(rule, allow)| match allow {
                    true => covers(&rule, filter).then_some(true),
                    false => overlap(&rule, filter).then_some(false),
                })
                .unwrap_or(false)
    }

    fn allows(&self, user: Option<&str>, client: &str, action: Action, topic: &str) -> bool {
        let mut fitting = self.of(user, client, action);
        self.rules.is_empty()
            || fitting.find(|(rule, _)| matches(rule, topic)).is_some_and(|(_, allow)| allow)
    }

    /// The rules that are about somebody and something, with names in place of `%u` and `%c`.
    fn of(
        &self,
        user: Option<&str>,
        client: &str,
        action: Action,
    ) -> impl Iterator<Item = (String, bool)> {
        self.rules.iter().filter_map(move |rule| {
            let is_meant = rule.action.is_none_or(|of| of == action)
                && rule.user.as_deref().is_none_or(|of| Some(of) == user);
            let filter = is_meant.then(|| expand(&rule.filter, user, client)).flatten()?;
            Some((filter, rule.allow))
        })
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
        assert!(access.may_publish(None, "c", "a/b"));
        assert!(!access.may_publish(None, "c", "$SYS/broker/uptime"));
        assert!(access.may_subscribe(None, "c", "$SYS/#"));
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
        assert!(access.may_subscribe(Some("ann"), "x", "secret/+"));
        assert!(!access.may_subscribe(Some("bob"), "x", "secret/+"));
        // What is denied of it is left out of what comes.
        assert!(access.may_subscribe(Some("bob"), "x", "#"));
        assert!(!access.may_subscribe_whole(Some("bob"), "x", "#"));
        assert!(access.may_subscribe_whole(Some("bob"), "x", "open/#"));
        assert!(!access.may_receive(Some("bob"), "x", "secret/a"));
        assert!(access.may_receive(Some("bob"), "x", "open/a"));
        assert!(access.may_receive(Some("ann"), "x", "secret/a"));
        assert!(access.may_publish(None, "x7", "unit/x7/track"));
        assert!(!access.may_publish(None, "x7", "unit/x8/track"));
    }

    #[test]
    fn a_name_that_is_a_wildcard_opens_nothing() {
        let access = Access { rules: vec![rule(None, None, "unit/%c/#", true)] };
        for name in ["#", "+", "a/b"] {
            assert!(!access.may_subscribe(None, name, "unit/#"));
            assert!(!access.may_publish(None, name, "unit/a/b/c"));
        }
        assert!(access.may_subscribe(None, "a", "unit/#"));
        assert!(!access.may_receive(None, "a", "unit/b"));
    }
}
