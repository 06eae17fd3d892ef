//! Compile options in the encoding that plugins read: XLA's `CompileOptionsProto`, as a Protocol Buffers message
//! (version 3 of the language, whose wire format is public).

use crate::plugin::Attribute;

/// A flag that is passed only to programs that contain one of some words: XLA copies a program's flags at each run,
/// which takes 0.07 us.
struct RequiredFlag {
    flag: &'static str,
    value: Attribute,
    words: &'static [&'static str],
}

/// Passed before the caller's flags, which may override them. Without these flags XLA omits roundings to narrower types
/// between operations, and some versions on the CPU return the number as the maximum of a number and NaN.
const NEEDED: &[RequiredFlag] = &[
    RequiredFlag {
        flag: "xla_allow_excess_precision",
        value: Attribute::Bool(false),
        words: &["convert", "f16", "f8E", "f4E", "chlo."],
    },
    RequiredFlag {
        flag: "xla_cpu_enable_fast_min_max",
        value: Attribute::Bool(false),
        words: &["maximum", "minimum", "clamp", "chlo."],
    },
];

impl RequiredFlag {
    /// A program that is not text (bytecode) may contain any operation, so it gets every flag.
    fn is_for(&self, text: Option<&str>) -> bool {
        text.is_none_or(|text| self.words.iter().any(|word| text.contains(word)))
    }
}

/// The flag with which XLA on the CPU computes sums and products with a kernel library, which is several times as fast
/// as its own loops.
pub(crate) const LIBRARY: &str = "xla_cpu_experimental_ynn_fusion_type";
const LIBRARY_USES: &str = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE";

/// How to compile a program.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileOptions {
    /// The number of replicas, which run side by side on different devices.
    pub replicas: i64,
    /// The number of devices over which one replica is partitioned.
    pub partitions: i64,
    /// The ids of the devices, `replicas` rows of `partitions` each; with `None` the plugin chooses.
    pub devices: Option<Vec<i64>>,
    /// Chooses the device when the program runs, not when it is compiled.
    pub portable: bool,
    /// XLA's flags without the leading dashes, such as `xla_gpu_autotune_level`.
    pub flags: Vec<(String, Attribute)>,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { replicas: 1, partitions: 1, devices: None, portable: false, flags: Vec::new() }
    }
}

impl CompileOptions {
    /// These options with XLA's kernel library, unless the caller's flags set it otherwise.
    pub(crate) fn with_library(&self) -> CompileOptions {
        let mut options = self.clone();
        options.flags.insert(0, (LIBRARY.to_owned(), Attribute::Text(LIBRARY_USES.to_owned())));
        options
    }

    /// The encoded message for a program.
    pub fn to_bytes(&self, program: &[u8]) -> Vec<u8> {
        let mut build = Message::default();
        build.int(4, self.replicas);
        build.int(5, self.partitions);
        if let Some(devices) = &self.devices {
            build.message(9, &self.assignment(devices));
        }
        let mut options = Message::default();
        options.message(3, &build);
        if self.portable {
            options.int(4, 1);
        }
        let user_flags = self.flags.iter().map(|(name, value)| (name.as_str(), value));
        let text = std::str::from_utf8(program).ok();
        let needed = NEEDED.iter().filter(|needed| needed.is_for(text));
        for (name, value) in needed.map(|needed| (needed.flag, &needed.value)).chain(user_flags) {
            let mut field = Message::default();
            match value {
                Attribute::Text(text) => field.bytes(1, text.as_bytes()),
                Attribute::Bool(value) => field.int(2, i64::from(*value)),
                Attribute::Int(value) => field.int(3, *value),
                Attribute::Float(value) => field.double(4, f64::from(*value)),
                Attribute::Ints(values) => {
                    let texts: Vec<String> = values.iter().map(i64::to_string).collect();
                    field.bytes(1, texts.join(",").as_bytes());
                }
            }
            let mut entry = Message::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &field);
            options.message(7, &entry);
        }
        options.0
    }

    /// A `DeviceAssignmentProto`: for each partition, the devices of all replicas.
    fn assignment(&self, devices: &[i64]) -> Message {
        let mut assignment = Message::default();
        assignment.int(1, self.replicas);
        assignment.int(2, self.partitions);
        let partitions = usize::try_from(self.partitions).unwrap_or(1).max(1);
        for partition in 0..partitions {
            let mut column = Message::default();
            for &device in devices.iter().skip(partition).step_by(partitions) {
                column.int(1, device);
            }
            assignment.message(3, &column);
        }
        assignment
    }
}

/// A message under construction: a sequence of fields, each preceded by its number and wire type.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn int(&mut self, field: u64, value: i64) {
        self.varint(field << 3);
        self.varint(value.cast_unsigned());
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_message_is_the_one_that_plugins_take() {
        let flag = |head: &[u8], name: &str| [head, name.as_bytes(), &[0x12, 0x02, 0x10, 0x00]].concat();
        let flags = [
            flag(&[0x3a, 0x20, 0x0a, 0x1a], "xla_allow_excess_precision"),
            flag(&[0x3a, 0x21, 0x0a, 0x1b], "xla_cpu_enable_fast_min_max"),
        ];
        let least = vec![0x1a, 0x04, 0x20, 0x01, 0x28, 0x01];
        let bytes = |program: &[u8]| CompileOptions::default().to_bytes(program);
        assert_eq!(bytes(b"stablehlo.add f32"), least);
        assert_eq!(bytes(b"stablehlo.add bf16"), [&least[..], &flags[0]].concat());
        assert_eq!(bytes(b"stablehlo.maximum"), [&least[..], &flags[1]].concat());
        assert_eq!(bytes(&[0xff]), [&least[..], &flags.concat()].concat(), "what is no text may be anything");
    }

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let mut message = Message::default();
        message.int(1, 300);
        message.int(2, -1);
        assert_eq!(message.0[..3], [0x08, 0xac, 0x02]);
        assert_eq!(message.0[3..].len(), 11, "a negative number takes ten bytes after its field");
    }

    #[test]
    fn devices_go_by_partition() {
        let options = CompileOptions {
            replicas: 2,
            partitions: 2,
            devices: Some(vec![0, 1, 2, 3]),
            ..Default::default()
        };
        let bytes = options.to_bytes(b"");
        let columns = [[0x1a, 0x04, 0x08, 0x00, 0x08, 0x02], [0x1a, 0x04, 0x08, 0x01, 0x08, 0x03]].concat();
        assert!(bytes.windows(columns.len()).any(|part| part == columns), "{bytes:?}");
    }
}
