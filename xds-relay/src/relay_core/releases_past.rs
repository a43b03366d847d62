//! What was done with the releases of a relay, and what one has otherwise than another.

use crate::api::{Audit, AuditEntry, AuditQuery, ChangedResource, DiffQuery, ReleaseDiff, ReleasedResource, page};
use crate::lock::lock;
use crate::relay_core::core::RelayCore;
use crate::relay_core::rollout_error::RolloutError;
use crate::releases::{Control, Difference, FieldDifference, Fields, Item, Logged, Reader, Release, millis_of};

/// Of a resource whose fields are shown, in bytes.
const LARGEST: usize = 4 << 20;

impl RelayCore {
    /// What was done, the last first. It may take as long as a store takes.
    ///
    /// # Errors
    /// There are no releases of that scope, or what was done cannot be read.
    pub fn release_audit(&self, query: &AuditQuery) -> Result<Audit, RolloutError> {
        let asked = match &query.scope {
            Some(scope) => vec![self.releases_in(Some(scope))?],
            None => lock(&self.releases).clone(),
        };
        let mut entries = Vec::new();
        for releases in asked {
            let scope = releases.rollout.scope();
            let logged = releases.reader().map_or(Ok(Vec::new()), |reader| reader.log())?;
            // Of one scope it is as it was done, whatever clocks said.
            let mut last = 0;
            entries.extend(logged.into_iter().map(|logged| {
                last = last.max(millis_of(logged.said.at));
                (last, entry(&scope, logged))
            }));
        }
        entries.sort_by(|(one_at, one), (other_at, other)| (other_at, other.number).cmp(&(one_at, one.number)));
        let more = entries.len().saturating_sub(page(query.limit));
        entries.truncate(page(query.limit));
        Ok(Audit { entries: entries.into_iter().map(|(_, entry)| entry).collect(), more })
    }

    /// What one release has otherwise than another. It may take as long as a store takes.
    ///
    /// # Errors
    /// There are no such releases, or they cannot be read.
    pub(crate) fn release_diff(&self, query: &DiffQuery, fields: &Fields) -> Result<ReleaseDiff, RolloutError> {
        let releases = self.releases_in(query.scope.as_deref())?;
        let control = releases.control();
        let (from, to) = compared(query, &control)?;
        let reader = releases.reader().ok_or(RolloutError::NothingToCompare("this scope has no release yet"))?;
        let (before, after) = (reader.manifest(from)?, reader.manifest(to)?);
        let (difference, most) = (Difference::between(&before, &after), page(query.limit));
        let few = |items: &[&Item]| items.iter().take(most).map(|item| resource(item)).collect::<Vec<_>>();
        let (added, removed) = (few(&difference.added), few(&difference.removed));
        let changed = difference.changed.iter().take(most).map(|of| changed(&reader, fields, *of));
        let changed: Vec<_> = changed.collect();
        let all = difference.added.len() + difference.changed.len() + difference.removed.len();
        Ok(ReleaseDiff {
            scope: releases.rollout.scope(),
            from: from.to_string(),
            to: to.to_string(),
            more: all - added.len() - changed.len() - removed.len(),
            removes_much: difference.removes_much(),
            added,
            changed,
            removed,
        })
    }
}

fn entry(scope: &str, Logged { number, said, what, release, taken_back }: Logged) -> AuditEntry {
    AuditEntry {
        scope: scope.to_owned(),
        number,
        at: millis_of(said.at),
        done: what,
        release: release.map(|release| release.to_string()),
        taken_back: taken_back.map(|release| release.to_string()),
        by: said.by,
        why: said.why,
    }
}

/// The release before, and the one after.
fn compared(query: &DiffQuery, control: &Control) -> Result<(Release, Release), RolloutError> {
    let named = |text: &Option<String>| {
        let parsed =
            |text: &String| text.parse().map_err(|error| RolloutError::NoRelease { text: text.clone(), error });
        text.as_ref().map(parsed).transpose()
    };
    let from = named(&query.from)?.or(control.stable());
    let to = named(&query.to)?.or(control.candidate().map(|candidate| candidate.release));
    let from = from.ok_or(RolloutError::NothingToCompare("this scope has no release yet"))?;
    let to = to.ok_or(RolloutError::NothingToCompare("no release is under way, and none is named"))?;
    Ok((from, to))
}

fn resource(item: &Item) -> ReleasedResource {
    ReleasedResource {
        type_url: item.type_url.to_string(),
        name: item.name.clone(),
        variant: item.variant.clone(),
        version: item.version.to_string(),
    }
}

fn changed(reader: &Reader, fields: &Fields, (before, after): (&Item, &Item)) -> ChangedResource {
    let body = |item: &Item| match reader.body(item.body) {
        Ok(body) if body.len() > LARGEST => Err("it is too large".to_owned()),
        Ok(body) => Ok(body),
        Err(error) => Err(error.to_string()),
    };
    let shown = match before.body == after.body {
        true => Ok(FieldDifference::default()),
        false => {
            body(before).and_then(|before| fields.between(&before, &body(after)?).map_err(|error| error.to_string()))
        }
    };
    let hidden = shown.as_ref().err().cloned();
    ChangedResource {
        after: resource(after),
        version_before: before.version.to_string(),
        is_wrapped_otherwise: (&before.wrapper, before.ttl) != (&after.wrapper, after.ttl),
        difference: shown.unwrap_or_default(),
        hidden,
    }
}
