//! Several servers that come and go by chance, all of which have the same.

use proptest::prelude::*;

use super::fallback::{SERVERS, several, told};
use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Longer than two waits between attempts.
const LONG: Duration = Duration::from_secs(400);

#[derive(Clone, Copy, Debug)]
enum Step {
    Up(usize),
    Down(usize),
    Silent(usize, bool),
    End(usize),
    /// All that there is changes, everywhere.
    Put,
    Watch(usize),
    Leave(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let server = 0..SERVERS.len();
    prop_oneof![
        2 => server.clone().prop_map(Step::Up),
        3 => server.clone().prop_map(Step::Down),
        1 => (server.clone(), any::<bool>()).prop_map(|(at, silent)| Step::Silent(at, silent)),
        1 => server.prop_map(Step::End),
        2 => Just(Step::Put),
        3 => (0..NAMES.len()).prop_map(Step::Watch),
        1 => (0..NAMES.len()).prop_map(Step::Leave),
        3 => prop_oneof![0..5_u64, 10..20_u64, 100..300_u64].prop_map(Step::Pass),
    ]
}

struct Watched {
    watch: Watch<Cluster>,
    content: Option<String>,
    /// It was told that no server can be reached.
    lost: bool,
}

impl Watched {
    /// Looks at what it hears: nothing takes away what it has.
    fn look(&mut self, up: bool) -> Result<(), TestCaseError> {
        for words in told(&mut self.watch) {
            let kind = words.split(' ').next().unwrap_or_default();
            match kind {
                "put" => {
                    let content = words.rsplit(' ').next().map(str::to_owned);
                    prop_assert_ne!(&self.content, &content, "what is as it was is no news");
                    self.content = content;
                }
                "cleared" => self.lost = false,
                _ if words.contains("unreachable") => {
                    prop_assert!(!up, "{}: a server is there", words);
                    self.lost = true;
                    prop_assert_eq!(kind == "ambient", self.content.is_some(), "{}", words);
                }
                // Whom it was asked may have been silent.
                "failed" => {
                    prop_assert!(words.contains("timeout") && self.content.is_none(), "{}", words);
                    // What is wrong with it itself is told in place of that nothing else is.
                    self.lost = false;
                }
                _ => prop_assert!(false, "{}", words),
            }
        }
        Ok(())
    }
}

fn put(world: &World, content: usize) {
    for (server, name) in SERVERS.iter().flat_map(|server| NAMES.map(|name| (server, name))) {
        let content = content.to_string();
        world.network.server(server).put(CDS, name, &format!("{content} of {server}"), &message(name, &content));
    }
    world.network.settle();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r071_servers_come_and_go_and_nothing_is_taken_away(
        steps in proptest::collection::vec(step(), 1..20),
        last in 0..SERVERS.len(),
        sotw in any::<bool>(),
    ) {
        let protocol = if sotw { Protocol::Sotw } else { Protocol::Delta };
        let world = several(protocol, &[KEEPS; 3]);
        let server = |at: usize| world.network.server(SERVERS[at]);
        let mut content = 0;
        put(&world, content);
        let mut watched: [Option<Watched>; NAMES.len()] = Default::default();
        // Whether every server was there, and spoke, since the beginning.
        let mut good = true;
        for step in steps {
            match step {
                Step::Up(at) => server(at).come_up(),
                Step::Down(at) => server(at).go_down("away"),
                Step::Silent(at, silent) => server(at).be_silent(silent),
                Step::End(at) => server(at).end_streams(),
                Step::Put => {
                    content += 1;
                    put(&world, content);
                }
                Step::Watch(at) => {
                    let new = || Watched { watch: world.client.watch_as(NAMES[at]), content: None, lost: false };
                    watched[at].get_or_insert_with(new);
                }
                Step::Leave(at) => watched[at] = None,
                Step::Pass(seconds) => world.network.pass(Duration::from_secs(seconds)),
            }
            good &= !matches!(step, Step::Down(_) | Step::Silent(_, true) | Step::End(_));
            world.network.settle();
            for watched in watched.iter_mut().flatten() {
                watched.look(good)?;
            }
        }
        // In the end one is there, be it the last. Something new has it asked.
        for at in 0..SERVERS.len() {
            server(at).be_silent(false);
            if at == last { server(at).come_up() } else { server(at).go_down("away") }
        }
        world.network.pass(LONG);
        let (name, newest) = ("new", content + 1);
        server(last).put(CDS, name, "1", &message(name, &newest.to_string()));
        let mut new = Watched { watch: world.client.watch_as(name), content: None, lost: false };
        put(&world, newest);
        world.network.pass(LONG);
        for watched in watched.iter_mut().flatten().chain([&mut new]) {
            watched.look(false)?;
            prop_assert_eq!(watched.content.clone(), Some(newest.to_string()));
            prop_assert!(!watched.lost, "one is there");
        }
        let streams: Vec<_> = (0..SERVERS.len()).filter(|at| server(*at).streams() > 0).collect();
        prop_assert_eq!(streams, [last]);
        // And then all are: the first feeds.
        (0..SERVERS.len()).for_each(|at| server(at).come_up());
        world.network.pass(LONG);
        for watched in watched.iter_mut().flatten() {
            watched.look(true)?;
        }
        let streams: Vec<_> = (0..SERVERS.len()).filter(|at| server(*at).streams() > 0).collect();
        prop_assert_eq!(streams, [0]);
    }
}
