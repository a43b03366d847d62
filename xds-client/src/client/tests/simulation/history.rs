//! What happens in a history: drawn from its seed before it runs, so that steps can be left out.

use super::super::lists::LISTS;
use super::super::{CDS, Protocol, RDS, xdstp};
use super::documents::Doing;
use super::random::Random;
use super::server::{Has, Key};

/// The authorities: the first is that of old-style names, whose servers are at the top.
pub(super) const AUTHORITIES: [&str; 4] = ["", "a", "b", "c"];
pub(super) const SERVERS: usize = 4;
/// How many watches there are at most.
pub(super) const SLOTS: usize = 6;
/// Names that are watched one by one.
const NAMES: [&str; 3] = ["x", "y", "z"];
const STEPS: usize = 50;
/// `NOT_FOUND`, `PERMISSION_DENIED`, `UNAVAILABLE`.
const CODES: [i32; 3] = [5, 7, 14];

/// What differs between histories.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) protocol: Protocol,
    /// The servers of each authority; none: those at the top.
    pub(super) lists: Vec<Option<Vec<usize>>>,
    /// `fail_on_data_errors`, and `resource_timer_is_transient_error`.
    pub(super) drops: bool,
    pub(super) waits: bool,
    pub(super) latencies: [u64; SERVERS],
    /// How many messages one direction of a link bears.
    pub(super) window: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// In place of another, and looked at at once or not.
    Watch(usize, Target, bool),
    Leave(usize),
    Look(usize),
    Put(usize, Key, Has),
    Remove(usize, Key),
    Down(usize),
    Up(usize),
    Silent(usize, bool),
    /// Its streams end.
    Cut(usize),
    Slow(usize, u64),
    /// Who has nothing to watch lets go.
    Sweep,
    Pass(u64),
    /// Of a document of a server of HTTP.
    Document(usize, Doing),
    /// Every server is there, and all comes to rest.
    Heal,
}

/// What is watched.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    One(Key),
    /// One, or another while nobody can be asked for that (`#alt=`).
    Or(Key, String),
    /// A glob.
    All(Key),
    /// A list, whose members may be elsewhere.
    List(Key),
    /// Nobody has it.
    Stranger,
}

impl Target {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::One(key) | Self::Or(key, _) | Self::All(key) | Self::List(key) => key.clone(),
            Self::Stranger => (CDS, xdstp("stranger", CDS, "x")),
        }
    }

    /// The type of what it yields.
    pub(super) fn of(&self) -> &'static str {
        if let Self::List(_) = self { CDS } else { self.key().0 }
    }

    /// What a client is asked for.
    pub(super) fn asked(&self) -> Key {
        match self {
            Self::Or((_, name), other) => (CDS, format!("{name}#alt={other}")),
            other => (other.of(), other.key().1),
        }
    }

    fn random(random: &mut Random, setup: &Setup, keys: &[Key]) -> Self {
        match random.below(40) {
            0 => Self::Stranger,
            1..20 => Self::leading(random, setup),
            _ => Self::One(random.pick(keys)),
        }
    }

    /// What is found elsewhere, or is several.
    fn leading(random: &mut Random, setup: &Setup) -> Self {
        let (first, other) = (elsewhere(random, "m"), elsewhere(random, "m").1);
        match random.below(4) {
            0 if first.1 != other => Self::Or(first, other),
            1 if setup.protocol == Protocol::Delta => Self::All((CDS, name_of(1 + random.below(2), CDS, "g/*"))),
            2 => Self::List(list(random)),
            _ => Self::One(elsewhere(random, "r")),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) setup: Setup,
    pub(super) steps: Vec<Step>,
}

