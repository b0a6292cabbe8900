// SPDX-License-Identifier: Apache-2.0
//! The items of one shop.

use std::fmt::Write;

use arrow::array::RecordBatch;
use arrow::array::StringBuilder;
use arrow::error::ArrowError;
use jiff::Timestamp;
use rand::RngExt;
use std::sync::Arc;
use weir_rules::Feed;

use super::draw::{Draw, Zipf, any};
use super::words;

/// The fields of an item, in order.
pub(super) const FIELDS: [&str; 16] = [
    "id",
    "title",
    "description",
    "brand",
    "color",
    "size",
    "price",
    "sale_price",
    "stock",
    "category",
    "gtin",
    "link",
    "image_link",
    "updated_at",
    "condition",
    "shipping_weight",
];

/// Items were last changed in the year before this instant, 2024-06-01T00:00:00Z. No clock is read.
const NOW: i64 = 1_717_200_000;
const YEAR_SECONDS: i64 = 365 * 24 * 3600;

/// What the items of a shop have in common.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) project: String,
    pub(super) brands: Vec<String>,
    /// What the middle item costs, in cents.
    cents: f64,
    by_rank: Ranks,
}

/// How often the entries of each list occur.
#[derive(Debug)]
struct Ranks {
    brands: Zipf,
    nouns: Zipf,
    adjectives: Zipf,
    materials: Zipf,
    colors: Zipf,
    sizes: Zipf,
    categories: Zipf,
    common: Zipf,
}

impl Shop {
    pub(super) fn new(project: &str, draw: &mut Draw) -> Self {
        let brands: Vec<String> = (0..draw.random_range(4..40)).map(|_| brand(draw)).collect();
        Self {
            project: project.to_owned(),
            cents: 500.0 * 40f64.powf(draw.random()),
            by_rank: Ranks {
                brands: Zipf::new(brands.len()),
                nouns: Zipf::new(words::NOUNS.len()),
                adjectives: Zipf::new(words::ADJECTIVES.len()),
                materials: Zipf::new(words::MATERIALS.len()),
                colors: Zipf::new(words::COLORS.len()),
                sizes: Zipf::new(words::SIZES.len()),
                categories: Zipf::new(words::CATEGORIES.len()),
                common: Zipf::new(words::COMMON.len()),
            },
            brands,
        }
    }

    /// Items `first..first + rows`.
    pub(super) fn batch(
        &self,
        first: u64,
        rows: usize,
        draw: &mut Draw,
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns: [StringBuilder; FIELDS.len()] =
            std::array::from_fn(|_| StringBuilder::new());
        for at in 0..rows as u64 {
            let item = self.item(first + at, draw);
            for (column, value) in columns.iter_mut().zip(item) {
                column.append_option(value);
            }
        }
        let columns = columns
            .iter_mut()
            .map(|column| Arc::new(column.finish()) as _);
        RecordBatch::try_new(Feed::schema_of(FIELDS), columns.collect())
    }

    /// The values of [`FIELDS`].
    fn item(&self, number: u64, draw: &mut Draw) -> [Option<String>; FIELDS.len()] {
        let ranks = &self.by_rank;
        let brand = &self.brands[ranks.brands.rank(draw)];
        let noun = words::NOUNS[ranks.nouns.rank(draw)];
        let adjective = words::ADJECTIVES[ranks.adjectives.rank(draw)];
        let material = words::MATERIALS[ranks.materials.rank(draw)];
        let color = words::COLORS[ranks.colors.rank(draw)];
        let size = words::SIZES[ranks.sizes.rank(draw)];
        let category = words::CATEGORIES[ranks.categories.rank(draw)];
        let cents = self.cents(draw);
        let project = &self.project;
        let link = format!("https://{project}.example/{noun}/{number}");
        [
            Some(format!("{project}-{number:07}")),
            Some(title(brand, adjective, material, noun, draw)),
            often(0.97, draw).then(|| self.description(draw)),
            often(0.95, draw).then(|| brand.clone()),
            often(0.8, draw).then(|| color.to_owned()),
            often(0.7, draw).then(|| size.to_owned()),
            price(cents, draw),
            often(0.2, draw).then(|| money(cents * draw.random_range(0.5..0.95))),
            stock(draw),
            often(0.98, draw).then(|| category.to_owned()),
            often(0.92, draw).then(|| gtin(draw)),
            Some(link.clone()),
            often(0.96, draw).then(|| format!("{link}.jpg")),
            Some(updated(draw)),
            Some(condition(draw).to_owned()),
            often(0.5, draw).then(|| format!("{:.1} kg", draw.random_range(0.1..30.0))),
        ]
    }

    /// Spread around the shop's own level by the sum of four uniform draws, nearly a log-normal.
    fn cents(&self, draw: &mut Draw) -> f64 {
        let spread: f64 = (0..4).map(|_| draw.random::<f64>() - 0.5).sum();
        (self.cents * spread.exp()).max(50.0)
    }

