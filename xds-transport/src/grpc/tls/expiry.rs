//! Saying in time that certificates expire.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use crate::grpc::tls::validity::{NEVER_GOOD, Role, Stage, Validity};

/// Says of certificates that their end is near: each [stage](Stage) once, and of several that have passed the last one. It knows no
/// clock, and remembers only what it was shown last.
///
/// ```
/// use std::time::SystemTime;
/// use xds_transport::grpc::tls::{ExpiryWatch, ServerTls};
///
/// /// To be called every so often.
/// fn look(watch: &mut ExpiryWatch, tls: &ServerTls) {
///     for reminder in watch.look(tls.validity(), SystemTime::now()) {
///         eprintln!("{reminder}");
///     }
/// }
/// # look(&mut ExpiryWatch::default(), &ServerTls::from_config(config()));
/// # fn config() -> rustls::ServerConfig {
/// #     let builder = rustls::ServerConfig::builder_with_provider(xds_transport::grpc::tls::provider());
/// #     let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
/// #     builder.with_cert_resolver(std::sync::Arc::new(rustls::server::ResolvesServerCertUsingSni::new()))
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ExpiryWatch {
    /// Up to which stage all was said.
    said: BTreeMap<Validity, Stage>,
}

/// What is to be said of a certificate: its `Display` is a line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reminder {
    /// Of which.
    pub certificate: Validity,
    /// How near its end is: never [`Good`](Stage::Good).
    pub stage: Stage,
    /// When it is said.
    pub now: SystemTime,
}

impl ExpiryWatch {
    /// What is to be said now, of these certificates: all that are in use.
    pub fn look(&mut self, certificates: impl IntoIterator<Item = Validity>, now: SystemTime) -> Vec<Reminder> {
        let before = std::mem::take(&mut self.said);
        let mut reminders = Vec::new();
        for certificate in certificates {
            let (stage, said) = (certificate.stage(now), before.get(&certificate).copied());
            // A clock that goes back makes nothing news.
            if stage != Stage::Good && said.is_none_or(|said| stage > said) && !self.said.contains_key(&certificate) {
                reminders.push(Reminder { certificate: certificate.clone(), stage, now });
            }
            self.said.insert(certificate, said.map_or(stage, |said| said.max(stage)));
        }
        reminders
    }
}

impl Reminder {
    /// Whether peers refuse the certificate already.
    pub fn is_late(&self) -> bool {
        matches!(self.stage, Stage::NotYet | Stage::Expired)
    }
}

impl fmt::Display for Reminder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Validity { file, position, role, not_before, .. } = &self.certificate;
        let who = match (role, self.is_late()) {
            (Role::Shown, true) => "who is shown this certificate refuses it: ",
            (Role::Authority, true) => "who goes by the date of this authority refuses all that it vouches for: ",
            (_, false) => "",
        };
        let until = not_before.duration_since(self.now).unwrap_or_default();
        let when = match (self.stage, self.certificate.left(self.now)) {
            (Stage::NotYet, _) => format!("is not good before {} from now", span(until)),
            _ if self.certificate.is_never() => NEVER_GOOD.to_owned(),
            (_, Err(ago)) => format!("expired {} ago", span(ago)),
            (_, Ok(left)) => format!("expires in {}", span(left)),
        };
        write!(f, "{who}{}: certificate {position} {when}", file.display())
    }
}

