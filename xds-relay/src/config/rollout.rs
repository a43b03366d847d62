//! Who is served what is new before everybody is (`rollout`).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use serde_json::{Value, json};
use xdstp_uri::ResourceName;

use super::fields::{HALT_FIELDS, ROLLOUT_FIELDS, STAGE_FIELDS};
use super::values::{duration, flag};
use super::{NodeField, Origin, OriginKind, State, canonical_authority, rules};
use crate::releases::{Gathered, Halt, OnHalt, Percent, Stage, Stages, Threshold, Types, Who};
use crate::yaml::{self, Error};

/// What the scope of all names is called that no authority is in.
const OLD_STYLE: &str = "old-style";
const SCHEME: &str = "xdstp://";
const SCOPES: &str = "expected xdstp://AUTHORITY, as names have it, or old-style";

const NO_ROLLOUTS: &str = "empty; expected at least one scope, or no such field: then all is served at once";
const NO_FIELDS: &str = "empty; expected what nodes say that are in this stage, such as cluster: canary";
const NO_STATE: &str = "expected state, too: what is stable, frozen or rolled back is kept there over a restart";

/// How what an origin has of a scope becomes a release, and who is served that when.
///
/// ```
/// use std::time::Duration;
/// use xds_relay::config::Rollout;
/// use xds_relay::releases::{OnHalt, Stage, Stages, Who};
///
/// let tenth = Stage { who: Who::Percent("10%".parse()?), hold: Duration::from_secs(300) };
/// let mut rollout = Rollout::new(Some("example.com"), Stages::new([tenth]));
/// rollout.on_halt = OnHalt::Rollback;
/// assert_eq!(rollout.scope(), "xdstp://example.com");
/// # Ok::<(), xds_relay::releases::PercentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rollout {
    /// The authority whose names they are, as parsed names have it; old-style names, if none.
    pub authority: Option<String>,
    /// For how long nothing changes before what there is is a release.
    pub settle: Duration,
    /// Who is served a release before everybody is.
    pub stages: Stages,
    /// When it halts.
    pub halt: Halt,
    /// What becomes of it then.
    pub on_halt: OnHalt,
    /// What is in releases. What is not is served as the origin has it.
    pub types: Types,
}

impl Rollout {
    /// That of an authority, spelled without escapes, or of old-style names: two seconds to settle, and the first refusal halts it.
    pub fn new(authority: Option<&str>, stages: Stages) -> Self {
        Self {
            authority: authority.map(canonical_authority),
            settle: Duration::from_secs(2),
            stages,
            halt: Halt::default(),
            on_halt: OnHalt::default(),
            types: Types::default(),
        }
    }

    /// What its scope is called, here and where its releases are kept.
    pub fn scope(&self) -> String {
        self.authority.as_ref().map_or_else(|| OLD_STYLE.to_owned(), |authority| format!("{SCHEME}{authority}"))
    }

    /// The origin that its names come from.
    pub(super) fn origin<'a>(&self, origins: &'a [Origin], default_origin: &str) -> Option<&'a Origin> {
        let is_own = |authority: &String| Some(canonical_authority(authority)) == self.authority;
        let listed = origins.iter().find(|origin| origin.authorities.iter().any(is_own));
        listed.or_else(|| origins.iter().find(|origin| origin.name == default_origin))
    }

    /// Why that has no such releases, by which field.
    fn asked(&self, origins: &[Origin], default_origin: &str) -> Option<(&'static str, String)> {
        let origin = self.origin(origins, default_origin)?;
        let (scope, name) = (self.scope(), &origin.name);
        match &origin.follow {
            None => matches!(origin.kind, OriginKind::Server { .. }).then(|| {
                (
                    "scope",
                    format!(
                        "`{scope}`: these names come from origin `{name}`, which is asked for what clients want; \
                     expected follow: {{}} at that origin, or a scope of one that has all there is, such as files",
                    ),
                )
            }),
            Some(follow) if follow.types(self.authority.as_deref()) == Types::Gathered(Gathered::default()) => Some((
                "scope",
                format!(
                    "`{scope}`: no collection of `follow` of origin `{name}` has such names; expected one, such as \
                     xdstp://AUTHORITY/envoy.config.cluster.v3.Cluster/*",
                ),
            )),
            Some(_) => (self.types == Types::All).then(|| {
                (
                    "all_types",
                    format!(
                        "origin `{name}` is followed, and released is that of which it says what there is; \
                     expected no such field",
                    ),
                )
            }),
        }
    }
}

