//! The parameters and the code of a single leaf of a record that is not plain.

use metatf_parser::schema::{Interpretation, Leaf, LeafId, Width};

use super::expression::expression;
use super::fields::{Field, field};
use super::names;
use super::nested::{Body, Builder, Parameter, Place, unless};
use super::put::{Encoding, Put, stored};
use super::statements::{c_type, one};
use crate::docs;
use crate::emitters::{Machine, PLAIN_MOST, first, named};
use crate::names::Scope;
use crate::uses::leaf;

impl Builder<'_> {
    /// Adds a parameter for an argument, and returns the expression of its value.
    fn parameter(&self, index: usize, place: &Place, names: &mut Scope, c_type: &str, body: &mut Body) -> String {
        let argument = self.event.fields.get(index);
        let wanted = argument.map_or("", |argument| argument.name.as_str());
        let docs =
            argument.map_or_else(Vec::new, |argument| argument.docs.iter().map(|line| docs::plain(line)).collect());
        let (name, value) = match place {
            Place::Only(name, value) => (name.clone(), value.clone()),
            Place::Members(prefix) => {
                let name = names.take(&[names::argument(wanted)]);
                (name.clone(), format!("{prefix}{name}"))
            }
        };
        body.parameters.push(Parameter { name, c_type: c_type.to_owned(), docs });
        value
    }

    /// Adds the length of a byte array, and returns the expression of its value.
    fn length(place: &Place, names: &mut Scope, body: &mut Body) -> String {
        let name = body.parameters.last().map_or("", |bytes| bytes.name.as_str());
        let name = names.take(&[format!("{name}_length")]);
        body.parameters.push(Parameter { name: name.clone(), c_type: "size_t ".to_owned(), docs: Vec::new() });
        match place {
            Place::Members(prefix) => format!("{prefix}{name}"),
            Place::Only(..) => name,
        }
    }

    /// Returns the name of the table to which a leaf refers.
    fn table(&self, l: &Leaf) -> Result<&str, String> {
        let is_target = |section: u8| l.interpretation == Interpretation::SectionOffset(section);
        let table = self.types.tables.iter().find(|(section, _)| is_target(*section));
        table
            .map(|(_, name)| name.as_str())
            .ok_or_else(|| format!("`{}` refers to elements that cannot be emitted", named(l)))
    }

    /// Adds the parameters and the code of a leaf.
    pub(super) fn leaf(&mut self, id: LeafId, place: &Place, names: &mut Scope, body: &mut Body) -> Result<(), String> {
        let (Some(put), Some(l)) = (self.put(id), leaf(self.record, id)) else { return Ok(()) };
        body.size += stored(put).map_or(0, |(width, _)| usize::from(width));
        let mut value = None;
        if !matches!(put, Put::Computed) {
            let index = usize::from(id.0) - first(self.record);
            let length = match (&l.width, put) {
                (Width::Variable(expr), Put::Measured(_)) => Some(self.shown_value(expr)?),
                _ => None,
            };
            self.fields.push(Field { value: length, ..field(put, index, self.leaves) });
        }
        match put {
            Put::Argument(index, machine) if machine.is_number() => {
                let given = self.parameter(index, place, names, &c_type(machine), body);
                value = Some(as_number(&given, machine));
                body.code.extend(one(put, &given, "0"));
            }
            Put::Argument(index, Machine::Array(bytes)) => {
                let given = self.parameter(index, place, names, "const void *", body);
                if bytes <= PLAIN_MOST {
                    body.size += usize::try_from(bytes).unwrap_or(0);
                } else {
                    body.locals.push(unless(&format!("pfx_take(&room, {bytes}, 1)")));
                }
                body.code.extend(one(put, &given, "0"));
            }
            Put::Argument(index, machine) => {
                let given = self.parameter(index, place, names, &c_type(machine), body);
                let read = match machine {
                    Machine::Text => format!("pfx_text({given})"),
                    _ => format!("pfx_array({given}, {})", Self::length(place, names, body)),
                };
                let local = format!("pfx_argument_{index}");
                body.locals.push(format!("const pfx_bytes {local} = {read};"));
                body.locals.push(unless(&format!("pfx_take(&room, (uint64_t){local}.length + {local}.mark, 1)")));
                body.code.extend(one(put, "", "0"));
            }
            Put::Count(index) => {
                let given = self.parameter(index, place, names, "size_t ", body);
                body.code.push(unless(&format!("pfx_fits({given}, 4, false)")));
                value = Some(format!("(uint64_t){given}"));
                body.code.extend(one(put, &given, "0"));
            }
            Put::Reference(index) => {
                let given = self.parameter(index, place, names, "uint32_t ", body);
                let table = self.table(l)?;
                if let Some(reference) = body.parameters.last_mut() {
                    reference.docs.push(format!("The result of pfx_intern_{table}."));
                }
                value = Some(format!("(uint64_t){given}"));
                body.code.push(unless(&format!("{given} != PFX_NO_ELEMENT")));
                body.code.extend(one(put, &given, "0"));
            }
            Put::Measured(index) => {
                let given = self.parameter(index, place, names, "const void *", body);
                let length = Self::length(place, names, body);
                let Width::Variable(expr) = &l.width else { return Ok(()) };
                let expected = expression(expr, "&room", &|id| self.value(id))?;
                body.code.push(unless(&format!(
                    "{length} == {expected} && pfx_take(&room, {length}, 1) && ({given} != NULL || {length} == 0)"
                )));
                body.code.push(format!("at = pfx_put_bytes(at, {given}, {length});"));
            }
            Put::Until(index, end) => {
                let given = self.parameter(index, place, names, "const void *", body);
                let length = Self::length(place, names, body);
                body.code.push(unless(&format!("pfx_take_until(&room, {given}, {length}, {end})")));
                body.code.push(format!("at = pfx_put8(pfx_put_bytes(at, {given}, {length}), {end});"));
            }
            Put::Encoded(index, Encoding { machine, base, width, is_signed, is_reference }) => {
                let given = self.parameter(index, place, names, &c_type(machine), body);
                if is_reference {
                    self.table(l)?;
                    body.code.push(unless(&format!("{given} != PFX_NO_ELEMENT")));
                }
                let given = as_number(&given, machine);
                body.size += usize::from(width);
                let raw = if base == 0 { given.clone() } else { format!("{given} - UINT64_C({base})") };
                body.code.push(unless(&format!("pfx_fits({raw}, {width}, {is_signed})")));
                body.code.push(format!("at = pfx_put_number(at, {raw}, {width});"));
                value = Some(given);
            }
            Put::EncodedLength(index, width) => {
                let length = format!("(uint64_t)pfx_argument_{index}.length + pfx_argument_{index}.mark");
                body.size += usize::from(width);
                body.code.push(unless(&format!("pfx_fits({length}, {width}, false)")));
                body.code.push(format!("at = pfx_put_number(at, {length}, {width});"));
            }
            Put::Computed => {
                let computed = l.computed.as_ref();
                value = computed.map(|expr| expression(expr, "&room", &|id| self.value(id))).transpose()?;
            }
            Put::Constant(_, width) => {
                body.size += usize::from(width);
                value = l.constant.map(|constant| format!("UINT64_C({constant})"));
                body.code.extend(one(put, "", "0"));
            }
            Put::Thread => {
                value = Some("(uint64_t)emitter->thread".to_owned());
                body.code.extend(one(put, "", "0"));
            }
            _ => body.code.extend(one(put, "", "0")),
        }
        if let Some(known) = self.values.get_mut(usize::from(id.0)) {
            *known = value;
        }
        Ok(())
    }
}

/// Returns the value of a number as an expression of type `uint64_t`.
fn as_number(value: &str, machine: Machine) -> String {
    match machine {
        Machine::Bool => format!("(uint64_t)({value} ? 1 : 0)"),
        Machine::Single => format!("pfx_float_bits({value})"),
        Machine::F32 | Machine::F64 => format!("pfx_bits({value})"),
        _ => format!("(uint64_t){value}"),
    }
}