    /// 8 to 60 words, in sentences.
    fn description(&self, draw: &mut Draw) -> String {
        let words = draw.random_range(8..=60);
        let mut text = String::with_capacity(words * 7);
        let mut left = 0;
        for _ in 0..words {
            let word = words::COMMON[self.by_rank.common.rank(draw)];
            if left == 0 {
                left = draw.random_range(5..15);
                text.push_str(if text.is_empty() { "" } else { ". " });
                capitalised(&mut text, word);
            } else {
                text.push(' ');
                text.push_str(word);
            }
            left -= 1;
        }
        text.push('.');
        text
    }
}

fn often(share: f64, draw: &mut Draw) -> bool {
    draw.random_bool(share)
}

fn brand(draw: &mut Draw) -> String {
    let name: String = (0..draw.random_range(2..4))
        .map(|_| any(words::SYLLABLES, draw))
        .collect();
    let mut text = String::new();
    capitalised(&mut text, &name);
    text
}

fn capitalised(text: &mut String, word: &str) {
    let mut letters = word.chars();
    text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
    text.push_str(letters.as_str());
}

/// Some are written carelessly, which is what rules are for.
fn title(brand: &str, adjective: &str, material: &str, noun: &str, draw: &mut Draw) -> String {
    match draw.random_range(0..20) {
        0 => format!(" {brand}  {adjective} {noun} "),
        1 => format!("{brand} {adjective} {noun}").to_uppercase(),
        2..8 => format!("{brand} {adjective} {noun}"),
        _ => format!("{brand} {adjective} {material} {noun}"),
    }
}

fn money(cents: f64) -> String {
    format!("{:.2}", cents.round() / 100.0)
}

/// 2% absent, 1% zero, 1% not a number.
fn price(cents: f64, draw: &mut Draw) -> Option<String> {
    match draw.random_range(0..100) {
        0 | 1 => None,
        2 => Some("0".into()),
        3 => Some(any(&["n/a", "on request", "12,50", "", "-1.00"], draw).into()),
        _ => Some(money(cents)),
    }
}

/// A quarter is sold out, 3% say nothing.
fn stock(draw: &mut Draw) -> Option<String> {
    match draw.random_range(0..100) {
        0..3 => None,
        3..28 => Some("0".into()),
        _ => Some(((2000f64.powf(draw.random())) as u32).to_string()),
    }
}

/// 13 digits, the last of which checks the others (GS1 General Specifications, section 7.9).
fn gtin(draw: &mut Draw) -> String {
    let body = draw.random_range(400_000_000_000..500_000_000_000u64);
    let digits = format!("{body:012}");
    let weighed = digits.bytes().zip([1, 3].into_iter().cycle());
    let sum: u32 = weighed
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

fn updated(draw: &mut Draw) -> String {
    let second = NOW - draw.random_range(0..YEAR_SECONDS);
    let mut text = String::new();
    if let Ok(time) = Timestamp::from_second(second) {
        // Writing to a String does not fail.
        let _always = write!(text, "{time}");
    }
    text
}

fn condition(draw: &mut Draw) -> &'static str {
    match draw.random_range(0..100) {
        0..2 => "used",
        2..6 => "refurbished",
        _ => "new",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::draw;

    #[test]
    fn a_gtin_checks_itself() {
        let mut draw = draw::of(1, "test", 0);
        for _ in 0..1000 {
            let digits: Vec<u32> = gtin(&mut draw)
                .chars()
                .map(|digit| digit.to_digit(10).unwrap())
                .collect();
            let sum: u32 = digits
                .iter()
                .zip([1, 3].iter().cycle())
                .map(|(digit, weight)| digit * weight)
                .sum();
            assert_eq!((digits.len(), sum % 10), (13, 0), "{digits:?}");
        }
    }

    #[test]
    fn a_batch_has_gaps_and_odd_prices_but_mostly_good_items() {
        use arrow::array::{Array, AsArray};
        let mut draw = draw::of(1, "test", 0);
        let shop = Shop::new("shop-0001", &mut draw);
        let batch = shop.batch(0, 2000, &mut draw).unwrap();
        let prices = batch.column_by_name("price").unwrap().as_string::<i32>();
        let good = prices
            .iter()
            .flatten()
            .filter(|price| price.parse::<f64>().is_ok_and(|price| price > 0.0));
        assert!((1800..1990).contains(&good.count()));
        assert!((20..70).contains(&prices.null_count()));
        assert!((300..500).contains(&batch.column_by_name("color").unwrap().null_count()));
        let ids = batch.column_by_name("id").unwrap().as_string::<i32>();
        assert_eq!(
            (ids.value(0), ids.value(1999)),
            ("shop-0001-0000000", "shop-0001-0001999")
        );
    }
}
