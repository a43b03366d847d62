//! Many streams on few connections.

use h2::server::Connection as Server;

use super::*;
use crate::upstream::connect;

/// Streams of one pool over connections in memory, and what each is told.
pub(super) struct Fleet {
    drivers: Vec<(Driver, mpsc::UnboundedReceiver<Option<String>>)>,
    pub(super) pool: Pool,
    /// The far ends.
    connections: mpsc::UnboundedReceiver<DuplexStream>,
    /// How many more can be made before they are refused.
    room: Arc<Mutex<usize>>,
    dials: Arc<Mutex<Vec<Instant>>>,
}

impl Fleet {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let (sender, connections) = mpsc::unbounded_channel();
        let (room, dials) = (Arc::new(Mutex::new(usize::MAX)), Arc::<Mutex<Vec<Instant>>>::default());
        let (left, dialed, transport) = (room.clone(), dials.clone(), endpoint.transport.clone());
        let pool = Pool::over(endpoint, move || {
            dialed.lock().unwrap().push(now());
            let (near, far) = tokio::io::duplex(1 << 16);
            let mut left = left.lock().unwrap();
            let mut near = Some(near).filter(|_| *left > 0);
            if near.is_some() {
                let _ = sender.send(far);
                *left -= 1;
            }
            let connector = tower::service_fn(move |_| {
                std::future::ready(near.take().ok_or_else(|| std::io::Error::other("nobody is there")))
            });
            connect::over(transport.clone(), connector)
        });
        Self { drivers: Vec::new(), pool, connections, room, dials }
    }

    pub(super) fn open(&mut self, streams: usize) {
        for _ in 0..streams {
            let (recorder, errors) = Recorder::of_errors();
            self.drivers.push((self.driver(recorder), errors));
        }
    }

    /// A stream that is open until this is dropped.
    pub(super) fn driver(&self, recorder: Recorder) -> Driver {
        self.pool.spawn(encoded_node("n"), recorder, Arc::default())
    }

    /// The next connection, served until it breaks; each of its streams is told.
    pub(super) async fn accept(&mut self, bears: Option<u32>, manner: Manner) -> Served {
        let far = self.connections.recv().await.unwrap();
        let mut builder = h2::server::Builder::new();
        if let Some(bears) = bears {
            builder.max_concurrent_streams(bears);
        }
        let connection: Server<_, Bytes> = builder.handshake(far).await.unwrap();
        let (opened, streams) = mpsc::unbounded_channel();
        let (orders, ordered) = mpsc::unbounded_channel();
        Served { streams, orders, task: tokio::spawn(serve(connection, opened, ordered, manner)) }
    }

    /// Nobody can be reached any more; or again.
    pub(super) fn set_away(&self, away: bool) {
        *self.room.lock().unwrap() = if away { 0 } else { usize::MAX };
    }

    fn dials(&self) -> usize {
        self.dials.lock().unwrap().len()
    }
}

#[derive(Clone, Copy)]
pub(super) enum Manner {
    Answers,
    /// As a balancer that has nobody behind it.
    Refuses,
    /// As the relay itself, whose word its metadata are.
    IsOneself,
    Silent,
}

#[derive(Clone, Copy)]
enum Order {
    /// As a server does that wants its streams elsewhere in time.
    GoAway,
    /// As a machine that is gone without a word.
    Freeze,
}

pub(super) struct Served {
    pub(super) streams: mpsc::UnboundedReceiver<()>,
    orders: mpsc::UnboundedSender<Order>,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    /// How many streams came since this was asked last, when no more come.
    pub(super) async fn streams(&mut self) -> usize {
        pass(1).await;
        std::iter::from_fn(|| self.streams.try_recv().ok()).count()
    }

    /// The connection breaks.
    pub(super) fn cut(self) {
        self.task.abort();
    }
}

