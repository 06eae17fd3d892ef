//! Errors: of plugins, clients, devices, memory and executables.

use std::path::Path;

use defn_core::backend::{Checks, Compiler, Executable};
use defn_core::builder::*;
use defn_core::{DType, ErrorClass, Shape};
use defn_cpu::cpu_backend;
use defn_pjrt::{
    Attribute, ClientSpec, CompilerOptions, PjrtCompiler, Target, backend, client_names, default_client,
    devices, devices_of, register, set_default_client,
};

use crate::device::{compiler, floats, host_backend, ops, own_backend, read, run, spec, trace, ty};

#[test]
fn a_file_that_is_no_plugin_is_named() {
    register("absent", ClientSpec::new("no/such/plugin.so")).unwrap();
    let error = backend("backend", Some("absent"), None).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Backend);
    assert!(error.to_string().starts_with("plugin: no/such/plugin.so cannot be loaded, "), "{error}");
    let text = Path::new(env!("CARGO_TARGET_TMPDIR")).join("text.so");
    std::fs::write(&text, "no library").unwrap();
    register("text", ClientSpec::new(&text)).unwrap();
    let error = backend("backend", Some("text"), None).unwrap_err();
    assert!(error.to_string().contains("text.so cannot be loaded"), "{error}");
}

#[test]
fn options_that_the_plugin_does_not_take_are_refused() {
    let refusal = |name: &str, value: Attribute| {
        register("badly", ClientSpec::new(spec().plugin).with(name, value)).unwrap();
        backend("backend", Some("badly"), None).unwrap_err().to_string()
    };
    let many = Attribute::Text("many".to_owned());
    assert_eq!(
        refusal("cpu_device_count", many),
        "client: cpu_device_count is \"many\", it must be an integer in 1..=1024"
    );
    assert!(refusal("cpu_device_count", Attribute::Int(0)).contains("cpu_device_count is 0"));
    assert_eq!(
        refusal("memory_fraction", Attribute::Float(0.5)),
        "client \"badly\": unknown option \"memory_fraction\", it takes \"cpu_device_count\""
    );
}

#[test]
fn a_running_client_keeps_its_options() {
    let backend = own_backend("kept");
    register("kept", spec()).unwrap();
    let error = register("kept", ClientSpec::new(spec().plugin)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "client: the client \"kept\" is running with other options, the same options are required until the process ends; choose another name"
    );
    assert_eq!(backend.runtime().name(), "kept");
}

#[test]
fn a_limit_is_for_devices_that_have_one() {
    register("limited", ClientSpec { memory_limit: Some(1 << 20), ..spec() }).unwrap();
    let error = backend("backend", Some("limited"), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "memory_limit: the client \"limited\" runs on host, a platform that can be limited is required: \"cuda\" or \"rocm\""
    );
}

#[test]
fn clients_and_devices_are_listed() {
    let backend = host_backend(0);
    assert!(client_names().contains(&"host".to_owned()));
    set_default_client("host").unwrap();
    assert_eq!(default_client().as_deref(), Some("host"));
    assert!(set_default_client("unheard of").is_err());
    let (_, listed) = devices().into_iter().find(|(name, _)| name == "host").unwrap();
    let listed = listed.unwrap();
    assert_eq!(listed.len(), 4);
    assert_eq!(
        (listed[3].device_id, listed[3].platform.as_str(), listed[3].kind.as_str()),
        (3, "cpu", "cpu")
    );
    assert_eq!(listed[0].version, backend.runtime().plugin().version());
    assert_eq!(listed[0].plugin, spec().plugin);
}

#[test]
fn to_list_one_client_starts_no_other() {
    register("idle", spec()).unwrap();
    register("asked", spec()).unwrap();
    assert_eq!(devices_of("asked").unwrap().len(), 4);
    // Only a client that is not running can get other options.
    register("idle", ClientSpec::new(spec().plugin)).unwrap();
    assert!(register("asked", ClientSpec::new(spec().plugin)).is_err());
    let error = devices_of("unheard of").unwrap_err().to_string();
    assert!(error.starts_with("devices: the client \"unheard of\" is unknown"), "{error}");
}

