// SPDX-License-Identifier: Apache-2.0
//! Where Consul is, and what is sent to it.

use super::*;

fn server() -> Server {
    Server {
        address: None,
        datacenter: None,
        token_file: None,
        ca: None,
        certificate: None,
        key: None,
        plaintext: false,
    }
}

fn made(server: &Server, variables: &[(&str, &str)]) -> Result<Client, String> {
    let variable = |name: &str| {
        let mut all = variables.iter();
        all.find(|(one, _)| *one == name)
            .map(|(_, value)| (*value).to_owned())
    };
    Client::new(server, variable).map_err(|error| format!("{error:#}"))
}

#[test]
fn consul_is_where_its_own_variables_say_unless_a_flag_does() {
    let at = |flag: Option<&str>, variables: &[(&str, &str)]| {
        let address = flag.map(str::to_owned);
        made(
            &Server {
                address,
                ..server()
            },
            variables,
        )
        .map(|client| client.url)
    };
    assert_eq!(at(None, &[]).unwrap(), "http://127.0.0.1:8500");
    let variable = ("CONSUL_HTTP_ADDR", "10.0.0.1:8500");
    assert_eq!(at(None, &[variable]).unwrap(), "http://10.0.0.1:8500");
    assert_eq!(
        at(Some("https://c:1/"), &[variable]).unwrap(),
        "https://c:1"
    );
    let secure = ("CONSUL_HTTP_SSL", "true");
    assert_eq!(
        at(None, &[variable, secure]).unwrap(),
        "https://10.0.0.1:8500"
    );
    for (bad, why) in [
        ("unix:///x", "http://"),
        ("http://c/path", "no path"),
        ("a b", "no address"),
    ] {
        let said = at(Some(bad), &[]).unwrap_err();
        assert!(said.contains(why), "{bad}: {said}");
    }
    assert!(
        at(None, &[("CONSUL_NAMESPACE", "team")])
            .unwrap_err()
            .contains("CONSUL_NAMESPACE")
    );
}

#[test]
fn a_token_goes_by_tls_or_to_loopback_unless_it_is_said() {
    let token = ("CONSUL_HTTP_TOKEN", "secret");
    let to = |address: &str, plaintext| {
        let address = Some(address.to_owned());
        let server = Server {
            address,
            plaintext,
            ..server()
        };
        made(&server, &[token]).map(|client| client.token.is_some())
    };
    for good in [
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://localhost:1",
        "https://c:1",
    ] {
        assert_eq!(to(good, false), Ok(true), "{good}");
    }
    assert!(to("http://c:1", false).unwrap_err().contains("--plaintext"));
    assert_eq!(to("http://c:1", true), Ok(true));
}

#[test]
fn a_file_of_the_token_goes_before_the_variable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "of-the-file\n").unwrap();
    let variables = [
        ("CONSUL_HTTP_TOKEN", "of-the-variable"),
        ("CONSUL_HTTP_TOKEN_FILE", file.path().to_str().unwrap()),
    ];
    let client = made(&server(), &variables).unwrap();
    assert_eq!(client.token.unwrap(), "of-the-file");
    let missing = made(&server(), &[("CONSUL_HTTP_TOKEN_FILE", "/nowhere")]);
    assert!(missing.err().unwrap().contains("/nowhere"));
}
