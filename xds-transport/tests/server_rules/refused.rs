//! What is sent of a wildcard or glob that is refused, because somebody asks for it by its name: beside it is told why the rest is
//! not, or who is sent it would take it for the answer (rules 118, 150).

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Options, ResourceError};

use crate::support::{CLUSTERS, Client, ENDPOINTS, Server, payload, seconds};

const GLOB: &str = "xdstp://x/T/d/*";
const MEMBER: &str = "xdstp://x/T/d/1";
const OTHER: &str = "xdstp://x/T/e/*";

const FEATURES: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];

const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const INTERNAL: i32 = 13;

/// Of a wildcard and of a glob, of which somebody asks for a member by its name: the type, its letter, what is asked for, and the
/// member.
fn cases() -> impl Iterator<Item = (&'static str, char, &'static str, &'static str)> {
    [(CLUSTERS, 'C'), (ENDPOINTS, 'E')]
        .into_iter()
        .flat_map(|(of, letter)| [("*", "a"), (GLOB, MEMBER)].map(|(asked, member)| (of, letter, asked, member)))
}

/// A relay that has a member because somebody asks for its name, and was told that the rest is refused.
fn refusing(of: &str, asked: &str, member: &str) -> Server {
    let mut server = Server::relay();
    Client::delta().subscribe(&mut server, of, &[member, asked]);
    server.put(of, member, "1");
    server.fail(of, asked, PERMISSION_DENIED);
    server
}

#[test]
fn rule_118_a_refusal_that_is_renewed_is_told_beside_what_is_sent_and_not_once_more() {
    for (of, letter, asked, member) in cases() {
        let mut server = refusing(of, asked, member);
        let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
        // A stream that begins takes what comes first for the answer.
        let told = |version: u32, code: i32| vec![format!("{letter} {member}@{version} !{asked}:{code}")];
        assert_eq!(delta.subscribe(&mut server, of, &[asked]), told(1, PERMISSION_DENIED));
        let mut first = sotw.names(&mut server, of, &[asked]);
        first.extend(sotw.ack(&mut server, of));
        // To who holds nothing of what is not answered, a wildcard's state is not written (rule 151).
        if of != CLUSTERS || asked != "*" {
            assert_eq!(first, told(1, PERMISSION_DENIED), "{of} {asked}");
        }
        server.fail(of, asked, INTERNAL);
        server.put(of, member, "2");
        assert_eq!(delta.poll(&mut server), told(2, INTERNAL), "{of} {asked}");
        let mut second = sotw.poll(&mut server);
        second.extend(sotw.ack(&mut server, of));
        assert_eq!(second, told(2, INTERNAL), "{of} {asked}");
    }
}

/// That the client asks for its name, too, is known to who told the relay, and not to who was asked by it.
#[test]
fn rule_118_what_is_sent_for_its_name_comes_with_the_error_of_its_collection() {
    for (of, letter, asked, member) in cases() {
        let mut server = refusing(of, asked, member);
        let mut client = Client::delta();
        let told = client.subscribe(&mut server, of, &[asked, member]);
        assert_eq!(told, [format!("{letter} {member}@1 !{asked}:7")]);
        server.put(of, member, "2");
        assert_eq!(client.poll(&mut server), [format!("{letter} {member}@2 !{asked}:7")]);
    }
}

/// To who hears it, that there is no such glob is an answer each time. A full state speaks of all that is asked for.
#[test]
fn rule_117_what_is_not_sent_of_is_not_refused_again_but_in_a_full_state_nor_what_is_not_there() {
    for of in [CLUSTERS, ENDPOINTS] {
        let letter = if of == CLUSTERS { 'C' } else { 'E' };
        for code in [NOT_FOUND, INTERNAL] {
            let mut server = refusing(of, GLOB, MEMBER);
            let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
            delta.subscribe(&mut server, of, &[GLOB, OTHER]);
            sotw.names(&mut server, of, &[GLOB, OTHER]);
            sotw.ack(&mut server, of);
            server.fail(of, OTHER, code);
            delta.poll(&mut server);
            sotw.poll(&mut server);
            sotw.ack(&mut server, of);
            server.put(of, MEMBER, "2");
            let told = [format!("{letter} {MEMBER}@2 !{GLOB}:7")];
            assert_eq!(delta.poll(&mut server), told);
            let of_state = (of == CLUSTERS && code == INTERNAL).then(|| format!(" !{OTHER}:{code}"));
            assert_eq!(sotw.poll(&mut server), [told.concat() + &of_state.unwrap_or_default()]);
        }
    }
}

