//! New settings for a side that runs: keys, lists of what may be reached and services are taken as
//! they are read again; all else needs a new process.

use codec::Options;
use relay::Input;

use crate::Error;
use crate::actor::{Handle, Message};
use crate::carrier::Security;
use crate::config::{EdgeConfig, GatewayConfig, Service};
use crate::gateway;
use crate::live::{Live, Services};
use crate::pattern::Pattern;
use crate::trust::Keeper;

/// Puts new settings in place of those that a side runs with.
#[derive(Clone)]
pub struct Renewal {
    pub(crate) keeper: Keeper,
    /// None: an edge without a gateway, which has no relay.
    pub(crate) handle: Option<Handle>,
    pub(crate) services: Services,
    /// Of a gateway.
    pub(crate) allow: Option<Live<Vec<Pattern>>>,
    /// Empty at a gateway.
    pub(crate) edge: EdgeLists,
    /// The encodings that the side chooses among as long as it lives.
    pub(crate) arms: Vec<Options>,
}

/// An edge's own lists: what clients may not reach, and what they may reach directly.
#[derive(Clone)]
pub(crate) struct EdgeLists {
    pub(crate) deny: Live<Vec<Pattern>>,
    pub(crate) direct_allow: Live<Vec<Pattern>>,
}

impl EdgeLists {
    pub(crate) fn new(deny: Vec<Pattern>, direct_allow: Vec<Pattern>) -> Self {
        Self { deny: Live::new(deny), direct_allow: Live::new(direct_allow) }
    }
}

/// Settings that a running side can take, checked.
pub struct News {
    security: Security,
    allow: Option<Vec<Pattern>>,
    /// Of an edge: those that nobody may reach, and those that are asked directly.
    edge: Option<[Vec<Pattern>; 2]>,
    services: Option<(Vec<Service>, relay::Config)>,
}

/// What became of new settings, in words.
#[derive(Debug, Default)]
pub struct Renewed {
    /// What holds from now on.
    pub taken: Vec<String>,
    /// What does not, and why.
    pub left: Vec<String>,
}

impl EdgeConfig {
    /// What of it a running edge can take; `services`: they are others than before.
    #[must_use]
    pub fn news(self, services: bool) -> News {
        let Self { security, services: list, relay, deny, direct_allow, .. } = self;
        let services = services.then_some((list, relay));
        News { security, allow: None, edge: Some([deny, direct_allow]), services }
    }
}

impl GatewayConfig {
    /// What of it a running gateway can take; `allow` and `services`: they are others than before.
    #[must_use]
    pub fn news(self, allow: bool, services: bool) -> News {
        let Self { security, services: list, relay, allow: patterns, .. } = self;
        let allow = allow.then_some(patterns);
        News { security, allow, edge: None, services: services.then_some((list, relay)) }
    }
}

impl Renewal {
    /// Takes what can be taken.
    ///
    /// # Errors
    /// A key that cannot be used; then nothing has changed.
    pub async fn take(&self, news: News) -> Result<Renewed, Error> {
        let mut renewed = Renewed::default();
        if let Some(what) = self.keeper.renew(news.security)? {
            renewed.taken.push(format!("keys ({what})"));
        }
        if let (Some(patterns), Some(allow)) = (news.allow, &self.allow) {
            renewed.taken.push(format!("allow ({} patterns)", patterns.len()));
            let reported = gateway::allowed(&patterns);
            allow.set(patterns);
            if let Some(handle) = &self.handle {
                handle.send(Message::Input(Input::Allowed(reported))).await;
            }
        }
        if let Some([deny, direct_allow]) = news.edge {
            let lists = [
                ("deny", deny, &self.edge.deny),
                ("direct_allow", direct_allow, &self.edge.direct_allow),
            ];
            for (name, patterns, list) in lists {
                if *list.get() != patterns {
                    renewed.taken.push(format!("{name} ({} patterns)", patterns.len()));
                    list.set(patterns);
                }
            }
        }
        if let Some((services, config)) = news.services {
            match self.add_services(services, config).await {
                Ok(count) => renewed.taken.push(format!("services ({count})")),
                Err(why) => renewed.left.push(format!("services ({why})")),
            }
        }
        Ok(renewed)
    }

    async fn add_services(
        &self,
        services: Vec<Service>,
        config: relay::Config,
    ) -> Result<usize, String> {
        let mut arms = config.encoding.arms().iter();
        if let Some(new) = arms.find(|arm| !self.arms.contains(arm)) {
            return Err(format!("'{}' is not among the encodings so far", new.label()));
        }
        let count = services.len();
        if let Some(handle) = &self.handle
            && !handle.add_services(config.services).await
        {
            return Err("they were set anew too often".to_owned());
        }
        self.services.renew(services);
        Ok(count)
    }
}
