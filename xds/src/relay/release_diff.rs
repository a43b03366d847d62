//! `xds relay diff`: what one release has otherwise than another.

use std::io::{self, Write};

use serde_json::Value;
use xds_relay::api::{ChangedResource, ReleaseDiff, ReleasedResource, short_type};

use super::admin::{Admin, of_releases};
use super::{Done, Form, json};
use crate::ask::Verdict;
use crate::show::visible;

/// Say what the release under way has otherwise than what is stable, field by field where the type is known: exits with 1 if
/// anything, or if there is no such release
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Of this scope: xdstp://AUTHORITY, or old-style; it may be left out where there is one
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// The release before; what is stable without it
    #[arg(long, value_name = "RELEASE")]
    from: Option<String>,
    /// The release after; the one under way without it
    #[arg(long, value_name = "RELEASE")]
    to: Option<String>,
}

impl Args {
    pub(super) fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
        let query = [("scope", self.scope.as_deref()), ("from", self.from.as_deref()), ("to", self.to.as_deref())];
        let told: Value = of_releases(admin.get("releases/diff", &query))?;
        let diff: ReleaseDiff = admin.read(told.clone())?;
        match form {
            Form::Json => json(out, &told)?,
            Form::Text => text(out, &diff)?,
        }
        Ok(if diff.is_empty() { Verdict::There } else { Verdict::Wrong })
    }
}

fn text(out: &mut impl Write, diff: &ReleaseDiff) -> io::Result<()> {
    writeln!(out, "{}: {} → {}", visible(&diff.scope), visible(&diff.from), visible(&diff.to))?;
    for (sign, resources) in [("+", &diff.added), ("-", &diff.removed)] {
        for resource in resources {
            writeln!(out, "{sign} {}", name(resource))?;
        }
    }
    diff.changed.iter().try_for_each(|resource| changed(out, resource))?;
    if diff.more > 0 {
        writeln!(out, "and {} others", diff.more)?;
    }
    if diff.removes_much {
        writeln!(out, "it removes much: it waits for somebody to say that it goes on")?;
    }
    if diff.is_empty() { writeln!(out, "nothing differs") } else { Ok(()) }
}

fn changed(out: &mut impl Write, resource: &ChangedResource) -> io::Result<()> {
    writeln!(out, "~ {}", name(&resource.after))?;
    for field in &resource.difference.fields {
        writeln!(out, "    {}", visible(&field.to_string()))?;
    }
    if resource.difference.more > 0 {
        writeln!(out, "    and {} other fields", resource.difference.more)?;
    }
    if resource.is_wrapped_otherwise {
        writeln!(out, "    its aliases, or how long it lives")?;
    }
    match &resource.hidden {
        Some(why) => writeln!(out, "    not shown: {}", visible(why)),
        None if resource.difference.is_hidden => writeln!(out, "    in fields that are not shown"),
        None => Ok(()),
    }
}

fn name(ReleasedResource { type_url, name, variant, .. }: &ReleasedResource) -> String {
    let of = format!("{} {}", visible(short_type(type_url)), visible(name));
    if variant.is_empty() { of } else { format!("{of} ({})", visible(variant)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_resource_is_told_with_what_is_otherwise() {
        let resource =
            |name: &str| json!({ "type_url": "t/envoy.config.cluster.v3.Cluster", "name": name, "version": "1" });
        let mut changed = resource("c");
        changed["difference"] =
            json!({ "fields": [{ "path": "a.b", "before": 1, "after": 2 }], "more": 3, "is_hidden": false });
        changed["is_wrapped_otherwise"] = json!(true);
        let mut hidden = resource("s");
        hidden["hidden"] = json!("it is secret");
        let diff = json!({ "scope": "old-style", "from": "x", "to": "y", "added": [resource("a")], "removed": [resource("b")],
                           "changed": [changed, hidden], "more": 4, "removes_much": true });
        let mut out = Vec::new();
        text(&mut out, &serde_json::from_value(diff).unwrap()).unwrap();
        let expected = "old-style: x → y\n+ Cluster a\n- Cluster b\n~ Cluster c\n    a.b: 1 → 2\n    and 3 other fields\n    its aliases, \
                        or how long it lives\n~ Cluster s\n    not shown: it is secret\nand 4 others\nit removes much: it waits for \
                        somebody to say that it goes on\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
