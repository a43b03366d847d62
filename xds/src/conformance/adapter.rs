//! A hand on the server's resources.

mod answer;
mod cncf;
mod files;
mod lines;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub(crate) use self::answer::Failure;
use self::cncf::Cncf;
use self::files::Files;
use self::lines::Lines;
use super::resources::{Item, Of};

/// What belongs together: a server is to do it as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) put: Vec<Item>,
    pub(crate) remove: Vec<(Of, String)>,
}

/// When the server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Now,
    Sometime,
}

/// Which one, as the command line has it.
#[derive(Clone, Debug)]
pub(crate) enum Spec {
    Files(PathBuf),
    Command(String),
    Tcp(String),
    Cncf(String),
}

pub(crate) enum Adapter {
    None,
    Files(Files),
    Lines(Box<Lines>),
    Cncf(Cncf),
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("files", directory)) if !directory.is_empty() => Ok(Self::Files(directory.into())),
            Some(("command", command)) if !command.trim().is_empty() => Ok(Self::Command(command.to_owned())),
            Some(("tcp", address)) if !address.is_empty() => Ok(Self::Tcp(address.to_owned())),
            Some(("cncf", address)) if !address.is_empty() => Ok(Self::Cncf(address.to_owned())),
            _ => Err("expected files:DIRECTORY, command:PROGRAM ARGUMENTS, tcp:HOST:PORT or cncf:HOST:PORT".into()),
        }
    }
}

impl Adapter {
    /// # Errors
    /// It cannot be started.
    pub(crate) async fn start(spec: Option<&Spec>, run: &str) -> Result<Self, String> {
        Ok(match spec {
            None => Self::None,
            Some(Spec::Files(directory)) => Self::Files(Files::new(directory, run)?),
            Some(Spec::Command(command)) => Self::Lines(Lines::run(command)?.into()),
            Some(Spec::Cncf(address)) => Self::Cncf(Cncf::connect(address, run).await?),
            Some(Spec::Tcp(address)) => Self::Lines(Lines::connect(address).await?.into()),
        })
    }

    /// Whether it does not know when the server has what it was told.
    pub(crate) fn is_blind(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    pub(crate) async fn change(&mut self, change: &Change, timeout: Duration) -> Result<Applied, Failure> {
        match self {
            Self::None => Err(Failure::None),
            Self::Files(files) => files.change(change).map(|()| Applied::Sometime),
            Self::Lines(lines) => lines.change(change, timeout).await.map(|()| Applied::Now),
            Self::Cncf(cncf) => cncf.change(change, timeout).await.map(|()| Applied::Now),
        }
    }
}

impl Change {
    /// In a line, for people.
    pub(crate) fn line(&self) -> String {
        let put = self.put.iter().map(|item| format!("{} {}={}", item.of.short(), item.name, item.content));
        let removed = self.remove.iter().map(|(of, name)| format!("{} -{name}", of.short()));
        let mut all: Vec<_> = put.chain(removed).take(SHOWN).collect();
        let count = self.put.len() + self.remove.len();
        if count > SHOWN {
            all.push(format!("… ({count} in all)"));
        }
        format!("the server is given: {}", all.join(", "))
    }
}

/// How many of a change are shown.
const SHOWN: usize = 12;