async fn serve(
    mut connection: Server<DuplexStream, Bytes>,
    opened: mpsc::UnboundedSender<()>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    manner: Manner,
) {
    let mut unanswered = Vec::new();
    loop {
        let (mut request, mut to) = tokio::select! {
            stream = connection.accept() => match stream {
                Some(Ok(stream)) => stream,
                _ => return,
            },
            Some(order) = orders.recv() => match order {
                Order::GoAway => {
                    connection.graceful_shutdown();
                    continue;
                }
                Order::Freeze => std::future::pending().await,
            },
        };
        let _ = opened.send(());
        let mut body = match manner {
            Manner::Answers => respond(to),
            Manner::Refuses => {
                let response =
                    Response::builder().header("content-type", "application/grpc").header("grpc-status", "14");
                to.send_response(response.body(()).unwrap(), true).unwrap();
                continue;
            }
            Manner::IsOneself => {
                let response = Response::builder().header("content-type", "application/grpc");
                let response = response.header("x-who", &request.headers()["x-who"]);
                to.send_response(response.body(()).unwrap(), false).unwrap()
            }
            Manner::Silent => {
                unanswered.push((request, to));
                continue;
            }
        };
        body.send_data(response(), false).unwrap();
        tokio::spawn(async move {
            while let Some(Ok(data)) = request.body_mut().data().await {
                request.body_mut().flow_control().release_capacity(data.len()).unwrap();
            }
            drop(body);
        });
    }
}

fn patient() -> Endpoint {
    endpoint().with_backoff(Backoff::new(Duration::from_secs(1), Duration::from_secs(30)))
}

#[tokio::test(start_paused = true)]
async fn streams_share_connections() {
    let mut fleet = Fleet::new(patient());
    fleet.open(250);
    let mut first = fleet.accept(None, Manner::Answers).await;
    assert_eq!(first.streams().await, 100);
    let mut others = [fleet.accept(None, Manner::Answers).await, fleet.accept(None, Manner::Answers).await];
    let [second, third] = &mut others;
    assert_eq!([second.streams().await, third.streams().await], [100, 50]);
    assert_eq!(fleet.dials(), 3);
    // Who comes finds room, and nobody else moves.
    fleet.open(50);
    assert_eq!(third.streams().await, 50);
    assert_eq!(fleet.dials(), 3);
    // A connection that carries nothing is closed.
    fleet.drivers.drain(..100);
    first.task.await.unwrap();
    assert_eq!(second.streams().await + third.streams().await, 0);
}

#[tokio::test(start_paused = true)]
async fn no_stream_waits_where_the_origin_bears_no_more() {
    let mut fleet = Fleet::new(patient());
    fleet.open(25);
    let mut served = Vec::new();
    for expected in [10, 10, 5] {
        let mut connection = fleet.accept(Some(10), Manner::Answers).await;
        assert_eq!(connection.streams().await, expected);
        served.push(connection);
    }
    assert_eq!(fleet.dials(), 3);
}

#[tokio::test(start_paused = true)]
async fn where_the_origin_bears_one_stream_every_stream_has_a_connection() {
    let mut fleet = Fleet::new(patient());
    fleet.open(120);
    let mut served = Vec::new();
    for _ in 0..120 {
        let mut connection = fleet.accept(Some(1), Manner::Answers).await;
        connection.streams.recv().await.unwrap();
        served.push(connection);
    }
    assert_eq!(fleet.dials(), 120);
}

#[tokio::test(start_paused = true)]
async fn a_connection_too_many_takes_nothing_from_others_that_are_being_made() {
    let mut fleet = Fleet::new(patient());
    fleet.open(100);
    let mut first = fleet.accept(None, Manner::Answers).await;
    assert_eq!(first.streams().await, 100);
    *fleet.room.lock().unwrap() = 2;
    fleet.open(400);
    let mut others = [fleet.accept(None, Manner::Answers).await, fleet.accept(None, Manner::Answers).await];
    let [second, third] = &mut others;
    assert_eq!([second.streams().await, third.streams().await], [100, 100]);
    let told = fleet.drivers.iter_mut().filter(|(_, errors)| !errors.is_empty()).count();
    assert_eq!(told, 200);
}