impl Setup {
    fn random(random: &mut Random) -> Self {
        let mut list = || {
            let mut all: Vec<usize> = (0..SERVERS).collect();
            let len = 1 + random.below(3);
            (0..len).map(|_| all.remove(random.below(all.len()))).collect::<Vec<_>>()
        };
        let mut lists: Vec<_> = AUTHORITIES.iter().map(|_| Some(list())).collect();
        if random.one_in(2) {
            lists[3] = None;
        }
        Self {
            protocol: if random.one_in(3) { Protocol::Sotw } else { Protocol::Delta },
            lists,
            drops: random.one_in(3),
            waits: random.one_in(3),
            latencies: std::array::from_fn(|_| random.pick(&[0, 0, 20, 700])),
            window: random.pick(&[1, 2, 16]),
        }
    }

    pub(super) fn list(&self, authority: usize) -> Vec<usize> {
        let top = self.lists[0].clone().unwrap_or_default();
        self.lists.get(authority).map_or(Vec::new(), |list| list.clone().unwrap_or(top))
    }

    /// How many seconds a server may be silent of a name.
    pub(super) fn patience(&self) -> u64 {
        if self.waits { 30 } else { 15 }
    }
}

impl History {
    pub(super) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup::random(&mut random);
        // Few names meet more often: more happens to each.
        let keys: Vec<_> = (0..random.pick(&[2, 4, 8])).map(|_| key(&mut random)).collect();
        let len = STEPS / 2 + random.below(STEPS);
        // In every other history most is of what leads elsewhere.
        let leads = seed % 2 == 1;
        let mut steps = if leads { members(&setup) } else { Vec::new() };
        steps.extend((0..len).map(|at| match leads && random.one_in(2) {
            true if random.one_in(3) => Step::Watch(random.below(SLOTS), Target::leading(&mut random, &setup), false),
            true if random.one_in(2) => Step::Look(random.below(SLOTS)),
            true => put_elsewhere(&mut random, &setup, at),
            false => step(&mut random, &setup, &keys, at),
        }));
        if seed.is_multiple_of(3) {
            insert_documents(&mut steps, seed);
        }
        steps.push(Step::Heal);
        Self { setup, steps }
    }

    /// The shortest history that still fails, by leaving out steps.
    pub(super) fn shrunk(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        let mut chunk = least.steps.len();
        while chunk > 0 {
            let (mut at, before) = (0, least.steps.len());
            while at < least.steps.len() {
                let mut shorter = least.clone();
                shorter.steps.drain(at..(at + chunk).min(least.steps.len()));
                if fails(&shorter) {
                    least = shorter;
                } else {
                    at += chunk;
                }
            }
            chunk = if chunk == 1 && least.steps.len() < before { 1 } else { chunk / 2 };
        }
        least
    }
}

fn step(random: &mut Random, setup: &Setup, keys: &[Key], at: usize) -> Step {
    let key = random.pick(keys);
    let of = authority_of(&key.1);
    let list = setup.list(of);
    // Mostly one that is asked.
    let server = if random.one_in(8) { random.below(SERVERS) } else { random.pick(&list) };
    match random.below(100) {
        0..16 => Step::Watch(random.below(SLOTS), Target::random(random, setup, keys), random.one_in(4)),
        16..20 => Step::Leave(random.below(SLOTS)),
        20..32 => Step::Look(random.below(SLOTS)),
        32..40 => put_elsewhere(random, setup, at),
        40..53 => {
            let text = match random.below(6) {
                0 => format!("bad {at}"),
                // Others may have the same.
                1 | 2 => format!("common {}", random.below(2)),
                _ => format!("{at} of {server}"),
            };
            Step::Put(server, key, Has::Text(text))
        }
        53..57 => Step::Remove(server, key),
        57..60 => Step::Put(server, key, Has::Error(random.pick(&CODES))),
        60..68 => Step::Down(server),
        68..74 => Step::Up(random.below(SERVERS)),
        74..77 => Step::Silent(server, true),
        77..80 => Step::Silent(random.below(SERVERS), false),
        80..83 => Step::Cut(server),
        83..85 => Step::Slow(server, random.pick(&[0, 20, 700, 4000])),
        85..86 => Step::Sweep,
        86..98 => Step::Pass(random.pick(&[1, 100, 1000, 5000, 16_000, 70_000])),
        _ => Step::Heal,
    }
}