/// What all of them must be beside each other and the rest; with where it is said.
pub(super) fn problem(
    rollouts: &[Rollout],
    (origins, default_origin): (&[Origin], &str),
    state: Option<&State>,
) -> Option<(String, String)> {
    if !rollouts.is_empty() && state.is_none() {
        return Some((String::new(), NO_STATE.to_owned()));
    }
    rollouts.iter().enumerate().find_map(|(index, rollout)| {
        let is_same = |other: &Rollout| other.authority == rollout.authority;
        let twice = rollouts.iter().take(index).position(is_same);
        let twice = twice.map(|other| format!("`{}`: the scope of rollout[{other}] already", rollout.scope()));
        let twice = twice.map(|problem| ("scope", problem));
        let of_origin = twice.or_else(|| rollout.asked(origins, default_origin));
        let of_origin = of_origin.map(|(field, problem)| (format!("[{index}].{field}"), problem));
        let of_stages = || {
            let (stage, field, problem) = stage_problem(&rollout.stages)?;
            Some((format!("[{index}].stages[{stage}].{field}"), problem))
        };
        of_origin.or_else(of_stages)
    })
}

/// A stage that nobody is in who is in none before, as far as that can be said: which, by which of its fields, and why.
fn stage_problem(stages: &Stages) -> Option<(usize, &'static str, String)> {
    let mut largest: Option<Percent> = None;
    stages.iter().enumerate().find_map(|(at, stage)| match &stage.who {
        Who::Match(fields) => fields
            .keys()
            .find_map(|field| rules::part(field).err())
            .map(|problem| (at, "match", problem))
            .or_else(|| fields.is_empty().then(|| (at, "match", NO_FIELDS.to_owned()))),
        Who::Percent(percent) => {
            let before = largest.replace(*percent).filter(|before| before >= percent)?;
            Some((
                at,
                "percent",
                format!("`{percent}`: expected more than the {before} of a stage before it: stages are nested"),
            ))
        }
    })
}

/// The list, as far as it can be read by itself.
pub(super) fn rollouts(list: &yaml::Node) -> Result<Vec<Rollout>, Error> {
    let rollouts = list.items(rollout)?;
    if rollouts.is_empty() { list.refuse(NO_ROLLOUTS) } else { Ok(rollouts) }
}

fn rollout(node: &yaml::Node) -> Result<Rollout, Error> {
    node.expect_fields(ROLLOUT_FIELDS)?;
    let authority = node.required_field("scope", SCOPES, scope)?;
    let mut rollout = Rollout { authority, ..Rollout::new(None, Stages::default()) };
    if let Some(settle) = node.field("settle", duration)? {
        rollout.settle = settle;
    }
    if let Some(stages) = node.field("stages", |list| list.items(stage))? {
        rollout.stages = Stages::new(stages);
    }
    if let Some(halt) = node.field("halt", halt)? {
        rollout.halt = halt;
    }
    if let Some(on_halt) = node.field("on_halt", on_halt)? {
        rollout.on_halt = on_halt;
    }
    if node.field("all_types", flag)? == Some(true) {
        rollout.types = Types::All;
    }
    Ok(rollout)
}

/// An authority as names have it, or none.
fn scope(node: &yaml::Node) -> Result<Option<String>, Error> {
    let text = node.text()?;
    let Some(authority) = text.strip_prefix(SCHEME) else {
        return if text == OLD_STYLE { Ok(None) } else { node.refuse(format!("`{text}`: {SCOPES}")) };
    };
    rules::authority(authority).or_else(|problem| node.refuse(problem))?;
    match ResourceName::parse(&format!("{text}/T")) {
        Ok(name) => Ok(Some(name.authority().unwrap_or_default().to_owned())),
        Err(error) => node.refuse(format!("`{text}`: {error}")),
    }
}

fn stage(node: &yaml::Node) -> Result<Stage, Error> {
    node.expect_fields(STAGE_FIELDS)?;
    let percent = node.field("percent", parsed::<Percent>)?.map(Who::Percent);
    let fields = node.field("match", fields)?.map(Who::Match);
    let who = match (fields, percent) {
        (Some(who), None) | (None, Some(who)) => who,
        (None, None) => return node.refuse("expected match or percent: who is in this stage"),
        (Some(_), Some(_)) => return node.refuse("expected match or percent, and not both; stages are nested"),
    };
    Ok(Stage { who, hold: node.field("hold", duration)?.unwrap_or_default() })
}

fn fields(node: &yaml::Node) -> Result<BTreeMap<NodeField, String>, Error> {
    if node.entries().is_empty() {
        return node.refuse(NO_FIELDS);
    }
    let mut fields = BTreeMap::new();
    for (key, value) in node.entries() {
        let name = key.text.as_str();
        let text = node.field(name, |value| value.text().map(str::to_owned))?.unwrap_or_default();
        let field = name.parse().or_else(|expected| value.refuse(format!("`{name}`: {expected}")))?;
        rules::part(&field).or_else(|problem| value.refuse(problem))?;
        fields.insert(field, text);
    }
    Ok(fields)
}

