//! When the certificates expire that the relay goes by: said in time, and shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use xdstp_client::tls::{ExpiryWatch, Reminder, Role, Stage, TlsError, Validity};

use crate::api::{CertificateState, CertificateStatus};
use crate::causes::with_causes;
use crate::config::Config;
use crate::lock::lock;
use crate::metrics::CertificateTimes;
use crate::reload::Spoken;
use crate::tls::towards_files;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// A `tls` of the configuration, and what its certificates say.
pub(crate) struct Section {
    /// As the configuration calls it.
    name: String,
    /// What the file of authorities is called in it.
    authorities: &'static str,
    validity: Result<Vec<Validity>, TlsError>,
}

/// What is known of the certificates in use.
#[derive(Default)]
pub(crate) struct Certificates(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    watch: ExpiryWatch,
    /// By section, as its files were when they were good.
    read: BTreeMap<String, Vec<Validity>>,
    /// By field of the configuration, of the certificates in its file the one that expires first.
    first: BTreeMap<String, Validity>,
    /// Sections with a file that is not good: said once.
    wrong: BTreeSet<(String, String)>,
}

/// What is to be said of them.
#[derive(Default)]
pub(crate) struct Told {
    reminders: Vec<Reminder>,
    wrong: Vec<String>,
}

/// All that there are: those that clients are spoken to with as they were read, those towards origins as they are in files now, for the
/// next connection.
pub(crate) fn sections(spoken: &Spoken, config: &Config) -> Vec<Section> {
    let downstream = [("tls", &spoken.clients), ("admin.tls", &spoken.admin), ("orders.tls", &spoken.orders)];
    let downstream = downstream.into_iter().filter_map(|(name, tls)| {
        let validity = Ok(tls.as_ref()?.validity());
        Some(Section { name: name.to_owned(), authorities: "client_ca", validity })
    });
    let upstream = config.origins.iter().filter_map(|origin| {
        let validity = towards_files(origin.tls.as_ref()?).validity();
        Some(Section { name: config.field_of(origin, "tls"), authorities: "ca", validity })
    });
    downstream.chain(upstream).collect()
}

impl Certificates {
    /// Looks at them every so often, for as long as it is awaited.
    pub(crate) async fn follow(self: Arc<Self>, sections: impl Fn() -> Vec<Section> + Clone + Send + 'static) {
        loop {
            let (this, sections) = (self.clone(), sections.clone());
            // A disk may not answer.
            let looked = tokio::task::spawn_blocking(move || this.look(sections(), SystemTime::now())).await;
            looked.unwrap_or_default().log();
            sleep(LOOK).await;
        }
    }

    /// What is to be said of these.
    pub(crate) fn look(&self, sections: Vec<Section>, now: SystemTime) -> Told {
        let mut seen = lock(&self.0);
        let (mut read, mut first, mut wrong) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for Section { name, authorities, validity } in sections {
            let validity = validity.unwrap_or_else(|error| {
                wrong.insert((name.clone(), with_causes(&error)));
                // Whoever is to be told by a number is to have one.
                seen.read.remove(&name).unwrap_or_default()
            });
            for certificate in &validity {
                let file = if certificate.role == Role::Authority { authorities } else { "certificate" };
                let soonest = first.entry(format!("{name}.{file}")).or_insert_with(|| certificate.clone());
                if certificate.not_after < soonest.not_after {
                    soonest.clone_from(certificate);
                }
            }
            read.insert(name, validity);
        }
        let new = wrong.difference(&seen.wrong).map(|(name, error)| format!("{name}: {error}")).collect();
        seen.wrong = wrong;
        seen.first = first;
        let reminders = seen.watch.look(read.values().flatten().cloned(), now);
        seen.read = read;
        Told { reminders, wrong: new }
    }

    /// How they are now.
    pub(crate) fn state(&self, now: SystemTime) -> Vec<CertificateStatus> {
        let state = |(field, certificate): (&String, &Validity)| CertificateStatus {
            field: field.clone(),
            file: certificate.file.display().to_string(),
            state: match certificate.stage(now) {
                Stage::NotYet => CertificateState::NotYet,
                Stage::Good => CertificateState::Good,
                Stage::Expired => CertificateState::Expired,
                _ => CertificateState::Soon,
            },
            expires_in_seconds: seconds_left(certificate, now),
            lifetime_seconds: certificate.lifetime().as_secs(),
        };
        lock(&self.0).first.iter().map(state).collect()
    }

    /// Field of the configuration → when its certificate expires.
    pub(crate) fn times(&self, now: SystemTime) -> BTreeMap<String, CertificateTimes> {
        let times = |(field, certificate): (&String, &Validity)| {
            let (expires_in_seconds, lifetime_seconds) =
                (seconds_left(certificate, now), certificate.lifetime().as_secs());
            (field.clone(), CertificateTimes { expires_in_seconds, lifetime_seconds })
        };
        lock(&self.0).first.iter().map(times).collect()
    }
}

impl Told {
    fn log(&self) {
        for reminder in &self.reminders {
            match reminder.is_late() {
                true => tracing::error!("{reminder}"),
                false => tracing::warn!("{reminder}"),
            }
        }
        for words in &self.wrong {
            tracing::error!("no connection is made by this while it is so: {words}");
        }
    }
}

