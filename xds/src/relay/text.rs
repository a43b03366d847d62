//! Numbers and columns for people.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::show::visible;

/// Writes rows below their head, as wide as what is in them. What others wrote is made visible.
pub(super) fn columns<const N: usize>(out: &mut impl Write, head: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let shown: Vec<[String; N]> = [head.map(str::to_owned)]
        .into_iter()
        .chain(rows.iter().map(|row| row.each_ref().map(|cell| visible(cell))))
        .collect();
    let mut widths = [0; N];
    for row in &shown {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.width().max(*width));
    }
    for row in &shown {
        let cell = |(cell, width): (&String, &usize)| format!("{cell}{}", " ".repeat(width - cell.width()));
        let cells: Vec<_> = row.iter().zip(&widths).map(cell).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them_and_a_terminal_does_not_obey() {
        let mut out = Vec::new();
        let rows = [["日本".to_owned(), "1".to_owned()], ["a\u{1b}".to_owned(), "22".to_owned()]];
        columns(&mut out, ["NAME", "N"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME     N\n日本     1\na\\u{1b}  22\n");
    }
}