#[test]
fn more_than_the_memory_is_refused_and_the_largest_tensors_named() {
    let backend = own_backend("memory");
    let small = floats(&*backend, &[0.0; 4096]);
    let mut ops = ops(&backend);
    let mut refusal = || {
        let error = ops.iota(Shape::new(&[1 << 44]), DType::F32, None).unwrap_err();
        assert_eq!(error.class(), ErrorClass::OutOfMemory);
        let text = error.to_string();
        assert!(text.starts_with("iota: the device of client \"memory\" has no memory left ("), "{text}");
        text
    };
    let text = refusal();
    assert!(text.contains("each of 1 live tensors has less than 65536 bytes"), "{text}");
    let large = floats(&*backend, &[0.0; 1 << 14]);
    let text = refusal();
    assert!(text.contains("the largest of 2 live tensors are f32[16384] of 65536 bytes"), "{text}");
    drop(large);
    let region = trace(&[ty(DType::F32, &[1 << 20])], |ops, x| {
        let row = ops.reshape(&x[0], [1_i64, 1 << 20], None)?;
        let column = ops.reshape(&x[0], [1_i64 << 20, 1], None)?;
        Ok(vec![ops.add(&row, &column)?])
    });
    let program = compiler(&backend).compile(region, Checks::default()).unwrap();
    let error = run(&*program, &backend, vec![floats(&*backend, &[0.0; 1 << 20])]).unwrap_err();
    assert_eq!(error.class(), ErrorClass::OutOfMemory, "{error}");
    assert_eq!(read(&small).len(), 4096);
}

#[test]
fn an_executable_is_saved_and_loaded() {
    let backend = host_backend(0);
    let region =
        trace(&[ty(DType::F32, &[2]), ty(DType::F32, &[2])], |ops, x| Ok(vec![ops.add(&x[0], &x[1])?]));
    let compiled = compiler(&backend).executable(region, Checks::default(), &[1]).unwrap();
    let bytes = compiled.to_bytes(b"a note").unwrap();
    let loading_backend = own_backend("loading");
    let (program, note) = compiler(&loading_backend).load(&bytes).unwrap();
    assert_eq!(note, b"a note");
    assert_eq!(program.to_bytes(b"a note").unwrap(), bytes, "what was loaded is saved as it was");
    assert_eq!(loading_backend.runtime().cache_report().compiles, 0);
    let (x, y) = (floats(&*loading_backend, &[1.0, 2.0]), floats(&*loading_backend, &[3.0, 4.0]));
    assert_eq!(read(&run(&program, &loading_backend, vec![x.clone(), y.clone()]).unwrap()[0]), [4.0, 6.0]);
    assert!(y.host_bytes("test").is_err(), "what was donated when it was saved is donated when it is run");
    for length in [0, 10, 40, bytes.len() / 2, bytes.len() - 1] {
        let error = compiler(&loading_backend).load(&bytes[..length]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Format, "{error}");
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 64) {
        let mut other = bytes.clone();
        other[at] ^= 4;
        let error = compiler(&loading_backend).load(&other).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Format, "byte {at}: {error}");
    }
}

#[test]
fn a_program_that_the_host_drives_is_saved_too() {
    let backend = host_backend(0);
    let region = trace(&[ty(DType::F32, &[])], |ops, x| {
        while_(
            ops,
            vec![x[0].clone()],
            None,
            |ops, state| Ok(ops.less(&state[0], 10.0)?.into()),
            |ops, state| {
                let hooked = ops.hook(0, None, &[state[0].clone()])?;
                Ok(vec![ops.multiply(&hooked[0], 2.0)?.into()])
            },
        )
    });
    let compiled = compiler(&backend).executable(region, Checks::default(), &[]).unwrap();
    let (program, _) = compiler(&backend).load(&compiled.to_bytes(&[]).unwrap()).unwrap();
    let one = ops(&backend).constant(DType::F32, 1.5).unwrap();
    assert_eq!(read(&run(&program, &backend, vec![one]).unwrap()[0]), [12.0]);
}

#[test]
fn targets_have_names_and_plugins() {
    let plugin = spec().plugin;
    let error = Target::new("abacus", "host", &plugin).unwrap_err();
    assert_eq!(error.to_string(), "compile: the target \"abacus\" is unknown, it must be one of \"h200\"");
    let error = Target::new("h200", "host", &plugin).unwrap_err();
    assert!(error.to_string().contains("Topology not supported for CPU"), "{error}");
    assert!(Target::new("h200", "cuda", "no/such/plugin.so").is_err());
}

#[test]
fn a_folder_is_a_path() {
    let number = ("cache_dir".to_owned(), Attribute::Int(3));
    let error = CompilerOptions::parse(&[number]).unwrap_err();
    assert_eq!(error.to_string(), "compiler \"pjrt\": cache_dir is 3, it must be the path of a folder");
    let compiler = PjrtCompiler::new(host_backend(0), cpu_backend(), CompilerOptions::default());
    assert_eq!(compiler.name(), "pjrt");
}
