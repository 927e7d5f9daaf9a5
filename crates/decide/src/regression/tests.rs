use super::*;

/// A made scatter between −1 and 1 that is the same in each run.
fn scatter(at: u32) -> f64 {
    f64::from(at.wrapping_mul(2_654_435_761) >> 16) / 32_768.0 - 1.0
}

#[test]
fn a_line_is_found_and_its_scatter_told() {
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
fn before_a_sample_it_says_what_it_was_told_and_how_unsure_that_is() {
    let prior = Recursive::new([1.0, 0.5], [0.3, 0.4], 0.1, 0.99);
    let found = prior.predict(&[1.0, 2.0]);
    assert!((found.mean - 2.0).abs() < 1e-12);
    // 0.3² + (2 · 0.4)² + 0.1²
    assert!((found.deviation - 0.74_f64.sqrt()).abs() < 1e-9, "{found:?}");
}

#[test]
fn one_stall_does_not_undo_what_was_learned() {
    let mut mean = Recursive::new([0.0], [3.0], 1.0, 0.995);
    (0..200).for_each(|at| mean.observe(&[1.0], 1.0 + 0.05 * scatter(at)));
    mean.observe(&[1.0], 1e9);
    mean.observe(&[1.0], f64::NAN);
    mean.observe(&[1.0], f64::INFINITY);
    assert!((mean.predict(&[1.0]).mean - 1.0).abs() < 0.02, "{:?}", mean.predict(&[1.0]));
}

#[test]
fn it_follows_what_moved() {
    let mut mean = Recursive::new([0.0], [3.0], 1.0, 0.99);
    (0..500).for_each(|at| mean.observe(&[1.0], 0.2 * scatter(at)));
    (0..500).for_each(|_| mean.observe(&[1.0], 1.5));
    assert!((mean.predict(&[1.0]).mean - 1.5).abs() < 0.15, "{:?}", mean.predict(&[1.0]));
}

#[test]
fn a_feature_that_never_varies_does_not_wind_up() {
    let mut flat = Recursive::new([0.0, 0.0], [1.0, 1.0], 0.5, 0.9);
    (0..100_000).for_each(|at| flat.observe(&[1.0, 0.0], scatter(at)));
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
