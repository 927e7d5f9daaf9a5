use std::net::Ipv4Addr;
use std::task::Poll;

use super::*;

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An answer that goes on.
fn flowing() -> Flowing {
    let content = Content::new(Code::CONTENT).with_payload("begun");
    let rest = Full::new(Bytes::from_static(b"rest")).map_err(|never| match never {});
    let held = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    Flowing { content, rest: rest.boxed_unsync(), held }
}

async fn next(commands: &mut mpsc::Receiver<Command>) -> Input<Peer> {
    let next = tokio::time::timeout(Duration::from_secs(30), commands.recv());
    match next.await.unwrap() {
        Some(Command::Input(input)) => input,
        _ => panic!("no input"),
    }
}

/// Whether it is ready now.
async fn is_ready(future: impl Future<Output = ()>) -> bool {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

/// RFC 9175 §2.4: what a forged address asks for takes no place that lasts.
#[tokio::test]
async fn who_is_not_known_shows_that_he_is_there_before_anything_lasts() {
    let (sender, mut commands) = mpsc::channel(4);
    let (places, shares) = (Flows::places(), Shares::new(8));
    let answer = |is_known| {
        let ways = (sender.clone(), Flows::new(Arc::clone(&places)));
        let until_then = (shares.take(FROM).unwrap(), None);
        let full = || Content::new(Code::SERVICE_UNAVAILABLE);
        flow((7, FROM, is_known), ways, until_then, flowing(), full)
    };
    answer(false).await;
    let said = next(&mut commands).await;
    assert!(matches!(said, Input::Challenge { exchange: 7 }), "{said:?}");
    assert!(is_ready(places.idle()).await && is_ready(shares.idle()).await);
    let known = tokio::spawn(answer(true));
    let said = next(&mut commands).await;
    assert!(matches!(said, Input::Begin { exchange: 7, .. }), "{said:?}");
    assert!(!is_ready(places.idle()).await && is_ready(shares.idle()).await);
    known.abort();
}

/// The end waits for what begins to go on at length when it is near.
#[tokio::test]
async fn the_end_waits_for_what_was_open_and_goes_on() {
    let (shares, places) = (Shares::new(8), Flows::places());
    let open = [Arc::clone(&shares)];
    let place = shares.take(FROM).unwrap();
    let mut end = std::pin::pin!(all_answered(&open, &places));
    assert!(!is_ready(end.as_mut()).await);
    let lasts = places.take(FROM).unwrap();
    drop(place);
    assert!(!is_ready(end.as_mut()).await);
    drop(lasts);
    assert!(is_ready(end.as_mut()).await);
}