fn halt(node: &yaml::Node) -> Result<Halt, Error> {
    node.expect_fields(HALT_FIELDS)?;
    let mut halt = Halt::default();
    for (key, threshold) in [("rejected", &mut halt.rejected), ("silent", &mut halt.silent), ("lost", &mut halt.lost)] {
        if let Some(said) = node.field(key, parsed::<Threshold>)? {
            *threshold = said;
        }
    }
    halt.check = node.field("check", check)?;
    Ok(halt)
}

fn check(node: &yaml::Node) -> Result<Uri, Error> {
    let text = node.text()?;
    let uri = text.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == Some("http"));
    let uri = uri.filter(|uri| uri.authority().is_some_and(|of| !of.host().is_empty() && !of.as_str().contains('@')));
    uri.map_or_else(
        || node.refuse(format!("`{text}`: expected http://HOST:PORT/PATH, such as http://127.0.0.1:9000/ok")),
        Ok,
    )
}

fn on_halt(node: &yaml::Node) -> Result<OnHalt, Error> {
    match node.text()? {
        "hold" => Ok(OnHalt::Hold),
        "rollback" => Ok(OnHalt::Rollback),
        other => node.refuse(format!("`{other}`: expected hold or rollback")),
    }
}

fn parsed<T: FromStr<Err: Display>>(node: &yaml::Node) -> Result<T, Error> {
    let text = node.text()?;
    text.parse().or_else(|error| node.refuse(format!("`{text}`: {error}")))
}

