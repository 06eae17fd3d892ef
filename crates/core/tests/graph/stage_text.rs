//! Stages as text.

use defn_core::region::Region;
use defn_core::stage::{self, Rule, Stage};
use insta::assert_snapshot;

fn parse(text: &str) -> Region {
    Region::from_text(&format!("defn-ir 1\n{text}")).unwrap()
}

/// Texts with a word removed, doubled or replaced are parsed or refused, without a panic.
#[test]
fn damaged_texts_are_refused() {
    let region = parse(
        "(f32, s32[2]; f32[2]) {
            %0 = parameter {index: 0} : f32
            %1 = parameter {index: 2} : f32[2]
            %2 = sin %0 : f32
            %3 = add %2 %1 : f32[2]
            return %3
        }",
    );
    let stages = stage::split_by(&region, &Rule::Every(1)).unwrap();
    let text = stages[1].to_text();
    let words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
    let others =
        ["nothing ", "stage ", "output ", "18446744073709551615 ", "capture ", "f32[9], ", "; ", ") "];
    let mut read = 0;
    for at in 0..words.len() {
        let with = |word: &[&str]| [&words[..at], word, &words[at + 1..]].concat().concat();
        let damaged = others.iter().map(|other| with(&[other]));
        for text in damaged.chain([with(&[]), with(&[words[at], words[at]])]) {
            match Stage::from_text(&text) {
                Ok(stage) => {
                    assert_eq!(Stage::from_text(&stage.to_text()).unwrap().to_text(), stage.to_text());
                    read += 1;
                }
                Err(error) => assert!(error.to_string().starts_with("from_text: line "), "{error}"),
            }
        }
    }
    // Another split hash, or more stages, cannot be detected from a single stage.
    assert!((1..40).contains(&read), "{read}");
    let refused = |from: &str, to: &str| {
        let error = Stage::from_text(&text.replacen(from, to, 1)).unwrap_err().to_string();
        error.split_once(": ").unwrap().1.split_once(": ").unwrap().1.to_owned()
    };
    let lines = [
        refused("stage 1 of 2", "stage 2 of 2"),
        refused("defn-stage 1", "defn-stage 2"),
        refused("of stage 0", "of stage 1"),
        refused("output 0 of stage 0, capture 0", "capture 0, output 0 of stage 0"),
        refused("output 0 of stage 0, capture 0", "output 0 of stage 0"),
        refused("capture 0", "capture 1"),
        refused("takes output 0 of stage 0", "takes argument 1"),
        refused("takes output", "takes input"),
    ];
    assert_snapshot!(lines.join("\n"), @r#"
    stage 2 of 2, the first is stage 0
    version 2, this build reads version 1
    there is no output 0 of stage 1 of the type f32
    capture 0 stands before output 0 of stage 0, ascending sources are required
    0 sources for 1 captures, one for each is required
    there is no capture 1 of the type f32[2]
    there is no argument 1 of the type f32
    "input" is no source of an input
    "#);
}