/// Less than nothing once it has expired.
fn seconds_left(certificate: &Validity, now: SystemTime) -> i64 {
    let signed = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    certificate.left(now).map_or_else(|ago| -signed(ago), signed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    const DAY: u64 = 24 * 3600;

    /// Midnight, so many days after the beginning of 2030.
    fn at(day: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs((21_915 + day) * DAY)
    }

    /// A certificate for 2030, or more years.
    fn write(file: &Path, years: i32, is_ca: bool) {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        (params.not_before, params.not_after) = (date_time_ymd(2030, 1, 1), date_time_ymd(2030 + years, 1, 1));
        let key = KeyPair::generate().unwrap();
        fs::write(file, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(file.with_extension("key"), key.serialize_pem()).unwrap();
    }

    struct World {
        directory: tempfile::TempDir,
        config: Config,
        spoken: Spoken,
        certificates: Certificates,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name).display().to_string();
            for (name, years, is_ca) in
                [("server", 1, false), ("clients", 10, true), ("ours", 1, false), ("ca", 2, true)]
            {
                write(path(&format!("{name}.pem")).as_ref(), years, is_ca);
            }
            let own = |name: &str| {
                format!("certificate: {}, key: {}", path(&format!("{name}.pem")), path(&format!("{name}.key")))
            };
            let tls = format!("{{ {}, client_ca: {} }}", own("server"), path("clients.pem"));
            let origin = format!("{{ {}, ca: {} }}", own("ours"), path("ca.pem"));
            let text = format!("tls: {tls}\norigins: [{{ name: up, server: 'a:1', tls: {origin} }}]\n");
            let config = Config::parse("relay.yaml", &text).unwrap();
            let clients =
                crate::tls::Downstream::load(config.tls.as_ref().unwrap(), crate::tls::With::Clients).unwrap();
            let spoken = Spoken { clients: Some(Arc::new(clients)), ..Spoken::default() };
            Self { directory, config, spoken, certificates: Certificates::default() }
        }

        /// What is said on a day, without the directory.
        fn said(&self, day: u64) -> Vec<String> {
            let Told { reminders, wrong } = self.certificates.look(sections(&self.spoken, &self.config), at(day));
            let lines = reminders.iter().map(ToString::to_string).chain(wrong);
            lines.map(|line| line.replace(&format!("{}/", self.directory.path().display()), "")).collect()
        }
    }

    #[test]
    fn what_expires_while_the_relay_runs_is_said_in_time_of_each_side() {
        let world = World::new();
        let said = (0..400).flat_map(|day| world.said(day).into_iter().map(move |line| (day, line)));
        let said: Vec<_> = said.filter(|(_, line)| line.contains("server.pem") || !line.contains("ours.pem")).collect();
        let lines = [
            (335, "server.pem: certificate 1 expires in 30 days"),
            (358, "server.pem: certificate 1 expires in 7 days"),
            (364, "server.pem: certificate 1 expires in 24 hours"),
            (366, "who is shown this certificate refuses it: server.pem: certificate 1 expired 24 hours ago"),
        ];
        assert_eq!(said, lines.map(|(day, line)| (day, line.to_owned())));
    }

    #[test]
    fn a_certificate_towards_an_origin_is_the_one_in_the_file_and_a_bad_file_is_said_once() {
        let world = World::new();
        let of_ours = |day| world.said(day).into_iter().filter(|line| line.contains("ours.pem")).collect::<Vec<_>>();
        assert_eq!(of_ours(340), ["ours.pem: certificate 1 expires in 25 days"]);
        let file = world.directory.path().join("ours.pem");
        write(&file, 2, false);
        assert_eq!(
            (of_ours(359), of_ours(701)),
            (vec![], vec!["ours.pem: certificate 1 expires in 29 days".to_owned()])
        );
        fs::write(&file, "").unwrap();
        let [wrong] = of_ours(702).try_into().unwrap();
        assert!(wrong.starts_with("origins[0].tls: ours.pem: there is no certificate in it"), "{wrong}");
        assert_eq!(of_ours(703), [""; 0]);
        write(&file, 3, false);
        assert_eq!(of_ours(704), [""; 0]);
        fs::remove_file(&file).unwrap();
        assert_eq!(of_ours(705).len(), 1);
        // What is known of it stays, and is said.
        assert_eq!(of_ours(1090), ["ours.pem: certificate 1 expires in 6 days"]);
        let shown = world.certificates.state(at(1100)).into_iter().find(|of| of.field == "origins[0].tls.certificate");
        assert_eq!(shown.map(|of| of.state), Some(CertificateState::Expired));
    }

    #[test]
    fn each_field_shows_the_certificate_that_expires_first() {
        let world = World::new();
        let (first, second) = (world.directory.path().join("ca.pem"), world.directory.path().join("other.pem"));
        write(&second, 1, true);
        let both = [&first, &second].map(|file| fs::read_to_string(file).unwrap()).concat();
        fs::write(&first, both).unwrap();
        world.said(300);
        let shown = |day| {
            let state = world.certificates.state(at(day)).into_iter();
            state.map(|of| (of.field, of.state, of.expires_in_seconds / DAY as i64)).collect::<Vec<_>>()
        };
        use CertificateState::{Expired, Good, Soon};
        let fields = ["origins[0].tls.ca", "origins[0].tls.certificate", "tls.certificate", "tls.client_ca"];
        let expected = |states: [(CertificateState, i64); 4]| {
            let states = fields.into_iter().zip(states);
            states.map(|(field, (state, days))| (field.to_owned(), state, days)).collect::<Vec<_>>()
        };
        assert_eq!(shown(300), expected([(Good, 65), (Good, 65), (Good, 65), (Good, 3352)]));
        assert_eq!(shown(360), expected([(Soon, 5), (Soon, 5), (Soon, 5), (Good, 3292)]));
        assert_eq!(shown(367), expected([(Expired, -2), (Expired, -2), (Expired, -2), (Good, 3285)]));
        let times = world.certificates.times(at(300)).remove("tls.certificate");
        let (expires_in_seconds, lifetime_seconds) = (65 * DAY as i64, 365 * DAY);
        assert_eq!(times, Some(CertificateTimes { expires_in_seconds, lifetime_seconds }));
    }
}