/// As a file has it.
pub(super) fn written(rollout: &Rollout, time: fn(Duration) -> Value) -> Value {
    let Rollout { settle, stages, halt, on_halt, types, .. } = rollout;
    let stage = |Stage { who, hold }: &Stage| {
        let (key, who) = match who {
            Who::Match(fields) => {
                let said = fields.iter().map(|(field, text)| (field.to_string(), json!(text)));
                ("match", Value::Object(said.collect()))
            }
            Who::Percent(percent) => ("percent", json!(percent.to_string())),
        };
        json!({ key: who, "hold": time(*hold) })
    };
    let mut written = json!({
        "scope": rollout.scope(),
        "settle": time(*settle),
        "stages": stages.iter().map(stage).collect::<Vec<_>>(),
        "halt": {
            "rejected": halt.rejected.to_string(),
            "silent": halt.silent.to_string(),
            "lost": halt.lost.to_string(),
        },
        "on_halt": match on_halt {
            OnHalt::Hold => "hold",
            OnHalt::Rollback => "rollback",
        },
        "all_types": *types == Types::All,
    });
    if let (Some(check), Some(Value::Object(halt))) = (&halt.check, written.get_mut("halt")) {
        halt.insert("check".to_owned(), json!(check.to_string()));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const ORIGINS: &str = "origins: [{ name: files, files: ., authorities: [a.example, 'x%y'] }, { name: cp, server: 'a:1', \
                           authorities: [b.example] }]\nstate: { path: . }\n";

    fn config(rollout: &str) -> Result<Config, String> {
        Config::parse("relay.yaml", &format!("{ORIGINS}rollout: {rollout}\n")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_read_is_written() {
        let read = config("[{ scope: old-style }]").unwrap().rollout;
        assert_eq!(read, [Rollout::new(None, Stages::default())]);
        let all = "[{ scope: 'xdstp://a.example', settle: 5s, on_halt: rollback, all_types: true, halt: { rejected: 3, silent: 2%, \
                   lost: never, check: 'http://127.0.0.1:9000/ok?a=b' }, stages: [{ match: { metadata.canary: true, locality.zone: a }, hold: 1m }, { percent: 0.5 }, \
                   { percent: 100% }] }, { scope: old-style }, { scope: 'xdstp://x%25y' }]";
        let config = config(all).unwrap();
        let [first, _, third] = config.rollout.as_slice() else { panic!("three") };
        assert_eq!((first.authority.as_deref(), third.authority.as_deref()), (Some("a.example"), Some("x%25y")));
        assert_eq!((first.settle.as_secs(), first.on_halt, first.types), (5, OnHalt::Rollback, Types::All));
        assert_eq!((first.halt.rejected, first.halt.lost), (Threshold::Count(3), Threshold::Never));
        let stages: Vec<_> = first.stages.iter().map(|stage| (stage.hold.as_secs(), stage.who.clone())).collect();
        let canary = [("metadata.canary", "true"), ("locality.zone", "a")];
        let canary = canary.map(|(field, text)| (field.parse().unwrap(), text.to_owned()));
        let percent = |text: &str| Who::Percent(text.parse().unwrap());
        assert_eq!(stages, [(60, Who::Match(canary.into())), (0, percent("0.5")), (0, percent("100"))]);
        assert_eq!(serde_json::from_value::<Config>(config.to_value().unwrap()).unwrap(), config);
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn an_error_says_where_and_what_was_expected() {
        let stage = |stage: &str| format!("[{{ scope: old-style, stages: [{stage}] }}]");
        for (rollout, problem) in [
            ("[]", "3:10: rollout: empty; expected at least one scope"),
            ("[{}]", "3:11: rollout[0].scope: missing; expected xdstp://AUTHORITY"),
            ("[{ scope: a.example }]", "3:20: rollout[0].scope: `a.example`: expected xdstp://AUTHORITY"),
            ("[{ scope: 'xdstp://a/b' }]", "3:20: rollout[0].scope: `a/b`: expected an authority alone"),
            (
                "[{ scope: old-style }, { scope: old-style }]",
                "3:42: rollout[1].scope: `old-style`: the scope of rollout[0]",
            ),
            (
                "[{ scope: 'xdstp://b.example' }]",
                "3:20: rollout[0].scope: `xdstp://b.example`: these names come from origin `cp`, which is asked for what clients \
                 want; expected follow: {} at that origin",
            ),
            (
                "[{ scope: old-style, halt: { rejected: 0 } }]",
                "3:49: rollout[0].halt.rejected: `0`: expected a number from 1",
            ),
            ("[{ scope: old-style, halt: { chek: x } }]", "3:39: rollout[0].halt.chek: unknown field `chek`"),
            (
                "[{ scope: old-style, halt: { check: x } }]",
                "3:46: rollout[0].halt.check: `x`: expected http://HOST:PORT",
            ),
            (
                "[{ scope: old-style, halt: { check: 'https://a/b' } }]",
                "3:46: rollout[0].halt.check: `https://a/b`: expected http://HOST:PORT",
            ),
            ("[{ scope: old-style, on_halt: stop }]", "3:40: rollout[0].on_halt: `stop`: expected hold or rollback"),
            (&stage("{}"), "3:40: rollout[0].stages[0]: expected match or percent"),
            (
                &stage("{ percent: 5, match: { id: a } }"),
                "3:40: rollout[0].stages[0]: expected match or percent, and not both",
            ),
            (&stage("{ percent: 101 }"), "3:51: rollout[0].stages[0].percent: `101`: expected a percentage"),
            (
                &stage("{ percent: 5 }, { percent: 5% }"),
                "3:67: rollout[0].stages[1].percent: `5%`: expected more than the 5%",
            ),
            (&stage("{ match: {} }"), "3:49: rollout[0].stages[0].match: empty; expected what nodes say"),
            (&stage("{ match: { zone: a } }"), "rollout[0].stages[0].match: `zone`: expected id, cluster"),
            (&stage("{ match: { locality: a } }"), "rollout[0].stages[0].match: `locality` is three"),
            (&stage("{ match: { id: [a] } }"), "rollout[0].stages[0].match.id: expected a single value"),
        ] {
            let error = config(rollout).unwrap_err();
            assert!(error.contains(problem), "{rollout}: {error}");
        }
        let error = Config::parse("relay.yaml", "origins: [{ name: f, files: . }]\nrollout: [{ scope: old-style }]")
            .unwrap_err();
        assert_eq!(error.to_string(), format!("relay.yaml:2:10: rollout: {NO_STATE}"));
    }

    #[test]
    fn what_a_file_may_not_say_a_program_may_not_say_either() {
        let good = config("[{ scope: old-style }]").unwrap();
        let problem = |change: &dyn Fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(problem(&|config| config.state = None), format!("rollout: {NO_STATE}"));
        let stages = |all: &[Who]| Stages::new(all.iter().map(|who| Stage { who: who.clone(), hold: Duration::ZERO }));
        let nobody = stages(&[Who::Match(BTreeMap::new())]);
        let error = problem(&|config| config.rollout[0].stages = nobody.clone());
        assert_eq!(error, format!("rollout[0].stages[0].match: {NO_FIELDS}"));
        let place = stages(&[Who::Match([(NodeField::Locality, "a".to_owned())].into())]);
        let error = problem(&|config| config.rollout[0].stages = place.clone());
        assert!(error.starts_with("rollout[0].stages[0].match: `locality` is three"), "{error}");
        let error = problem(&|config| config.rollout[0].authority = Some("b.example".to_owned()));
        assert!(
            error.starts_with("rollout[0].scope: `xdstp://b.example`: these names come from origin `cp`"),
            "{error}"
        );
    }
}
