use super::*;

/// A made scatter between −1 and 1 that is the same in each run.
fn scatter(at: u32) -> f64 {
    f64::from(at.wrapping_mul(2_654_435_761) >> 16) / 32_768.0 - 1.0
}

fn learn(mean: &mut Recursive<1>, values: impl IntoIterator<Item = f64>) {
    for value in values {
        mean.observe(&[1.0], value);
    }
}

#[test]
fn a_line_is_found_and_its_scatter_reported() {
    let mut line = Recursive::new([0.0, 0.0], [3.0, 3.0], 1.0, 0.995);
    for at in 0..400 {
        let x = f64::from(at % 20) / 10.0;
        line.observe(&[1.0, x], 2.0 - 0.5 * x + 0.1 * scatter(at));
    }
    let found = line.predict(&[1.0, 1.5]);
    assert!((found.mean - 1.25).abs() < 0.03, "{found:?}");
    assert!((0.03..0.1).contains(&found.deviation), "{found:?}");
}

#[test]
fn before_a_sample_it_says_what_it_was_given_and_how_unsure_that_is() {
    let prior = Recursive::new([1.0, 0.5], [0.3, 0.4], 0.1, 0.99);
    let found = prior.predict(&[1.0, 2.0]);
    assert!((found.mean - 2.0).abs() < 1e-12);
    // 0.3² + (2 · 0.4)² + 0.1²
    assert!((found.deviation - 0.74_f64.sqrt()).abs() < 1e-9, "{found:?}");
}

#[test]
fn one_stall_does_not_undo_what_was_learned() {
    let mut mean = Recursive::new([0.0], [3.0], 1.0, 0.995);
    learn(&mut mean, (0..200).map(|at| 1.0 + 0.05 * scatter(at)));
    mean.observe(&[1.0], 1e9);
    mean.observe(&[1.0], f64::NAN);
    mean.observe(&[1.0], f64::INFINITY);
    assert!((mean.predict(&[1.0]).mean - 1.0).abs() < 0.02, "{:?}", mean.predict(&[1.0]));
}

#[test]
fn it_follows_what_moved() {
    let mut mean = Recursive::new([0.0], [3.0], 1.0, 0.99);
    learn(&mut mean, (0..500).map(|at| 0.2 * scatter(at)));
    learn(&mut mean, [1.5; 500]);
    assert!((mean.predict(&[1.0]).mean - 1.5).abs() < 0.15, "{:?}", mean.predict(&[1.0]));
}

#[test]
fn a_feature_that_never_varies_does_not_wind_up() {
    let mut flat = Recursive::new([0.0, 0.0], [1.0, 1.0], 0.5, 0.9);
    for at in 0..100_000 {
        flat.observe(&[1.0, 0.0], scatter(at));
    }
    let found = flat.predict(&[1.0, 1.0]);
    assert!(found.deviation.is_finite() && found.deviation < 5.0, "{found:?}");
}

#[test]
fn a_cubic_polynomial_is_found_over_five_orders_of_magnitude() {
    let value = |x: f64| 0.001 + 0.05 * x - 0.002 * x * x + 0.0001 * x * x * x;
    let mut cubic = Cubic::default();
    let sizes = [0.0009, 0.002, 0.046, 0.2, 0.9, 3.5, 7.0, 12.0, 25.9, 44.0];
    sizes.iter().for_each(|&x| cubic.observe(x, value(x)));
    for x in [0.01, 1.0, 10.0, 40.0] {
        let found = cubic.predict(x).unwrap();
        assert!((found - value(x)).abs() < 1e-6 + 1e-4 * value(x), "{x}: {found} {}", value(x));
    }
}

#[test]
fn with_few_samples_it_takes_fewer_terms() {
    let mut cubic = Cubic::default();
    assert_eq!(cubic.predict(1.0), None);
    cubic.observe(2.0, 5.0);
    assert_eq!(cubic.predict(7.0), Some(5.0));
    (0..5).for_each(|_| cubic.observe(2.0, 5.0));
    assert!((cubic.predict(9.0).unwrap() - 5.0).abs() < 1e-9, "one size tells one term");
    cubic.observe(4.0, 9.0);
    assert!((cubic.predict(6.0).unwrap() - 13.0).abs() < 1e-6);
}

