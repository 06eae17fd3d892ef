//! The whole API through a real plugin: XLA's for the CPU.

use std::sync::OnceLock;

use defn_pjrt::{Attribute, Client, CompileOptions, ElementType, Error, Placement, Plugin};

const ADD: &str =
    "module @add { func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %a, %b : tensor<2x3xf32>
  return %0 : tensor<2x3xf32> } }";
const DONATING: &str =
    "module @twice { func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32> } }";

fn plugin() -> &'static Plugin {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    PLUGIN.get_or_init(|| Plugin::load(crate::device::wheel::file("xla_cpu_pjrt.so")).unwrap())
}

fn client() -> Client {
    plugin().client(&[("cpu_device_count".to_owned(), Attribute::Int(4))]).unwrap()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

#[test]
fn a_program_runs_and_its_result_is_read() {
    let client = client();
    assert_eq!(client.platform_name().unwrap(), "cpu");
    let devices = client.addressable_devices().unwrap();
    assert_eq!(devices.len(), 4);
    let executable = client.compile(ADD.as_bytes(), &CompileOptions::default()).unwrap();
    assert_eq!(executable.executable().name().unwrap(), "add");
    assert_eq!(executable.executable().outputs().unwrap(), [(ElementType::F32, vec![2, 3])]);
    let placement = Placement::Device(&devices[0]);
    let a =
        client.buffer(&bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ElementType::F32, &[2, 3], placement).unwrap();
    let sums = executable.run(&[&a, &a], &[], None).unwrap();
    assert_eq!(sums.len(), 1);
    sums[0].ready().unwrap().wait().unwrap();
    assert_eq!((sums[0].dims().unwrap(), sums[0].element_type().unwrap()), (vec![2, 3], ElementType::F32));
    let mut read = vec![0; 24];
    sums[0].read(&mut read).unwrap();
    assert_eq!(floats(&read), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let mut start = vec![0; 8];
    sums[0].read_start(&mut start).unwrap();
    assert_eq!(floats(&start), [2.0, 4.0]);
}

#[test]
fn an_executable_is_written_and_loaded() {
    let client = client();
    let device = &client.addressable_devices().unwrap()[0];
    let serialized =
        client.compile(ADD.as_bytes(), &CompileOptions::default()).unwrap().executable().serialize().unwrap();
    let executable = client.load(&serialized).unwrap();
    let a = client.buffer(&bytes(&[1.0; 6]), ElementType::F32, &[2, 3], Placement::Device(device)).unwrap();
    let mut read = vec![0; 24];
    executable.run(&[&a, &a], &[], None).unwrap()[0].read(&mut read).unwrap();
    assert_eq!(floats(&read), [2.0; 6]);
    assert!(client.load(&serialized[..serialized.len() / 2]).is_err());
}

#[test]
fn replicas_run_on_their_devices() {
    let client = client();
    let devices = client.addressable_devices().unwrap();
    let options =
        CompileOptions { replicas: 4, devices: Some(vec![0, 1, 2, 3]), ..CompileOptions::default() };
    let executable = client.compile(ADD.as_bytes(), &options).unwrap();
    let on = executable.devices().unwrap();
    let inputs: Vec<_> = on
        .iter()
        .zip(1_u8..)
        .map(|(device, n)| {
            client
                .buffer(&bytes(&[f32::from(n); 6]), ElementType::F32, &[2, 3], Placement::Device(device))
                .unwrap()
        })
        .collect();
    let lists: Vec<Vec<&_>> = inputs.iter().map(|input| vec![input, input]).collect();
    let lists: Vec<&[&_]> = lists.iter().map(Vec::as_slice).collect();
    for ((outputs, device), n) in executable.run_all(&lists, &[]).unwrap().iter().zip(&devices).zip(1_u8..) {
        assert!(outputs[0].device().unwrap() == *device);
        let mut read = vec![0; 24];
        outputs[0].read(&mut read).unwrap();
        assert_eq!(floats(&read), [2.0 * f32::from(n); 6]);
    }
}

#[test]
fn donated_arguments_are_used_up_unless_they_are_kept() {
    let client = client();
    let device = &client.addressable_devices().unwrap()[0];
    let executable = client.compile(DONATING.as_bytes(), &CompileOptions::default()).unwrap();
    let a = client
        .buffer(&bytes(&[1.0, 2.0, 3.0, 4.0]), ElementType::F32, &[4], Placement::Device(device))
        .unwrap();
    executable.run(&[&a], &[0], None).unwrap();
    assert!(!a.is_deleted().unwrap());
    let twice = executable.run(&[&a], &[], None).unwrap();
    assert!(a.is_deleted().unwrap());
    let mut read = vec![0; 16];
    twice[0].read(&mut read).unwrap();
    assert_eq!(floats(&read), [2.0, 4.0, 6.0, 8.0]);
    assert!(a.read(&mut read).is_err());
}

#[test]
fn buffers_are_copied_between_devices_and_freed() {
    let client = client();
    let devices = client.addressable_devices().unwrap();
    let a =
        client.buffer(&bytes(&[1.0, 2.0]), ElementType::F32, &[2], Placement::Device(&devices[0])).unwrap();
    let b = a.copy_to(&devices[3]).unwrap();
    a.delete().unwrap();
    assert!(a.is_deleted().unwrap());
    assert!(a.copy_to(&devices[1]).is_err());
    assert!(b.device().unwrap() == devices[3]);
    let mut read = vec![0; 8];
    b.read(&mut read).unwrap();
    assert_eq!(floats(&read), [1.0, 2.0]);
}

#[test]
fn what_is_wrong_is_an_error() {
    let client = client();
    let device = &client.addressable_devices().unwrap()[0];
    let error = client.compile(b"module {", &CompileOptions::default()).err().unwrap();
    assert!(matches!(error, Error::Plugin { call: "PJRT_Client_Compile", .. }), "{error}");
    let few = client.buffer(&[0; 7], ElementType::F32, &[2], Placement::Device(device)).err().unwrap();
    assert_eq!(few.to_string(), "buffer: 7 bytes, 8 are required for elements of type f32 and the sizes [2]");
    let negative = client.buffer(&[], ElementType::F32, &[-1], Placement::Device(device)).err().unwrap();
    assert_eq!(
        negative.to_string(),
        "buffer: 0 bytes, a size that exists is required for elements of type f32 and the sizes [-1]"
    );
    let executable = client.compile(ADD.as_bytes(), &CompileOptions::default()).unwrap();
    let a = client.buffer(&bytes(&[1.0; 6]), ElementType::F32, &[2, 3], Placement::Device(device)).unwrap();
    assert!(executable.run(&[&a], &[], None).is_err());
    let other = client.buffer(&bytes(&[1.0; 2]), ElementType::F32, &[2], Placement::Device(device)).unwrap();
    assert!(executable.run(&[&a, &other], &[], None).is_err());
    let mut read = [0; 4];
    assert!(matches!(a.read(&mut read), Err(Error::Size { given: 4, .. })));
}
