//! Substitution groups (XML Schema Part 1 §3.3.6, EXI §8.5.4.1.6).

use super::Budget;
use super::model::{ElementIndex, Model};
use super::names::Texts;
use crate::Error;

/// For each element what may stand for it, itself among them, by name.
#[derive(Debug)]
pub(super) struct Substitutions {
    groups: Vec<Vec<ElementIndex>>,
}

impl Substitutions {
    pub(super) fn new(model: &Model, texts: &Texts, budget: &mut Budget) -> Result<Self, Error> {
        let mut groups: Vec<Vec<ElementIndex>> = Vec::with_capacity(model.elements.len());
        for element in 0..model.elements.len() {
            groups.push(vec![budget.index(element)?]);
        }
        for &member in model.global_elements.values() {
            let mut head = model.elements[member as usize].head;
            while let Some(at) = head {
                budget.take(size_of::<ElementIndex>())?;
                groups[at as usize].push(member);
                head = model.elements[at as usize].head;
            }
        }
        let order = |&element: &ElementIndex| texts.order(model.elements[element as usize].name);
        for group in &mut groups {
            group.sort_by_key(order);
        }
        Ok(Self { groups })
    }

    pub(super) fn of(&self, element: ElementIndex) -> &[ElementIndex] {
        &self.groups[element as usize]
    }
}