/// It is sent whole, as it was.
#[test]
fn rule_114_over_sotw_what_is_refreshed_of_a_collection_that_is_refused_comes_with_its_error() {
    for (of, _, asked, member) in cases() {
        let mut server = Server::relay();
        let frame = Frame::of_message(&of.into(), &payload(member, "1"));
        Client::delta().subscribe(&mut server, of, &[member, asked]);
        server.put_frame(of, member, "1", frame.with_wrapper(Bytes::new(), Some(seconds(30)), false));
        let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
        client.names(&mut server, of, &[asked]);
        client.settle(&mut server);
        server.fail(of, asked, PERMISSION_DENIED);
        client.settle(&mut server);
        server.now += seconds(10);
        let told = client.poll(&mut server);
        if of != CLUSTERS || asked != "*" {
            assert!(told.len() == 1 && told[0].ends_with(&format!("!{asked}:7")), "{of} {asked}: {told:?}");
        }
    }
}

/// Each of them may bring an error of its own, as long as a message is.
#[test]
fn rule_133_a_response_has_no_more_errors_beside_its_resources_than_it_has_room_for() {
    let globs: Vec<_> = (0..300).map(|dir| format!("xdstp://x/T/{dir}/*")).collect();
    let members: Vec<_> = (0..300).map(|dir| format!("xdstp://x/T/{dir}/1")).collect();
    let names = |names: &[String]| names.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let (globs, members) = (names(&globs), names(&members));
    let (globs, members): (Vec<_>, Vec<_>) = (globs.split(' ').collect(), members.split(' ').collect());
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::relay();
        Client::delta().subscribe(&mut server, ENDPOINTS, &[&globs[..], &members[..]].concat());
        let mut edit = server.cache.edit(server.now);
        for glob in &globs {
            edit.fail(&ENDPOINTS.into(), &glob.parse().unwrap(), ResourceError::new(7, "x".repeat(1024)));
        }
        let _ = edit.finish();
        members.iter().for_each(|member| server.put(ENDPOINTS, member, "1"));
        let mut told = told(&mut client, &mut server, &globs);
        while let more = client.settle(&mut server)
            && !more.is_empty()
        {
            told.extend(more);
        }
        let count = |of: char| told.iter().map(|line| line.matches(of).count()).sum::<usize>();
        assert_eq!((count('@'), count('!')), (300, 300));
        assert!(told.iter().all(|line| line.matches('!').count() <= 64));
    }
}

/// So it is of what is told once more because of how long it lives.
#[test]
fn rule_133_what_is_refreshed_has_no_more_errors_beside_it_than_there_is_room_for() {
    let (globs, members): (Vec<_>, Vec<_>) =
        (0..200).map(|dir| (format!("xdstp://x/T/{dir}/*"), format!("xdstp://x/T/{dir}/1"))).unzip();
    let names: Vec<_> = globs.iter().chain(&members).map(String::as_str).collect();
    let (mut server, mut client) = (Server::relay(), Client::delta().with_features(&FEATURES));
    Client::delta().subscribe(&mut server, ENDPOINTS, &names);
    globs.iter().for_each(|glob| server.fail(ENDPOINTS, glob, PERMISSION_DENIED));
    for member in &members {
        let frame = Frame::of_message(&ENDPOINTS.into(), &payload(member, "1"));
        server.put_frame(ENDPOINTS, member, "1", frame.with_wrapper(Bytes::new(), Some(seconds(30)), false));
    }
    client.subscribe(&mut server, ENDPOINTS, &names[..globs.len()]);
    client.settle(&mut server);
    for member in &members {
        server.cache.value_mut(&ENDPOINTS.into(), &member.parse().unwrap()).unwrap().refresh(None, None);
    }
    server.now += seconds(10);
    let mut told = client.poll(&mut server);
    told.extend(client.settle(&mut server));
    let counts: Vec<_> = told.iter().map(|line| [line.matches('@').count(), line.matches('!').count()]).collect();
    assert_eq!(counts, [[64; 2], [64; 2], [64; 2], [8; 2]]);
}

