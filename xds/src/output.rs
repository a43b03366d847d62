//! What is printed of what happens: lines, a table, JSON or YAML.

mod content;
mod line;
mod table;
mod text;

use std::io::{self, Write};

use clap::ValueEnum;

pub(crate) use self::content::Content;
pub(crate) use self::line::yaml_document;
use self::table::Table;
use crate::ask::{Event, What};
use crate::show::{complain, visible};

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// An object a line for each event, with the content of resources
    Json,
    /// The same objects as documents of YAML
    Yaml,
}

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Args {
    /// What is printed
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,
}

/// Prints events, to standard output; and the words of errors, to standard error.
#[derive(Debug)]
pub(crate) struct Printer<'a> {
    style: Style,
    type_url: &'a str,
}

#[derive(Debug)]
enum Style {
    /// A line an event, with the time.
    Lines,
    /// All in the end.
    Table(Table),
    Json(Content),
    Yaml(Content),
}

impl Args {
    pub(crate) fn form(&self) -> Form {
        self.output
    }

    /// Prints what happens as it happens.
    pub(crate) fn printer<'a>(&self, type_url: &'a str) -> Printer<'a> {
        let style = match self.output {
            Form::Text => Style::Lines,
            Form::Json => Style::Json(Content::default()),
            Form::Yaml => Style::Yaml(Content::default()),
        };
        Printer { style, type_url }
    }

    /// The same, but for people a table of what there is in the end.
    pub(crate) fn table_printer<'a>(&self, type_url: &'a str) -> Printer<'a> {
        let printer = self.printer(type_url);
        let style = match printer.style {
            Style::Lines => Style::Table(Table::default()),
            style => style,
        };
        Printer { style, ..printer }
    }
}

impl Printer<'_> {
    /// Prints an event of one of these servers.
    pub(crate) fn print(&mut self, event: &Event, servers: &[String]) -> io::Result<()> {
        let server = event.server.and_then(|place| servers.get(place)).map(String::as_str);
        // Of several servers it is said which one it was.
        let which = server.filter(|_| servers.len() > 1);
        match &event.what {
            What::Error(failure) | What::Ambient(Some(failure)) => complain(visible(&failure.message)),
            What::Ambient(None) => match &event.name {
                // A table has it as it is in the end.
                Some(_) if matches!(self.style, Style::Table(_)) => {}
                Some(name) => complain(format_args!("{} is up to date again", visible(name))),
                // Of several another may answer than the one that was told.
                None if servers.len() > 1 => complain("connected again"),
                None => complain(format_args!("connected to {}", server.unwrap_or_default())),
            },
            _ => {}
        }
        let mut out = io::stdout().lock();
        match &mut self.style {
            Style::Lines => match text::line(event, which) {
                Some(line) => writeln!(out, "{line}"),
                None => Ok(()),
            },
            Style::Table(table) => {
                table.take(event, which);
                Ok(())
            }
            Style::Json(content) => line::json(&mut out, event, self.type_url, server, content),
            Style::Yaml(content) => line::yaml(&mut out, event, self.type_url, server, content),
        }
    }

    /// Prints what waited for the end.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.style {
            Style::Table(table) => table.print(&mut io::stdout().lock()),
            _ => Ok(()),
        }
    }
}
