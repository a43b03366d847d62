//! What servers answer, printed as it comes.

use std::error::Error;
use std::process::ExitCode;

use crate::ask::{Progress, Until, Wanted, Where, listen};
use crate::exit;
use crate::output::Printer;
use crate::show::unless_closed;

/// Asks the servers and prints what they answer. The code says what there was in the end.
///
/// # Errors
/// Nothing can be printed.
pub(crate) async fn print(
    servers: &Where,
    wanted: &Wanted,
    until: Until,
    mut printer: Printer<'_>,
) -> Result<ExitCode, Box<dyn Error>> {
    let servers = match servers.servers(wanted) {
        Ok(servers) => servers,
        Err(error) => return Ok(exit::usage(&*error)),
    };
    servers.flush().await;
    let listened = listen(wanted, &servers, until, |servers, event| printer.print(&event, servers.names())).await;
    servers.flush().await;
    let done =
        listened.and_then(|progress| printer.finish().map(|()| exit::code(progress.as_ref().map(Progress::verdict))));
    unless_closed(done)
}
