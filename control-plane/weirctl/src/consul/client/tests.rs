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

#[test]
fn an_address_with_a_password_is_refused_and_not_printed() {
    for address in ["http://me:hidden@c:1", "me:hidden@c:1", "ftp://me:hidden@c"] {
        let said = made(&server(), &[("CONSUL_HTTP_ADDR", address)]);
        let said = said.err().unwrap();
        assert!(
            said.contains("password") && !said.contains("hidden"),
            "{said}"
        );
    }
}

#[test]
fn variables_mean_what_they_mean_to_consuls_own_programs() {
    let url = |variables: &[(&str, &str)]| made(&server(), variables).map(|client| client.url);
    let empty = [
        "CONSUL_HTTP_ADDR",
        "CONSUL_HTTP_SSL",
        "CONSUL_HTTP_TOKEN",
        "CONSUL_CLIENT_CERT",
        "CONSUL_NAMESPACE",
    ];
    assert_eq!(url(&empty.map(|name| (name, ""))).unwrap(), DEFAULT);
    for (text, scheme) in [
        ("t", "https"),
        ("TRUE", "https"),
        ("F", "http"),
        ("0", "http"),
    ] {
        let found = url(&[("CONSUL_HTTP_ADDR", "c:1"), ("CONSUL_HTTP_SSL", text)]);
        assert_eq!(found.unwrap(), format!("{scheme}://c:1"), "{text}");
    }
    let said = url(&[("CONSUL_HTTP_SSL", "yes")]).unwrap_err();
    assert!(said.contains("CONSUL_HTTP_SSL"), "{said}");
    for (one, other) in [
        ("CONSUL_CLIENT_CERT", "CONSUL_CLIENT_KEY"),
        ("CONSUL_CLIENT_KEY", "CONSUL_CLIENT_CERT"),
    ] {
        let said = url(&[(one, "/some.pem")]).unwrap_err();
        assert!(said.contains(&format!("{other} is not")), "{said}");
    }
}