/// Documents have a chance of their own: what else is drawn is as it is without.
fn insert_documents(steps: &mut Vec<Step>, seed: u64) {
    let mut random = Random::new(!seed);
    for at in 0..STEPS {
        let (document, doing) = Doing::random(&mut random, at);
        steps.insert(random.below(steps.len() + 1), Step::Document(document, doing));
    }
}

/// Every server has what others lead to.
fn members(setup: &Setup) -> Vec<Step> {
    let names = [1, 2].into_iter().flat_map(|of| ["m0", "m1"].map(|id| (of, (CDS, name_of(of, CDS, id)))));
    let of_servers = names.flat_map(|(of, key)| setup.list(of).into_iter().map(move |server| (server, key.clone())));
    of_servers
        .map(|(server, key)| Step::Put(server, key.clone(), Has::Text(format!("{} of {server}", key.1))))
        .collect()
}

/// What members and redirects are of: of a list, of a glob, or by itself.
fn put_elsewhere(random: &mut Random, setup: &Setup, at: usize) -> Step {
    let (key, has) = match random.below(4) {
        0 => {
            let members: std::collections::BTreeSet<_> =
                (0..random.below(3)).map(|_| elsewhere(random, "m").1).collect();
            (list(random), Has::List(members.into_iter().collect()))
        }
        1 => (elsewhere(random, "r"), Has::Redirect(elsewhere(random, "m").1)),
        2 => (elsewhere(random, "g/"), Has::Text(format!("{at}"))),
        _ => (elsewhere(random, "m"), Has::Text(format!("{at}"))),
    };
    // Mostly the first, which mostly counts; of members of globs others have some that it has not.
    let list = setup.list(authority_of(&key.1));
    let server = if random.one_in(2) && !key.1.contains("/g/") { list[0] } else { random.pick(&list) };
    if random.one_in(6) { Step::Remove(server, key) } else { Step::Put(server, key, has) }
}

/// Few meet more often.
fn elsewhere(random: &mut Random, id: &str) -> Key {
    let id = if id == "r" { id.to_owned() } else { format!("{id}{}", random.below(2)) };
    (CDS, name_of(1 + random.below(2), CDS, &id))
}

fn list(random: &mut Random) -> Key {
    (LISTS, name_of(1 + random.below(2), LISTS, "l"))
}

/// Whether it may lead elsewhere.
pub(super) fn may_redirect(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|id| id.starts_with('r'))
}

fn key(random: &mut Random) -> Key {
    if random.one_in(4) {
        return elsewhere(random, "r");
    }
    let authority = random.below(AUTHORITIES.len());
    let type_url = random.pick(&[CDS, CDS, RDS]);
    (type_url, name_of(authority, type_url, random.pick(&NAMES)))
}

pub(super) fn name_of(authority: usize, type_url: &str, id: &str) -> String {
    if authority == 0 { id.to_owned() } else { xdstp(AUTHORITIES[authority], type_url, id) }
}

pub(super) fn authority_of(name: &str) -> usize {
    let authority = name.strip_prefix("xdstp://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    AUTHORITIES.iter().position(|known| *known == authority).unwrap_or(AUTHORITIES.len())
}

/// Whether a program refuses it.
pub(super) fn is_bad(text: &str) -> bool {
    text.starts_with("bad")
}

/// Whether it says nothing of what there was.
pub(super) fn passes(code: i32) -> bool {
    ![5, 7].contains(&code)
}

pub(super) fn uri_of(server: usize) -> String {
    format!("s{server}:1")
}

pub(super) fn server_at(uri: &str) -> usize {
    (0..SERVERS).find(|server| uri_of(*server) == uri).unwrap()
}
