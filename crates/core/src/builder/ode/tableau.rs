//! The coefficients of explicit Runge-Kutta methods of order 5, with an error estimate and dense output of order 4. The
//! last stage of a step is the first one of the next.

/// The stages of a method.
pub(super) const STAGES: usize = 7;

/// The powers in dense output.
pub(super) const POWERS: usize = 4;

/// The coefficients of a method.
pub(super) struct Tableau {
    /// The times of the stages after the first, as parts of the step.
    pub(super) times: [f64; STAGES - 1],
    /// What each stage after the first adds of those before; the last row is the result of the step.
    pub(super) stages: [[f64; STAGES - 1]; STAGES - 1],
    /// What the error estimate has of each stage.
    pub(super) error: [f64; STAGES],
    /// What dense output has of each stage, for each power of the part of the step from the first on.
    pub(super) dense: [[f64; POWERS]; STAGES],
}

/// Tsitouras, "Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption" (2011).
#[allow(clippy::unreadable_literal, reason = "the digits are those of the paper")]
pub(super) const TSITOURAS: Tableau = Tableau {
    times: [0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0],
    stages: [
        [0.161, 0.0, 0.0, 0.0, 0.0, 0.0],
        [-0.008480655492356989, 0.335480655492357, 0.0, 0.0, 0.0, 0.0],
        [2.8971530571054935, -6.359448489975075, 4.3622954328695815, 0.0, 0.0, 0.0],
        [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525, 0.0, 0.0],
        [
            5.86145544294642,
            -12.92096931784711,
            8.159367898576159,
            -0.071584973281401,
            -0.028269050394068383,
            0.0,
        ],
        [
            0.09646076681806523,
            0.01,
            0.4798896504144996,
            1.379008574103742,
            -3.290069515436081,
            2.324710524099774,
        ],
    ],
    error: [
        -0.001780011052225777,
        -0.0008164344596567469,
        0.007880878010261995,
        -0.1447110071732629,
        0.5823571654525552,
        -0.45808210592918697,
        1.0 / 66.0,
    ],
    dense: [
        [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
        [0.0, 0.1317, -0.2234, 0.1017],
        [0.0, 3.930296236894751, -5.941033872131505, 2.490627285651253],
        [0.0, -12.411077166933676, 30.338188630282318, -16.548102889244902],
        [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
        [0.0, -27.896526289197286, 65.09189467479368, -34.87065786149661],
        [0.0, 1.5, -4.0, 2.5],
    ],
};

/// Dormand & Prince, "A family of embedded Runge-Kutta formulae" (1980), with the dense output of Shampine (1986).
#[allow(clippy::unreadable_literal, reason = "the digits are those of the paper")]
pub(super) const DORMAND_PRINCE: Tableau = Tableau {
    times: [1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0],
    stages: [
        [1.0 / 5.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0, 0.0],
        [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0, 0.0],
        [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0, 0.0],
        [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0, 0.0],
        [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
    ],
    error: [
        71.0 / 57600.0,
        0.0,
        -71.0 / 16695.0,
        71.0 / 1920.0,
        -17253.0 / 339200.0,
        22.0 / 525.0,
        -1.0 / 40.0,
    ],
    dense: [
        [1.0, -2.8535800653862835, 3.0717434641059005, -1.1270175653862835],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 4.023133379230305, -6.249321565289, 2.675424484351598],
        [0.0, -3.7324019615885042, 10.068970589843675, -5.685526961588504],
        [0.0, 2.5548038301849423, -6.399112377351017, 3.5219323679207912],
        [0.0, -1.3744241142186024, 3.272657752246729, -1.7672812570757455],
        [0.0, 1.3824689317781436, -3.764937863556287, 2.382468931778144],
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-13, "{got} is not {want}");
    }

    #[test]
    fn the_coefficients_satisfy_the_conditions_of_order() {
        for tableau in [&TSITOURAS, &DORMAND_PRINCE] {
            let times: Vec<f64> = std::iter::once(0.0).chain(tableau.times).collect();
            for (row, time) in tableau.stages.iter().zip(tableau.times) {
                near(row.iter().sum(), time);
            }
            let last = tableau.stages[STAGES - 2];
            for power in 0..5 {
                let moment: f64 = last.iter().zip(&times).map(|(b, c)| b * c.powi(power)).sum();
                near(moment, 1.0 / f64::from(power + 1));
            }
            // The estimate is the difference of two methods of at least order 4.
            for power in 0..4 {
                let moment: f64 = tableau.error.iter().zip(&times).map(|(e, c)| e * c.powi(power)).sum();
                near(moment, 0.0);
            }
            // At the end of the step, dense output is its result; at every part of it, of order 4.
            for (row, stage) in tableau.dense.iter().enumerate() {
                near(stage.iter().sum(), last.get(row).copied().unwrap_or(0.0));
            }
            for part in [0.2_f64, 0.5, 0.9] {
                for power in 0..4 {
                    let weights = tableau.dense.map(|stage| {
                        stage.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * part)
                    });
                    let moment: f64 = weights.iter().zip(&times).map(|(w, c)| w * c.powi(power)).sum();
                    near(moment, part.powi(power + 1) / f64::from(power + 1));
                }
            }
        }
    }
}
