//! Between which times certificates are good (RFC 5280, 4.1.2.5).

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustls::CertificateError::{Expired, ExpiredContext, NotValidYetContext};
use rustls::Error::InvalidCertificate;
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;

use crate::grpc::tls::provider::provider;

/// Later than any certificate can say (RFC 5280 has years of four digits), in seconds.
const NEVER: u64 = u64::MAX;

/// What is said of a certificate that is good at no time.
pub(super) const NEVER_GOOD: &str = "is never good: it expires before it begins to be";

/// Between which times a certificate in a file is good.
///
/// ```
/// use std::time::SystemTime;
/// use xds_transport::grpc::tls::{ServerTls, Stage};
///
/// fn is_to_be_renewed(tls: &ServerTls) -> bool {
///     tls.validity().iter().any(|certificate| certificate.stage(SystemTime::now()) > Stage::Good)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Validity {
    /// The file.
    pub file: PathBuf,
    /// Which of the certificates in it, from 1 on.
    pub position: usize,
    /// What it is for.
    pub role: Role,
    /// The first moment at which it is good.
    pub not_before: SystemTime,
    /// The last one.
    pub not_after: SystemTime,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// It is shown to peers, itself or as one of those between it and who vouches for it.
    Shown,
    /// It is of who may vouch for peers. rustls goes by no date of these; others do.
    Authority,
}

/// How near the end of a certificate is. What is later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// It is not good yet.
    NotYet,
    /// There is time.
    Good,
    /// It expires within 30 days.
    Within30Days,
    /// It expires within a week.
    Within7Days,
    /// It expires within a day.
    WithinADay,
    /// It has expired.
    Expired,
}

const DAY: Duration = Duration::from_secs(24 * 3600);
const NEAR: [(Duration, Stage); 3] = [
    (DAY, Stage::WithinADay),
    (DAY.saturating_mul(7), Stage::Within7Days),
    (DAY.saturating_mul(30), Stage::Within30Days),
];

impl Validity {
    /// For how long it is good in all.
    pub fn lifetime(&self) -> Duration {
        self.not_after.duration_since(self.not_before).unwrap_or_default()
    }

    /// Whether it is good at no time: it says that it expires before it begins to be good. Its times are then at the beginning of
    /// 1970, and its stage is [`Expired`](Stage::Expired).
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.not_after < self.not_before
    }

    /// How long it is still good: if it has expired, how long ago that was.
    ///
    /// # Errors
    /// It has expired.
    pub fn left(&self, now: SystemTime) -> Result<Duration, Duration> {
        self.not_after.duration_since(now).map_err(|error| error.duration())
    }

    /// How near its end is. That is never said before the last quarter of its lifetime: who has certificates for a day renews them
    /// in time every day.
    pub fn stage(&self, now: SystemTime) -> Stage {
        if now < self.not_before {
            return Stage::NotYet;
        }
        let Ok(left) = self.left(now) else { return Stage::Expired };
        let is_near = |within: Duration| left <= within.min(self.lifetime() / 4);
        NEAR.into_iter().find(|(within, _)| is_near(*within)).map_or(Stage::Good, |(_, stage)| stage)
    }

    /// That of a certificate in a file, if it is one that can be read.
    pub(super) fn of(certificate: &CertificateDer<'_>, file: &Path, position: usize, role: Role) -> Option<Self> {
        let (not_before, not_after) = dates(certificate)?;
        Some(Self { file: file.to_owned(), position, role, not_before: at(not_before)?, not_after: at(not_after)? })
    }
}

fn at(time: UnixTime) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs()))
}

/// What is asked is whether it is good before and after all times; why not says when it would be.
fn dates(certificate: &CertificateDer<'_>) -> Option<(UnixTime, UnixTime)> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    // Nobody vouches for it here: its dates are looked at before that.
    let (nobody, algorithms) = (RootCertStore::empty(), provider().signature_verification_algorithms.all);
    let judged = |seconds: u64| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        verify_server_cert_signed_by_trust_anchor(&parsed, &nobody, &[], time, algorithms)
    };
    let not_before = match judged(0) {
        Err(InvalidCertificate(NotValidYetContext { not_before, .. })) => not_before,
        _ => UnixTime::since_unix_epoch(Duration::ZERO),
    };
    match judged(NEVER) {
        Err(InvalidCertificate(ExpiredContext { not_after, .. })) => Some((not_before, not_after)),
        // It is so at all times, and nobody is told its dates.
        Err(InvalidCertificate(Expired)) => Some((UnixTime::since_unix_epoch(Duration::from_secs(1)), not_before)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    const YEAR: u64 = 365 * 24 * 3600;

    fn of(is_ca: IsCa, from: i32, until: i32) -> Validity {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.is_ca = is_ca;
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Validity::of(certificate.der(), "a.pem".as_ref(), 1, Role::Shown).unwrap()
    }

    #[test]
    fn the_dates_are_those_of_the_certificate_whoever_it_is_of() {
        let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        for is_ca in [IsCa::NoCa, IsCa::ExplicitNoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
            let made = of(is_ca, 1971, 1972);
            assert_eq!([made.not_before, made.not_after].map(seconds), [YEAR, 2 * YEAR]);
            assert_eq!(made.lifetime().as_secs(), YEAR);
        }
        let made = of(IsCa::NoCa, 1970, 9999);
        assert_eq!([made.not_before, made.not_after].map(seconds), [0, 253_370_764_800]);
        let never = of(IsCa::NoCa, 1972, 1971);
        assert!(never.is_never() && !made.is_never());
        assert_eq!((never.stage(made.not_before + DAY), never.lifetime()), (Stage::Expired, Duration::ZERO));
        let torn = CertificateDer::from(&b"torn"[..]);
        assert_eq!(Validity::of(&torn, "a.pem".as_ref(), 1, Role::Shown), None);
    }

    #[test]
    fn the_end_is_near_by_days_and_never_before_the_last_quarter() {
        let day = |days: u64| DAY * u32::try_from(days).unwrap();
        let stages = |lifetime: Duration, left: &[Duration]| {
            let begin = SystemTime::UNIX_EPOCH + day(1000);
            let (file, role, position) = ("a".into(), Role::Shown, 1);
            let made = Validity { file, position, role, not_before: begin, not_after: begin + lifetime };
            left.iter().map(|left| made.stage(made.not_after - *left)).collect::<Vec<_>>()
        };
        use Stage::{Expired, Good, NotYet, Within7Days, Within30Days, WithinADay};
        let second = Duration::from_secs(1);
        let left = [day(366), day(365), day(30) + second, day(30), day(7), day(1), Duration::ZERO];
        let expected = [NotYet, Good, Good, Within30Days, Within7Days, WithinADay, WithinADay];
        assert_eq!(stages(day(365), &left), expected);
        let hour = Duration::from_secs(3600);
        assert_eq!(stages(day(1), &[hour * 6 + second, hour * 6]), [Good, WithinADay]);
        assert_eq!(stages(day(40), &[day(10) + second, day(10), day(7)]), [Good, Within30Days, Within7Days]);
        let made = of(IsCa::NoCa, 1971, 1972);
        assert_eq!(made.stage(made.not_after + second), Expired);
        assert_eq!((made.left(made.not_after + second), made.left(made.not_after)), (Err(second), Ok(Duration::ZERO)));
    }
}
