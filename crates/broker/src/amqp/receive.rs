//! What a publisher sends.

use proto::amqp::machine::{Delivery, Input};
use proto::amqp::performative::{DeliveryState, ErrorInfo, condition};

use super::connection::{Connection, Link};
use super::{Shared, translate};
use crate::ids::Ticket;
use crate::outputs::Context;
use crate::publication::Grade;

impl Connection {
    /// A message came.
    pub(super) fn delivery(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        delivery: Delivery,
    ) {
        let (link, number, settled) = (delivery.link, delivery.delivery, delivery.settled);
        let taken = self.publish(context, &delivery);
        let (state, ticket) = match taken {
            Ok(ticket) => (DeliveryState::Accepted, ticket),
            Err(error) => {
                self.refused(context, &format!("a publication: {error}"));
                (DeliveryState::Rejected(Some(error)), Ticket(0))
            }
        };
        if !settled {
            let outcome = Input::Outcome { link, delivery: number, state };
            self.hold(context, shared, ticket, outcome);
        }
    }

    fn publish(&self, context: &mut Context<'_>, delivery: &Delivery) -> Result<Ticket, ErrorInfo> {
        if delivery.format != 0 {
            let what = "a message of another format than 0";
            return Err(ErrorInfo::new(condition::NOT_IMPLEMENTED, what));
        }
        let topic = match self.links.get(&delivery.link) {
            Some(Link::Publisher(topic)) => topic.clone(),
            _ => return Err(ErrorInfo::new(condition::NOT_FOUND, "a link that is gone")),
        };
        let (mut publication, lifetime) = translate::publication(&delivery.message, topic)?;
        publication.grade = match (delivery.settled, delivery.is_second) {
            (true, _) => Grade::AtMostOnce,
            (false, false) => Grade::AtLeastOnce,
            (false, true) => Grade::ExactlyOnce,
        };
        publication.deadline = lifetime.map(|lifetime| context.now.saturating_add(lifetime));
        publication.publisher = self.publisher;
        let accepted = context.core.publish(context.now, publication);
        accepted.map(|accepted| accepted.ticket).map_err(|refusal| translate::refused(&refusal))
    }
}
