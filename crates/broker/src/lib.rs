//! A broker of publications as a pure machine: clients of several protocols get what clients of
//! others publish.
//!
//! [`Core`] is what all protocols share: sessions, the index of subscriptions, retained messages,
//! queues, what is under way, wills. It knows [`Publication`]s and no protocol. An **adapter** is a
//! folder named for its protocol (`mqtt/` is the model). It owns its connections, reads what comes
//! over them, and calls the core:
//!
//! - a client comes and goes: [`Core::open`], [`Core::close`]; it subscribes: [`Core::subscribe`];
//! - it publishes: [`Core::publish`]; the acknowledgement is held back until
//!   the core's journal has reached the ticket of [`Accepted`];
//! - what waits for it: whoever drives the broker asks [`Core::next_ready`] which connections have
//!   something, and the adapter of that connection calls [`Core::take`] while it has room to send
//!   ([`Outputs::room`]);
//! - it acknowledges: [`Core::finish`], [`Core::received`]; it sends with a number of grade 2:
//!   [`Core::inbound`], [`Core::release`].
//!
//! All of it comes in a [`Context`]. What goes out is put into its [`Outputs`]. [`Broker`] puts the
//! core and the adapters together behind one [`Input`] and one [`Output`].
//!
//! **Drain rule.** After every [`Broker::handle_input`] call [`Broker::poll_output`] until it gives
//! `None`, and do what it says in that order. The last [`Output::WakeAt`] stands until replaced.

mod access;
mod adapter;
mod amqp;
mod amqp091;
mod broker;
mod change;
mod coded;
mod core;
mod event;
mod explain;
mod federation;
mod filter;
mod forms;
mod http;
mod ids;
mod index;
mod mesh;
mod mqtt;
mod mqttsn;
mod mqttudp;
mod outputs;
mod publication;
mod refusal;
mod retained;
mod rules;
mod session;
mod settings;
mod window;
mod wsn;

pub use access::{Access, Action, Rule as AccessRule};
pub use amqp::{
    Settings as AmqpSettings, name as amqp_name, payload as amqp_payload, text as amqp_text,
};
pub use amqp091::{
    Settings as Amqp091Settings, key_of as amqp091_key, pairs as amqp091_text,
    pattern_of as amqp091_pattern, reply_to as amqp091_reply_to,
    reply_topic as amqp091_reply_topic, topic_of as amqp091_topic,
};
pub use broker::{Broker, Input};
pub use change::Change;
pub use core::{Accepted, Core, Delivery, Next, Opened, Opening, Outstanding, Sizes};
pub use event::{Counts, Drop, Event};
pub use explain::{Query as ExplainQuery, Settings as ExplainSettings};
pub use federation::{
    Breach as FederationBreach, BreachKind as FederationBreachKind, Federation,
    Flow as FederationFlow, PUBLISHER as FEDERATION_PUBLISHER, Refused as FederationRefused,
    Terms as FederationTerms,
};
pub use filter::{
    MAX_LEVELS, MAX_TOPIC_BYTES, check_filter, check_name, covers, matches, overlap, shared,
};
pub use forms::FormRule;
pub use http::{Answer, Asked, Post, Posted};
pub use ids::{ClientKey, ConnectionId, Principal, Protocol, SessionId, Ticket};
pub use mesh::{
    Input as MeshInput, Mac as MeshMac, Member as MeshMember, MemberStatus, Mesh,
    Output as MeshOutput, Progress as MeshProgress, Settings as MeshSettings,
};
pub use mqtt::{Bridge, BridgeStatus, Route as BridgeRoute, Settings as MqttSettings, is_node};
pub use mqttsn::{
    Listener as MqttSnListener, Predefined as MqttSnPredefined, Settings as MqttSnSettings,
};
pub use mqttudp::{
    Exit as MqttUdpExit, Listener as MqttUdpListener, Settings as MqttUdpSettings,
    Verification as MqttUdpVerification,
};
pub use outputs::{Context, Login, Output, Outputs};
pub use publication::{DEFAULT_PRIORITY, Details, Form, Grade, MAX_HOPS, PayloadForm, Publication};
pub use refusal::Refusal;
pub use rules::{Rule, Rules};
pub use session::{RetainHandling, Subscription, Will};
pub use settings::{Overflow, Settings};
pub use wsn::client as wsn_client;
pub use wsn::{Mount, NodeId, Settings as WsnSettings, Tree, XPathError, XPathFilter};
