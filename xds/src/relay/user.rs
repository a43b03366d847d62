//! Who runs the tool, where the environment does not say: in a container, or by a timer.

/// By name, or else by number.
#[cfg(unix)]
pub(super) fn user() -> Option<String> {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(name_of(uid, &users).unwrap_or_else(|| format!("uid {uid}")))
}

#[cfg(not(unix))]
pub(super) fn user() -> Option<String> {
    std::env::var("USERNAME").ok().filter(|name| !name.is_empty())
}

#[cfg(unix)]
fn name_of(uid: u32, users: &str) -> Option<String> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_called_as_the_system_has_it_and_by_number_where_it_has_no_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbad\n:x:7:7::/:\nrelay:x:65532:65532::/:\n";
        assert_eq!([0, 65532].map(|uid| name_of(uid, users)), [Some("root".to_owned()), Some("relay".to_owned())]);
        assert_eq!([1, 7].map(|uid| name_of(uid, users)), [None, None]);
        assert!(user().is_some());
    }
}
