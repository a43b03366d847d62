//! What there is, in columns.

use std::collections::BTreeMap;
use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::ask::{Event, What};
use crate::show::visible;

const HEAD: [&str; 5] = ["NAME", "VERSION", "BYTES", "SERVER", "STATE"];

/// Of what is from before.
const STALE: &str = "stale";

/// A row a resource, by their names.
#[derive(Debug, Default)]
pub(super) struct Table(BTreeMap<String, [String; 4]>);

impl Table {
    /// A resource came or went.
    pub(super) fn take(&mut self, event: &Event, server: Option<&str>) {
        let Some(name) = &event.name else { return };
        match &event.what {
            What::Put { version, any, stale } => {
                let server = server.map(visible).unwrap_or_default();
                let state = if *stale { STALE.to_owned() } else { String::new() };
                self.0.insert(visible(name), [visible(version.as_str()), any.len().to_string(), server, state]);
            }
            What::Removed => {
                self.0.remove(&visible(name));
            }
            What::Ambient(None) => {
                self.0.entry(visible(name)).and_modify(|[.., state]| state.clear());
            }
            What::Answered | What::Error(_) | What::Ambient(Some(_)) => {}
        }
    }

    /// Without a column of servers if there is but one, or of what is stale if nothing is; nothing at all if there is nothing.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let rows = || {
            let row = |(name, cells): (&'_ String, &'_ [String; 4])| {
                let [version, bytes, server, state] = cells.clone();
                [name.clone(), version, bytes, server, state]
            };
            [HEAD.map(str::to_owned)].into_iter().chain(self.0.iter().map(row))
        };
        let has_servers = self.0.values().any(|[.., server, _]| !server.is_empty());
        let is_stale = self.0.values().any(|[.., state]| !state.is_empty());
        let shown = [true, true, true, has_servers, is_stale];
        let mut widths = [0; HEAD.len()];
        for row in rows() {
            widths.iter_mut().zip(&row).for_each(|(width, cell)| *width = cell.width().max(*width));
        }
        for row in rows() {
            let cell = |(cell, width): (&String, &usize)| format!("{cell}{}", " ".repeat(width - cell.width()));
            let cells: Vec<_> =
                row.iter().zip(&widths).zip(shown).filter(|(_, shown)| *shown).map(|(cells, _)| cell(cells)).collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(name: &str, version: &str, any: &'static str) -> Event {
        let what = What::Put { version: version.into(), any: any.into(), stale: false };
        Event { server: Some(0), name: Some(name.into()), what }
    }

    fn printed(table: &Table) -> String {
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_what_a_terminal_shows_in_them() {
        let mut table = Table::default();
        for event in [put("日本", "1", "xx"), put("b\u{1b}", "a long version", "x"), put("gone", "1", "x")] {
            table.take(&event, None);
        }
        table.take(&Event { server: None, name: Some("gone".into()), what: What::Removed }, None);
        let expected = "\
NAME     VERSION         BYTES
b\\u{1b}  a long version  1
日本     1               2
";
        assert_eq!(printed(&table), expected);
    }

    #[test]
    fn what_is_from_before_is_said_to_be_until_its_server_says_that_it_is_so() {
        let mut table = Table::default();
        for name in ["a", "b"] {
            let what = What::Put { version: "1".into(), any: "x".into(), stale: true };
            table.take(&Event { server: Some(0), name: Some(name.into()), what }, None);
        }
        let confirm = |name: &str| Event { server: Some(0), name: Some(name.into()), what: What::Ambient(None) };
        table.take(&confirm("a"), None);
        assert_eq!(printed(&table), "NAME  VERSION  BYTES  STATE\na     1        1\nb     1        1      stale\n");
        table.take(&confirm("b"), None);
        assert_eq!(printed(&table), "NAME  VERSION  BYTES\na     1        1\nb     1        1\n");
    }

    #[test]
    fn servers_are_shown_where_there_are_several() {
        let mut table = Table::default();
        table.take(&put("a", "1", "x"), Some("one:1"));
        table.take(&put("b", "1", "x"), Some("two:1"));
        assert_eq!(
            printed(&table),
            "NAME  VERSION  BYTES  SERVER\na     1        1      one:1\nb     1        1      two:1\n"
        );
        assert_eq!(printed(&Table::default()), "");
    }
}