#[test]
fn the_samples_of_two_add_up() {
    let (mut a, mut b, mut both) = (Cubic::default(), Cubic::default(), Cubic::default());
    for at in 0..10 {
        let (x, y) = (f64::from(at), f64::from(at * at));
        if at % 2 == 0 {
            a.observe(x, y)
        } else {
            b.observe(x, y)
        }
        both.observe(x, y);
    }
    a.add(&b);
    assert_eq!(a.samples(), 10.0);
    assert!((a.predict(4.5).unwrap() - both.predict(4.5).unwrap()).abs() < 1e-6);
}

fn line() -> Recursive<2> {
    Recursive::new([0.0, 0.0], [1.0, 0.5], 0.1, 0.995)
}

/// Three lines, the first two of one family.
const FAMILIES: [usize; 3] = [0, 0, 1];

fn teach(kin: &mut Kin<2>, all: &mut [Recursive<2>], at: usize, features: [f64; 2], value: f64) {
    let lesson = all[at].observe(&features, value).unwrap();
    let moves = kin.observe(FAMILIES[at], &lesson);
    for other in (0..all.len()).filter(|other| *other != at) {
        all[other].follow(&moves.of(FAMILIES[other]));
    }
}

fn kin() -> (Kin<2>, [Recursive<2>; 3]) {
    (Kin::new(&line(), Common { all: 0.6, family: 0.3 }, 2), [line(), line(), line()])
}

#[test]
fn what_one_is_taught_is_expected_of_the_others_and_of_its_family_most() {
    let (mut kin, mut all) = kin();
    let here = [1.0, 0.5];
    let says =
        |kin: &Kin<2>, all: &[Recursive<2>], at: usize| kin.predict(FAMILIES[at], &all[at], &here);
    let before = says(&kin, &all, 1);
    assert!((before.unsure - line().predict(&here).unsure).abs() < 1e-9, "{before:?}");
    teach(&mut kin, &mut all, 0, here, 2.0);
    let [own, near, far] = [0, 1, 2].map(|at| says(&kin, &all, at));
    assert!((own.mean - 2.0).abs() < 0.1, "{own:?}");
    assert!((near.mean - 1.8).abs() < 0.1 && (far.mean - 1.2).abs() < 0.1, "{near:?} {far:?}");
    assert!(own.unsure < near.unsure && near.unsure < far.unsure, "{near:?} {far:?}");
    assert!(far.unsure < before.unsure, "{far:?} {before:?}");
}

#[test]
fn what_its_own_observations_taught_moves_for_no_other_but_the_rest_does() {
    let (mut kin, mut all) = kin();
    teach(&mut kin, &mut all, 1, [1.0, 0.0], 0.3);
    let before = all[1].predict(&[1.0, 0.0]).mean;
    teach(&mut kin, &mut all, 0, [1.0, 0.0], 0.3);
    teach(&mut kin, &mut all, 0, [1.0, 2.0], 1.3);
    let [here, there] = [[1.0, 0.0], [1.0, 2.0]].map(|at| all[1].predict(&at).mean);
    assert!((here - before).abs() < 0.03, "{here} {before}");
    assert!((1.0..1.4).contains(&there), "{there}");
}

/// Forgetting lets covariances grow again where nothing is seen.
#[test]
fn common_parts_stay_bounded_whatever_is_taught() {
    let (mut kin, mut all) = kin();
    for at in 0..50_000_u32 {
        let features = [1.0, if at % 1000 < 990 { 1.0 } else { scatter(at) }];
        teach(&mut kin, &mut all, at as usize / 700 % 3, features, 5.0 * scatter(at / 3));
    }
    for (at, one) in all.iter().enumerate() {
        for features in [[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]] {
            let found = kin.predict(FAMILIES[at], one, &features);
            assert!(found.mean.abs() < 20.0 && found.unsure < 60.0, "{found:?}");
            assert!(found.unsure.is_finite() && found.deviation >= found.unsure, "{found:?}");
        }
    }
}

/// Of a value that no line fits, how far one is off depends on where: shares of it would add up.
#[test]
fn what_nobody_tried_is_where_it_was_however_long_another_is_taught() {
    let (mut kin, mut all) = kin();
    let mut before = None;
    for at in 0..100_000 {
        let x = 4.0 * scatter(at).powi(3);
        teach(&mut kin, &mut all, 0, [1.0, x], x * x);
        if at == 1_000 {
            before = Some(all.clone());
        }
    }
    for features in [[1.0, -2.0], [1.0, 0.0], [1.0, 2.0]] {
        for (now, before) in all.iter().zip(before.iter().flatten()) {
            let [now, before] = [now, before].map(|one| one.predict(&features).mean);
            assert!((now - before).abs() < 0.5, "{features:?}: {now} {before}");
        }
    }
}