/// A time in its largest unit of which there are two.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "days"), (3600, "hours"), (60, "minutes")];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    let (length, name) = unit.unwrap_or((1, "seconds"));
    format!("{} {name}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn at(days: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(days * DAY)
    }

    fn certificate(file: &str, from: u64, until: u64) -> Validity {
        let (not_before, not_after) = (at(from), at(until));
        Validity { file: file.into(), position: 1, role: Role::Shown, not_before, not_after }
    }

    /// What is said over the days, of whatever is there on each.
    fn said(watch: &mut ExpiryWatch, days: impl Iterator<Item = u64>, there: &[Validity]) -> Vec<(u64, String)> {
        let say = |day| {
            let reminders = watch.look(there.iter().cloned(), at(day));
            reminders.into_iter().map(move |reminder| (day, reminder.to_string())).collect::<Vec<_>>()
        };
        days.flat_map(say).collect()
    }

    #[test]
    fn each_stage_is_said_once_and_the_last_one_is_an_error() {
        let (mut watch, year) = (ExpiryWatch::default(), certificate("a.pem", 1000, 1365));
        let lines = [
            (1335, "a.pem: certificate 1 expires in 30 days"),
            (1358, "a.pem: certificate 1 expires in 7 days"),
            (1364, "a.pem: certificate 1 expires in 24 hours"),
            (1366, "who is shown this certificate refuses it: a.pem: certificate 1 expired 24 hours ago"),
        ];
        let lines: Vec<_> = lines.map(|(day, line)| (day, line.to_owned())).into();
        assert_eq!(said(&mut watch, 1001..1500, std::slice::from_ref(&year)), lines);
        assert_eq!(said(&mut watch, (1001..1500).rev(), std::slice::from_ref(&year)), [], "a clock that goes back");
    }

    #[test]
    fn of_what_passed_unseen_the_last_is_said() {
        let (mut watch, year) = (ExpiryWatch::default(), certificate("a.pem", 1000, 1365));
        let stages =
            |reminders: Vec<Reminder>| reminders.into_iter().map(|reminder| reminder.stage).collect::<Vec<_>>();
        assert_eq!(stages(watch.look([year.clone()], at(1364))), [Stage::WithinADay]);
        assert_eq!(stages(watch.look([year.clone(), year], at(1400))), [Stage::Expired], "in two places, once");
    }

    #[test]
    fn another_certificate_is_looked_at_anew_and_what_is_gone_is_forgotten() {
        let mut watch = ExpiryWatch::default();
        let (first, second) = (certificate("a.pem", 1000, 1365), certificate("a.pem", 1340, 1460));
        assert_eq!(watch.look([first.clone()], at(1336)).len(), 1);
        assert_eq!(watch.look([second.clone()], at(1341)), []);
        assert_eq!(watch.said.len(), 1);
        assert_eq!(watch.look([first], at(1341)).len(), 1);
        let early = watch.look([second.clone()], at(1337));
        assert!(early.iter().all(Reminder::is_late));
        let words = "who is shown this certificate refuses it: a.pem: certificate 1 is not good before 3 days from now";
        assert_eq!(early.iter().map(ToString::to_string).collect::<Vec<_>>(), [words]);
        assert_eq!(watch.look([second], at(1341)), [], "that it is good now is no news");
    }

    #[test]
    fn of_one_that_is_never_good_that_is_said() {
        let [never] = ExpiryWatch::default().look([certificate("a.pem", 2, 1)], at(1010)).try_into().unwrap();
        let words = "who is shown this certificate refuses it: a.pem: certificate 1 is never good: it expires before it begins to be";
        assert_eq!((never.to_string().as_str(), never.is_late()), (words, true));
    }

    #[test]
    fn of_an_authority_it_is_said_whom_it_is_about() {
        let authority = Validity { role: Role::Authority, position: 2, ..certificate("ca.pem", 0, 1000) };
        let [late] = ExpiryWatch::default().look([authority], at(1010)).try_into().unwrap();
        let words = "who goes by the date of this authority refuses all that it vouches for: ca.pem: certificate 2 expired 10 days ago";
        assert_eq!(late.to_string(), words);
    }

    #[test]
    fn a_time_is_told_in_the_largest_unit_of_which_there_are_two() {
        let spans = [0, 119, 120, 7199, 7200, 2 * DAY - 1, 2 * DAY].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["0 seconds", "119 seconds", "2 minutes", "119 minutes", "2 hours", "47 hours", "2 days"]);
    }
}
