//! A stage as text: its position and the sources of its inputs, then the IR text of its region.
//!
//! ```text
//! defn-stage 1
//! stage 1 of 2
//! split 1234
//! whole (s32, s32; f32[3])
//! takes argument 1, output 0 of stage 0, capture 0
//! (s32, f32; f32[3]) {
//!   ...
//! }
//! ```

use std::sync::Arc;

use super::parse::Parser;
use super::text::types_text;
use crate::error::Result;
use crate::region::Region;
use crate::stage::{Parts, Source, Stage};

/// The only version of the text that this build writes and reads.
const VERSION: u32 = 1;

impl Stage {
    /// The whole stage as text, which [`Stage::from_text`] parses to an equal stage. Locations and the
    /// elements of captured tensors are left out.
    ///
    /// ```
    /// use defn_core::region::Region;
    /// use defn_core::stage::{Rule, Stage, split_by};
    /// let region = Region::from_text("defn-ir 1
    ///     (f32) {
    ///       %0 = parameter {index: 0} : f32
    ///       %1 = sin %0 : f32
    ///       %2 = cos %1 : f32
    ///       return %2
    ///     }")?;
    /// let stages = split_by(&region, &Rule::Every(1))?;
    /// let again = Stage::from_text(&stages[1].to_text())?;
    /// assert_eq!(again.region(), stages[1].region());
    /// assert_eq!(again.sources(), stages[1].sources());
    /// assert_eq!(again.id(), stages[1].id());
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    pub fn to_text(&self) -> String {
        self.text(Region::to_text)
    }

    /// As [`Stage::to_text`], with the user's line beside each node.
    pub fn to_text_with_locations(&self) -> String {
        self.text(Region::to_text_with_locations)
    }

    fn text(&self, region_text: fn(&Region) -> String) -> String {
        let Parts { split, position, stages, inputs, parameters, sources, region } = self.parts();
        let mut takes: Vec<String> = sources.iter().map(Source::to_string).collect();
        if takes.is_empty() {
            takes.push("nothing".to_owned());
        }
        let (takes, whole) = (takes.join(", "), types_text(&inputs, parameters));
        let head = format!("stage {position} of {stages}\nsplit {split}\nwhole {whole}\ntakes {takes}");
        format!("defn-stage {VERSION}\n{head}\n{}", region_text(&region))
    }

    /// Parses the output of [`Stage::to_text`] and of [`Stage::to_text_with_locations`].
    ///
    /// # Errors
    /// `IrText` with the line: errors of [`Region::from_text`](crate::region::Region::from_text) in the
    /// region, text of another form or version, and sources that do not match the region's inputs.
    pub fn from_text(text: &str) -> Result<Stage> {
        let mut parser = Parser::new(text);
        parser.word("defn-stage")?;
        parser.version(VERSION)?;
        parser.word("stage")?;
        let position = parser.index()?;
        parser.word("of")?;
        let stages = parser.index()?;
        parser.word("split")?;
        let split = parser.index()?;
        parser.word("whole")?;
        let (inputs, parameters) = parser.inputs()?;
        parser.word("takes")?;
        let mut sources = Vec::new();
        loop {
            let kind = parser.name()?;
            match kind {
                "nothing" if sources.is_empty() => break,
                "argument" => sources.push(Source::Argument(parser.index()?)),
                "capture" => sources.push(Source::Capture(parser.index()?)),
                "output" => {
                    let output = parser.index()?;
                    parser.word("of")?;
                    parser.word("stage")?;
                    sources.push(Source::Output { stage: parser.index()?, output });
                }
                other => return Err(parser.error(format!("\"{other}\" is no source of an input"))),
            }
            if !parser.take(',') {
                break;
            }
        }
        let region = Arc::new(parser.program()?);
        let parts = Parts { split, position, stages, inputs, parameters, sources, region };
        Stage::from_parts(parts).map_err(|problem| parser.error(problem))
    }
}
