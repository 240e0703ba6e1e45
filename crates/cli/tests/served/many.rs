//! Many connections at once.

use std::net::TcpStream;

use crate::http;
use crate::server::Server;

#[test]
fn more_connections_are_served_than_the_soft_limit_on_files_allows() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), "");
    let connect = |_| TcpStream::connect(server.address).unwrap();
    let idle: Vec<_> = (0..200).map(connect).collect();
    let reply = http::post(server.address, "/healthz", &[], "").unwrap();
    assert_eq!(reply.body, "ok\n");
    drop(idle);
}
