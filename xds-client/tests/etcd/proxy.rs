//! A way to a member that can be cut.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is sent to it is sent on, unless it is cut.
pub(crate) struct Proxy {
    address: SocketAddr,
    /// `None` while it is cut.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Proxy {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let accepting = open.clone();
        // It ends with the process.
        thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                // What is not kept is hung up on.
                if let Some(open) = &mut *accepting.lock().unwrap()
                    && let Ok(to) = TcpStream::connect(("127.0.0.1", port))
                {
                    pass_on(&from, &to);
                    pass_on(&to, &from);
                    open.extend([from, to]);
                }
            }
        });
        Self { address, open }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All connections end, and whoever connects is hung up on.
    pub(crate) fn cut(&self) {
        let open = self.open.lock().unwrap().take();
        open.unwrap_or_default().iter().for_each(end);
    }

    pub(crate) fn mend(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}

fn pass_on(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        end(&from);
        end(&to);
    });
}

fn end(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
