// SPDX-License-Identifier: Apache-2.0

use weir_testkit::{Error, Host, LogLevel, Module};

use crate::fixture::{HTTP, SHARED, said, start};

#[test]
fn a_panic_kills_the_vm_and_a_restart_keeps_the_shared_data() {
    let host = Host::new();
    let vm = host
        .vm(&HTTP)
        .vm_id("id")
        .plugin_config("c")
        .start()
        .unwrap();
    host.set_shared_data("id", "key", "kept");
    let waiting = vm.request([(":path", "/pause")]).unwrap();
    let Err(Error::Trap { callback, message }) = vm.request([(":path", "/panic")]) else {
        panic!("it traps");
    };
    assert_eq!(callback, "proxy_on_request_headers");
    assert!(message.contains("as asked"), "{message}");
    assert!(vm.logs().iter().any(|log| log.level >= LogLevel::Error));

    assert!(vm.is_dead());
    assert!(matches!(
        vm.request([(":path", "/")]),
        Err(Error::Dead {
            callback: "proxy_on_request_headers"
        })
    ));
    assert!(matches!(waiting.finish(), Err(Error::Dead { .. })));
    assert_eq!(waiting.request_header(":path").as_deref(), Some("/pause"));

    let fresh = vm.restart().unwrap();
    assert_eq!(said(&fresh), ["configured: c"]);
    fresh.request([(":path", "/")]).unwrap().finish().unwrap();
    assert_eq!(
        host.shared_data("id", "key").as_deref(),
        Some(b"kept".as_slice())
    );
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    let vm = Host::new().vm(&HTTP).fuel_limit(1_000_000).start().unwrap();
    let trap = vm.request([(":path", "/loop")]).err().unwrap();
    assert!(
        trap.is_trap() && trap.to_string().contains("fuel"),
        "{trap}"
    );
}

#[test]
fn a_refused_configuration_is_an_error_and_the_old_root_stays() {
    let refused = Host::new()
        .vm(&HTTP)
        .plugin_config("refuse")
        .start()
        .err()
        .unwrap();
    assert!(matches!(
        refused,
        Error::Refused {
            callback: "proxy_on_configure"
        }
    ));

    let vm = start(&HTTP);
    assert!(vm.configure("refuse").is_err());
    assert_eq!(vm.roots().len(), 1);
    vm.request([(":path", "/")]).unwrap();
}

#[test]
fn the_same_request_uses_the_same_fuel_in_every_fresh_vm() {
    let run = || {
        let vm = start(&HTTP);
        let started = vm.fuel_used();
        let http = vm.request([(":path", "/hash")]).unwrap();
        let used = vm.fuel_used() - started;
        (
            used,
            vm.fuel_of("proxy_on_request_headers"),
            http.request_header("x-first"),
        )
    };
    let (used, headers, first) = run();
    assert!(headers > 1000 && used > headers, "{used} {headers}");
    for _ in 0..3 {
        assert_eq!(run(), (used, headers, first.clone()));
    }
}

#[test]
fn host_calls_are_counted_by_callback_and_name() {
    let vm = start(&HTTP);
    let calls = |times| {
        let http = vm.request([(":path", "/")]).unwrap();
        let calls = vm.host_calls_of("proxy_on_request_headers");
        assert_eq!(calls["proxy_add_header_map_value"], 1, "request {times}");
        assert_eq!(calls["proxy_remove_header_map_value"], 1);
        // The path was handed over.
        assert!(calls["proxy_on_memory_allocate"] >= 1);
        http.finish().unwrap();
        calls
    };
    assert_eq!(calls(1), calls(2), "each callback begins anew");
    assert!(vm.host_calls_of("proxy_on_tick").is_empty());
    assert!(vm.memory_bytes() > 0 && vm.memory_bytes().is_multiple_of(65_536));
}

#[test]
fn random_bytes_differ_between_vms_and_hosts_unless_they_are_fixed() {
    let first = |vm: weir_testkit::VmBuilder| {
        let http = vm.start().unwrap().request([(":path", "/hash")]).unwrap();
        http.request_header("x-first").unwrap()
    };
    let host = Host::new();
    let drawn: Vec<String> = (0..8).map(|_| first(host.vm(&HTTP))).collect();
    assert!(drawn.iter().any(|name| *name != drawn[0]), "{drawn:?}");
    let seeded: Vec<String> = (0..8)
        .map(|seed| first(Host::with_seed(seed).vm(&HTTP)))
        .collect();
    assert!(seeded.iter().any(|name| *name != seeded[0]), "{seeded:?}");
    assert_eq!(first(host.vm(&HTTP).seed(1)), first(host.vm(&HTTP).seed(1)));
}

#[test]
fn foreign_functions_are_the_tests_or_not_found() {
    let wat = br#"(module
        (import "env" "proxy_call_foreign_function"
            (func $call (param i32 i32 i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "upper")
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
        (func (export "proxy_on_configure") (param i32 i32) (result i32)
            (i32.eqz (call $call (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 2)
                (i32.const 100) (i32.const 104)))))"#;
    let module = Module::from_bytes(&wat::parse_bytes(wat).unwrap()).unwrap();
    assert!(Host::new().vm(&module).start().is_err());

    let host = Host::new();
    host.foreign_function("upper", |arguments| Ok(arguments.to_ascii_uppercase()));
    host.vm(&module).start().unwrap();
}

#[test]
fn what_envoy_would_not_load_is_refused_with_the_reason() {
    let load = |wat: &str| {
        Module::from_bytes(&wat::parse_str(wat).unwrap())
            .err()
            .unwrap()
            .to_string()
    };
    assert!(load("(module)").contains("proxy_abi_version_0_2_1"));
    let unknown = r#"(module (import "env" "proxy_teleport" (func)) (func (export "proxy_abi_version_0_2_1")))"#;
    assert!(load(unknown).contains("proxy_teleport"));
    assert!(matches!(Module::from_bytes(b"text"), Err(Error::Module(_))));
    assert!(matches!(
        Module::from_file("no/such.wasm"),
        Err(Error::File { .. })
    ));
}

#[test]
fn a_module_is_compiled_once_and_shared_by_threads() {
    let run = || start(&SHARED).fuel_used();
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(run)).collect();
    let used: Vec<u64> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert_eq!(used[0], used[1]);
}
