//! Pictures of regions and of stages.

use std::collections::BTreeSet;

use crate::common::regions;
use defn_core::print::{dot, dot_of_stages, mermaid, mermaid_of_stages};
use defn_core::region::Region;
use defn_core::stage::{self, Rule};
use insta::assert_snapshot;
use proptest::prelude::*;

fn parse(text: &str) -> Region {
    Region::from_text(&format!("defn-ir 1\n{text}")).unwrap()
}

fn looping() -> Region {
    parse(
        r#"(f32; f32["a<b": 2]) {
            %0 = parameter {index: 0} : f32
            %1 = constant {value: 2.5} : f32
            %2 = multiply %0 %1 : f32
            %3 = parameter {index: 1} : f32["a<b": 2]
            %4 = while %2 %3 {state: 1, trips: 3} : f32
              cond (f32; f32["a<b": 2]) {
                %0 = parameter {index: 0} : f32
                return %0
              }
              body (f32; f32["a<b": 2]) {
                %0 = parameter {index: 0} : f32
                %1 = parameter {index: 1} : f32["a<b": 2]
                %2 = sum %1 {axes: [0], keep_axes: false} : f32
                %3 = add %0 %2 : f32
                return %3
              }
            %5 = mark %4 {name: "say \"end\"; #1"} : f32
            %6 = sin %5 : f32
            return %6 %1
        }"#,
    )
}