#[tokio::test(start_paused = true)]
async fn rule_091_a_connection_that_takes_no_more_streams_keeps_those_it_has() {
    let mut fleet = Fleet::new(patient());
    fleet.open(50);
    let mut first = fleet.accept(None, Manner::Answers).await;
    assert_eq!(first.streams().await, 50);
    first.orders.send(Order::GoAway).unwrap();
    pass(60).await;
    fleet.open(1);
    let mut second = fleet.accept(None, Manner::Answers).await;
    assert_eq!(second.streams().await, 1);
    assert!(fleet.drivers.iter().all(|(_, errors)| errors.is_empty()));
    first.cut();
    for (_, errors) in fleet.drivers.iter_mut().take(50) {
        assert_eq!(errors.recv().await.unwrap(), None);
    }
    pass(60).await;
    assert_eq!(second.streams().await, 50);
    assert_eq!(fleet.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn rule_137_a_connection_that_answers_no_ping_is_lost_to_all_its_streams() {
    let mut fleet = Fleet::new(patient());
    fleet.open(100);
    let mut first = fleet.accept(None, Manner::Answers).await;
    assert_eq!(first.streams().await, 100);
    first.orders.send(Order::Freeze).unwrap();
    let start = now();
    for (_, errors) in &mut fleet.drivers {
        assert_eq!(errors.recv().await.unwrap(), None);
        assert!((300..=320).contains(&(now() - start).as_secs()));
    }
    let mut second = fleet.accept(None, Manner::Answers).await;
    assert_eq!(second.streams().await, 100);
    assert_eq!(fleet.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn rule_089_an_origin_that_is_away_is_dialed_once_for_all_and_all_are_back_at_once() {
    let mut fleet = Fleet::new(patient());
    fleet.open(300);
    let mut served = Vec::new();
    for _ in 0..3 {
        let mut connection = fleet.accept(None, Manner::Answers).await;
        assert_eq!(connection.streams().await, 100);
        served.push(connection);
    }
    fleet.set_away(true);
    served.drain(..).for_each(Served::cut);
    pass(600).await;
    // 1, 2, 4, … 30 seconds at the most, half of that as a rule: not one more for each stream.
    let attempts = fleet.dials() - 3;
    assert!((20..200).contains(&attempts), "{attempts}");
    for (_, errors) in &mut fleet.drivers {
        assert_eq!(errors.recv().await.unwrap(), None, "an end after a response is no error (rule 91)");
        let error = errors.recv().await.unwrap().unwrap();
        assert!(error.contains("nobody is there"), "{error}");
    }
    fleet.set_away(false);
    let mut first = fleet.accept(None, Manner::Answers).await;
    let back = now();
    let mut others = [fleet.accept(None, Manner::Answers).await, fleet.accept(None, Manner::Answers).await];
    assert!(now() - back < Duration::from_millis(200), "{:?}", now() - back);
    let [second, third] = &mut others;
    assert_eq!([first.streams().await, second.streams().await, third.streams().await], [100; 3]);
    assert_eq!(fleet.dials(), 3 + attempts + 3);
}

#[tokio::test(start_paused = true)]
async fn rule_089_who_takes_a_place_has_the_same_backoff_and_ends_it() {
    let mut fleet = Fleet::new(patient());
    fleet.set_away(true);
    let mut retry_at = now();
    for _ in 0..10 {
        tokio::time::sleep_until(retry_at.into()).await;
        retry_at = fleet.pool.place().await.unwrap_err().retry_at;
        assert_eq!(fleet.pool.place().await.unwrap_err().retry_at, retry_at);
    }
    assert_eq!(fleet.dials(), 10);
    tokio::time::sleep_until(retry_at.into()).await;
    fleet.set_away(false);
    let opening = fleet.pool.clone();
    let opening = tokio::spawn(async move { opening.place().await.unwrap() });
    let first = fleet.accept(None, Manner::Answers).await;
    opening.await.unwrap().answered();
    // It carries nothing any more.
    first.task.await.unwrap();
    fleet.set_away(true);
    let waits = fleet.pool.place().await.unwrap_err().retry_at - now();
    assert!(waits <= Duration::from_secs(1), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn rule_089_a_connection_on_which_nothing_is_answered_is_not_made_again_and_again() {
    let mut fleet = Fleet::new(patient());
    fleet.open(50);
    let start = now();
    for _ in 0..20 {
        let mut connection = fleet.accept(None, Manner::Silent).await;
        connection.streams.recv().await.unwrap();
        connection.cut();
    }
    assert!(now() - start > Duration::from_secs(60), "{:?}", now() - start);
}

#[tokio::test(start_paused = true)]
async fn what_became_of_the_streams_of_others_is_not_told_as_what_became_of_one() {
    let mut fleet = Fleet::new(patient());
    for _ in 0..2 {
        fleet.open(1);
        let first = fleet.accept(None, Manner::Refuses).await;
        let (_, errors) = fleet.drivers.last_mut().unwrap();
        let error = errors.recv().await.unwrap().unwrap();
        assert!(error.starts_with("Unavailable"), "{error}");
        drop(first);
    }
}

/// A balancer is there, and nobody behind it; then there is.
#[tokio::test(start_paused = true)]
async fn who_waits_for_an_origin_that_answers_again_waits_no_longer() {
    let mut fleet = Fleet::new(patient());
    fleet.open(50);
    let start = now();
    while now() - start < Duration::from_secs(300) {
        fleet.accept(None, Manner::Refuses).await;
    }
    // Fifty streams with waits of up to 30 s each would need a thousand.
    assert!(fleet.dials() < 600, "{}", fleet.dials());
    let mut origin = fleet.accept(None, Manner::Answers).await;
    origin.streams.recv().await.unwrap();
    let back = now();
    for _ in 1..50 {
        origin.streams.recv().await.unwrap();
    }
    assert!(now() - back < Duration::from_millis(200), "{:?}", now() - back);
}

#[tokio::test(start_paused = true)]
async fn where_connections_lead_elsewhere_streams_are_opened_there_at_once_and_none_is_left() {
    let (mut before, mut after) = (Fleet::new(endpoint()), Fleet::new(endpoint()));
    before.open(3);
    let mut left = before.accept(None, Manner::Answers).await;
    assert_eq!(left.streams().await, 3);
    let at = now();
    before.pool.lead_as(&after.pool, false);
    let mut taken = after.accept(None, Manner::Answers).await;
    assert_eq!(now(), at);
    assert_eq!(taken.streams().await, 3);
    // Nobody holds the connection that there was.
    left.task.await.unwrap();
    before.open(1);
    assert_eq!((taken.streams().await, before.dials(), after.dials()), (1, 1, 1));
    // Who waits for one that does not come back goes as well.
    let mut last = Fleet::new(endpoint());
    after.set_away(true);
    taken.cut();
    pass(60).await;
    before.pool.lead_as(&last.pool, false);
    assert_eq!(last.accept(None, Manner::Answers).await.streams().await, 4);
}

#[tokio::test(start_paused = true)]
async fn where_connections_lead_to_another_server_each_stream_is_told_so_once_and_before_it_is_there() {
    let (mut before, mut after) = (Fleet::new(endpoint()), Fleet::new(endpoint()));
    before.open(1);
    let mut left = before.accept(None, Manner::Answers).await;
    assert_eq!(left.streams().await, 1);
    // Both at once: the other way to reach it is no other server, and the server is one all the same.
    before.pool.lead_as(&after.pool, true);
    before.pool.lead_as(&after.pool, false);
    let mut taken = after.accept(None, Manner::Answers).await;
    assert_eq!(taken.streams().await, 1);
    let (_, told) = before.drivers.last_mut().unwrap();
    let told: Vec<_> = std::iter::from_fn(|| told.try_recv().ok()).collect();
    assert_eq!(told, [None, Some(ANOTHER_SERVER.to_owned())], "it ended, and then");
    // One that is opened since knows of no other.
    before.open(1);
    assert_eq!(taken.streams().await, 1);
    assert!(before.drivers.last_mut().unwrap().1.try_recv().is_err());
}
