//! MQTT/UDP: datagrams to a host, a network or a group, and from whoever sends there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;

use bytes::Bytes;
use proto::mqtt::topic;
use proto::mqttudp::{Datagram, MAX_DATAGRAM_BYTES, Packet, Records, Signer};
use tokio::sync::mpsc;

use super::{Event, Message, Published, Take, Taken, Target, Wish};
use crate::datagrams;
use crate::error::Error;

/// See [`super::publish`].
pub(super) async fn publish(
    target: &Target,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let to = resolved(target).await?;
    let any = SocketAddr::new(unspecified(to.ip()), 0);
    let broken = |error| Error::System(format!("{to}: {error}"));
    let socket = datagrams::open(any, &[]).map_err(broken)?;
    let mut published = Published::default();
    let (mut number, mut datagram) = (0, Vec::new());
    while let Some(message) = messages.recv().await {
        number += 1;
        datagram.clear();
        let records = Records { number: Some(number), ..Records::default() };
        let written = topic::check_name(message.topic.as_bytes())
            .map_err(|error| error.to_string())
            .and_then(|()| {
                Packet::publish(&message.topic, &message.payload)
                    .encode(&records, &Signer::NONE, &mut datagram)
                    .map_err(|error| error.to_string())
            });
        match written {
            Ok(()) => match socket.send_to(&datagram, to).await {
                Ok(_) => published.accepted += 1,
                Err(error) => published.fail(format!("{to}: {error}")),
            },
            Err(why) => published.fail(why),
        }
    }
    Ok(published)
}

/// See [`super::subscribe`]. There is nobody to subscribe with: it is asked for the value of each
/// filter that is a topic, and whoever has it may send it.
pub(super) async fn subscribe(
    target: &Target,
    wish: &Wish,
    take: &mut Take<'_>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    for filter in &wish.filters {
        topic::check_filter(filter.as_bytes())
            .map_err(|error| Error::Caller(format!("the filter {filter}: {error}")))?;
    }
    let to = tokio::select! {
        to = resolved(target) => to?,
        () = end.as_mut() => return Ok(()),
    };
    let groups: &[IpAddr] = if to.ip().is_multicast() { &[to.ip()] } else { &[] };
    let here = SocketAddr::new(unspecified(to.ip()), to.port());
    let broken = |error| Error::System(format!("{here}: {error}"));
    let socket = datagrams::open(here, groups).map_err(broken)?;
    if !wish.no_retained {
        for topic in
            wish.filters.iter().filter(|filter| topic::check_name(filter.as_bytes()).is_ok())
        {
            let mut datagram = Vec::new();
            let encoded = Packet::Subscribe { topic }.encode(
                &Records::default(),
                &Signer::NONE,
                &mut datagram,
            );
            encoded.map_err(|error| Error::Caller(format!("the topic {topic}: {error}")))?;
            socket.send_to(&datagram, to).await.map_err(broken)?;
        }
    }
    if take(Event::Subscribed(Vec::new())) != Taken::More {
        return Ok(());
    }
    let mut room = vec![0; MAX_DATAGRAM_BYTES];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut room) => received,
            () = end.as_mut() => return Ok(()),
        };
        let (len, _) = received.map_err(broken)?;
        // What is no datagram of MQTT/UDP is of others who use the port.
        let Ok(Datagram { packet: Packet::Publish(publish), .. }) = Datagram::decode(&room[..len])
        else {
            continue;
        };
        let name = publish.topic.as_bytes();
        let is_wanted = topic::check_name(name).is_ok()
            && wish.filters.iter().any(|filter| topic::matches(filter.as_bytes(), name));
        let message = Message {
            topic: publish.topic.to_owned(),
            payload: Bytes::copy_from_slice(publish.payload),
            qos: publish.qos.cast_signed(),
            retain: publish.retain,
            ..Message::default()
        };
        if is_wanted && take(Event::Message(message)) != Taken::More {
            return Ok(());
        }
    }
}

async fn resolved(target: &Target) -> Result<SocketAddr, Error> {
    let address = &target.address;
    tokio::net::lookup_host(address)
        .await
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| Error::System(format!("{address}: the name has no address")))
}

fn unspecified(of: IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