#[test]
fn regions_are_boxes() {
    assert_snapshot!(mermaid(&looping()), @r#"
    flowchart TD
      in0(["parameter 0<br/>f32"])
      in1(["capture 0<br/>f32[#34;a#60;b#34;: 2]"])
      n2["multiply<br/>b: 2.5<br/>f32"]
      n5["mark<br/>name: #34;say #92;#34;end#92;#34;#59; #35;1#34;<br/>f32"]
      n6["sin<br/>f32"]
      out0(["result 0<br/>f32"])
      out1(["result 1: 2.5<br/>f32"])
      subgraph n4_box["while"]
        n4["while<br/>state: 1, trips: 3<br/>f32"]
        subgraph n4_0_box["cond"]
          n4_0_in0(["parameter 0<br/>f32"])
          n4_0_out0(["result 0<br/>f32"])
        end
        subgraph n4_1_box["body"]
          n4_1_in0(["parameter 0<br/>f32"])
          n4_1_in1(["capture 0<br/>f32[#34;a#60;b#34;: 2]"])
          n4_1_n2["sum<br/>axes: [0], keep_axes: false<br/>f32"]
          n4_1_n3["add<br/>f32"]
          n4_1_out0(["result 0<br/>f32"])
        end
      end
      in0 --> n2
      n2 --> n4
      in1 --> n4
      n4_0_in0 --> n4_0_out0
      n4_1_in1 --> n4_1_n2
      n4_1_in0 --> n4_1_n3
      n4_1_n2 --> n4_1_n3
      n4_1_n3 --> n4_1_out0
      n4 --> n5
      n5 --> n6
      n6 --> out0
    "#);
    assert_snapshot!(dot(&looping()), @r#"
    digraph {
      node [shape=box]
      in0 [label="parameter 0\nf32", shape=ellipse]
      in1 [label="capture 0\nf32[\"a<b\": 2]", shape=ellipse]
      n2 [label="multiply\nb: 2.5\nf32"]
      n5 [label="mark\nname: \"say \\\"end\\\"; #1\"\nf32"]
      n6 [label="sin\nf32"]
      out0 [label="result 0\nf32", shape=ellipse]
      out1 [label="result 1: 2.5\nf32", shape=ellipse]
      subgraph cluster_n4_box {
        label="while"
        n4 [label="while\nstate: 1, trips: 3\nf32"]
        subgraph cluster_n4_0_box {
          label="cond"
          n4_0_in0 [label="parameter 0\nf32", shape=ellipse]
          n4_0_out0 [label="result 0\nf32", shape=ellipse]
        }
        subgraph cluster_n4_1_box {
          label="body"
          n4_1_in0 [label="parameter 0\nf32", shape=ellipse]
          n4_1_in1 [label="capture 0\nf32[\"a<b\": 2]", shape=ellipse]
          n4_1_n2 [label="sum\naxes: [0], keep_axes: false\nf32"]
          n4_1_n3 [label="add\nf32"]
          n4_1_out0 [label="result 0\nf32", shape=ellipse]
        }
      }
      in0 -> n2
      n2 -> n4
      in1 -> n4
      n4_0_in0 -> n4_0_out0
      n4_1_in1 -> n4_1_n2
      n4_1_in0 -> n4_1_n3
      n4_1_n2 -> n4_1_n3
      n4_1_n3 -> n4_1_out0
      n4 -> n5
      n5 -> n6
      n6 -> out0
    }
    "#);
}

#[test]
fn stages_are_boxes() {
    let region = parse(
        "(f32[4], f32[4]) {
            %0 = parameter {index: 0} : f32[4]
            %1 = parameter {index: 1} : f32[4]
            %2 = top_k %0 {k: 2} : f32[2], s32[2]
            %3 = sin %2 : f32[2]
            %4 = add %3 %2.1 : f32[2]
            %5 = sum %1 {axes: [0], keep_axes: false} : f32
            %6 = add %4 %5 : f32[2]
            return %6
        }",
    );
    let stages = stage::split_by(&region, &Rule::Every(2)).unwrap();
    assert_snapshot!(mermaid_of_stages(&stages), @r#"
    flowchart TD
      argument0(["argument 0<br/>f32[4]"])
      argument1(["argument 1<br/>f32[4]"])
      out0(["result 0<br/>f32[2]"])
      subgraph stage0["stage 0"]
        s0_n1["top_k<br/>k: 2<br/>f32[2], s32[2]"]
        s0_n2["sin<br/>f32[2]"]
      end
      subgraph stage1["stage 1"]
        s1_n3["add<br/>f32[2]"]
        s1_n4["sum<br/>axes: [0], keep_axes: false<br/>f32"]
      end
      subgraph stage2["stage 2"]
        s2_n2["add<br/>f32[2]"]
      end
      argument0 --> s0_n1
      s0_n1 -->|".0"| s0_n2
      s0_n2 --> s1_n3
      s0_n1 -->|".1"| s1_n3
      argument1 --> s1_n4
      s1_n3 --> s2_n2
      s1_n4 --> s2_n2
      s2_n2 --> out0
    "#);
    assert_snapshot!(dot_of_stages(&stages), @r#"
    digraph {
      node [shape=box]
      argument0 [label="argument 0\nf32[4]", shape=ellipse]
      argument1 [label="argument 1\nf32[4]", shape=ellipse]
      out0 [label="result 0\nf32[2]", shape=ellipse]
      subgraph cluster_stage0 {
        label="stage 0"
        s0_n1 [label="top_k\nk: 2\nf32[2], s32[2]"]
        s0_n2 [label="sin\nf32[2]"]
      }
      subgraph cluster_stage1 {
        label="stage 1"
        s1_n3 [label="add\nf32[2]"]
        s1_n4 [label="sum\naxes: [0], keep_axes: false\nf32"]
      }
      subgraph cluster_stage2 {
        label="stage 2"
        s2_n2 [label="add\nf32[2]"]
      }
      argument0 -> s0_n1
      s0_n1 -> s0_n2 [label=".0"]
      s0_n2 -> s1_n3
      s0_n1 -> s1_n3 [label=".1"]
      argument1 -> s1_n4
      s1_n3 -> s2_n2
      s1_n4 -> s2_n2
      s2_n2 -> out0
    }
    "#);
}

/// The names of a picture's shapes, and the names at the ends of its arrows.
fn names(mermaid: &str) -> (Vec<String>, BTreeSet<String>) {
    let (mut shapes, mut ends) = (Vec::new(), BTreeSet::new());
    for line in mermaid.lines().skip(1).map(str::trim) {
        if let Some((from, to)) = line.split_once(" -->") {
            ends.insert(from.to_owned());
            ends.insert(to.rsplit(' ').next().unwrap().to_owned());
        } else if line != "end" {
            let line = line.strip_prefix("subgraph ").unwrap_or(line);
            shapes.push(line.split(['[', '(']).next().unwrap().to_owned());
        }
    }
    (shapes, ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Names of shapes are unique, and every arrow connects two shapes.
    #[test]
    fn pictures_hang_together(region in regions(), count in 1usize..9) {
        let stages = stage::split_by(&region, &Rule::Every(count)).unwrap();
        for picture in [mermaid(&region), mermaid_of_stages(&stages)] {
            let (shapes, ends) = names(&picture);
            let known: BTreeSet<String> = shapes.iter().cloned().collect();
            prop_assert_eq!(known.len(), shapes.len(), "{}", picture);
            prop_assert!(ends.is_subset(&known), "{}", picture);
            let opened = picture.lines().filter(|line| line.trim().starts_with("subgraph ")).count();
            prop_assert_eq!(opened, picture.lines().filter(|line| line.trim() == "end").count());
        }
        for picture in [dot(&region), dot_of_stages(&stages)] {
            let brackets = |mark: char| -> usize {
                let ends = |line: &&str| line.ends_with(mark);
                picture.lines().filter(ends).count()
            };
            prop_assert_eq!(brackets('{'), brackets('}'), "{}", picture);
        }
    }
}
