//! Prints a line for each event of what it watches, with content in hexadecimal digits:
//! `GRPC_XDS_BOOTSTRAP=bootstrap.json cargo run --example watch TYPE_URL NAME…`

use std::env;
use std::error::Error;
use std::fmt::Write;

use tokio::task::JoinSet;
use xdstp_client::bootstrap::Bootstrap;
use xdstp_client::{Client, Event, Watch};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let type_url = arguments.next().ok_or("the first argument is a type URL")?;
    let client = Client::from_bootstrap(Bootstrap::from_env()?)?;
    let watches: JoinSet<()> = arguments.map(|name| follow(client.watch(type_url.as_str(), &name))).collect();
    // None of them ends by itself.
    watches.join_all().await;
    Ok(())
}

async fn follow(mut watch: Watch) {
    loop {
        match watch.changed().await {
            Event::Put { name, version, resource } => println!("put {name} {version} {}", hexadecimal(&resource)),
            Event::Removed { name } => println!("removed {name}"),
            event => println!("{event:?}"),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