/// They are cut where a collection is refused, and no more than the collections that they are of ask for.
#[test]
fn rule_133_a_response_is_as_long_as_it_may_be_though_names_have_errors_and_directories_take_turns() {
    let dirs = 100;
    let members = |dirs: usize| (0..dirs).flat_map(|at| [format!("xdstp://x/T/{at}/1"), format!("e{at}")]);
    // Each name has a glob of its own, and one name has an error.
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::relay();
        let globs: Vec<_> = (0..dirs).map(|dir| format!("xdstp://x/T/{dir}/*")).collect();
        let globs: Vec<_> = globs.iter().map(String::as_str).chain(["*", "no"]).collect();
        told(&mut client, &mut server, &globs);
        server.fail(ENDPOINTS, "no", PERMISSION_DENIED);
        client.settle(&mut server);
        members(dirs).for_each(|member| server.put(ENDPOINTS, &member, "1"));
        assert_eq!(client.poll(&mut server).len(), 1, "{:?}", client.stream.protocol());
    }
    // What is of two globs and of none comes in turn, and the wildcard that has it is refused.
    for mut client in [Client::delta(), Client::sotw()] {
        let mut options = Options::default();
        (options.authoritative, options.wildcard_covers_xdstp) = (false, true);
        let mut server = Server::new(options);
        told(&mut client, &mut server, &["*"]);
        server.fail(ENDPOINTS, "*", PERMISSION_DENIED);
        client.settle(&mut server);
        for at in 0..dirs {
            for member in [format!("xdstp://x/T/d/{at}"), format!("xdstp://x/T/e/{at}"), format!("e{at}")] {
                server.put(ENDPOINTS, &member, "1");
            }
        }
        let told = client.poll(&mut server);
        assert_eq!(told.len(), 1, "{:?}", client.stream.protocol());
        assert_eq!((told[0].matches('@').count(), told[0].matches('!').count()), (3 * dirs, 1));
    }
}

/// What one client is refused, another's responses are not cut for.
#[test]
fn rule_133_who_asks_for_no_collections_is_told_in_as_few_responses_whatever_others_are_refused() {
    let dirs = 300;
    let members: Vec<_> = (0..dirs).map(|at| format!("xdstp://x/T/{at}/1")).collect();
    let members: Vec<_> = members.iter().map(String::as_str).collect();
    let few: Vec<_> = members.iter().copied().chain(["*", OTHER]).collect();
    for asked in [&members, &few] {
        for mut client in [Client::delta(), Client::sotw()] {
            let mut server = refusing(ENDPOINTS, GLOB, MEMBER);
            told(&mut client, &mut server, asked);
            members.iter().for_each(|member| server.put(ENDPOINTS, member, "1"));
            let told = client.poll(&mut server);
            let puts = told.iter().map(|line| line.matches('@').count()).collect::<Vec<_>>();
            assert_eq!(puts, [dirs], "{:?}", client.stream.protocol());
            assert!(!told.concat().contains('!'));
        }
    }
}

/// What it is told first, whatever that speaks.
fn told(client: &mut Client, server: &mut Server, names: &[&str]) -> Vec<String> {
    match client.stream.protocol() {
        xds_transport::Protocol::Delta => client.subscribe(server, ENDPOINTS, names),
        xds_transport::Protocol::Sotw => client.names(server, ENDPOINTS, names),
    }
}
