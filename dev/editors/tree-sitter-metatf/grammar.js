/**
 * The syntax of a DTD (docs/specification.md, section 2), equivalent to metatf-parser/src/metatf.pest.
 *
 * `tree-sitter generate` generates src/parser.c from this file. The result is checked in, so that editors need no
 * generator.
 * Rules that the pest grammar also contains have the same names.
 */

/** A comma-separated list of one or more items with an optional trailing comma. */
const list = (rule) => seq(rule, repeat(seq(",", rule)), optional(","));

/** Words that cannot be names, because interpretations begin with them. */
const RESERVED = [
  "none", "default", "baseOffset", "delta", "stride", "sectionOffset", "sectionStride", "predicted",
];

module.exports = grammar({
  name: "metatf",

  // The range from `\t` to `\r` consists of tab, line feed, vertical tab, form feed and carriage return.
  extras: ($) => [/[ \t\n\v\f\r]/, $.comment],

  word: ($) => $.name,

  reserved: { global: ($) => RESERVED },

  // `((4) * x` may begin a group whose first item has a count, or a count; the token after `x` decides.
  // `(rest)` and `(until` may begin a group or the end of a repetition.
  conflicts: ($) => [[$._counted, $._counted_typed, $._sum], [$.scanned, $._item_name]],

  rules: {
    dtd: ($) => repeat(choice($.section, $._definition)),

    section: ($) => seq(
      "section", field("name", $.name), field("number", $.int),
      "{", repeat(choice(
        $.record, $.property, $.type_definition,
        alias($._record_type, $.record), alias($._property_type, $.property),
      )), "}",
    ),

    // `type` is a keyword only before a name and a colon.
    type_definition: ($) => seq(
      "type", field("name", $.name), ":", field("type", $.type),
      choice(";", prec.right(seq(field("block", $.type_block), optional(";")))),
    ),
    type_block: ($) => seq("{", optional(seq($.assignment, repeat(seq(";", $.assignment)), optional(";"))), "}"),
    assignment: ($) => seq(field("property", choice($.name, $.string)), "=", field("value", $._value)),

    // Outside of sections, a record or a property may begin with `section` used as a name.
    _definition: ($) => choice(
      $.record,
      $.property,
      $.type_definition,
      alias($._record_section, $.record),
      alias($._property_section, $.property),
      alias($._record_type, $.record),
      alias($._property_type, $.property),
    ),
    _record_type: ($) => prec.right(seq(field("name", alias("type", $.name)), $._record_rest)),
    _property_type: ($) => seq(field("target", alias($._target_type, $.target)), $._property_rest),
    _target_type: ($) => seq(alias("type", $.name), ".", $._target_rest),
    _record_section: ($) => prec.right(seq(field("name", alias("section", $.name)), $._record_rest)),
    _property_section: ($) => seq(field("target", alias($._target_section, $.target)), $._property_rest),
    _target_section: ($) => seq(alias("section", $.name), ".", $._target_rest),

    record: ($) => prec.right(seq(field("name", $.name), $._record_rest)),
    _record_rest: ($) => prec.right(seq(
      ":", field("fields", $._field_item),
      optional(choice(seq(field("block", $.block), optional(";")), ";")),
    )),
    block: ($) => seq("{", repeat($.property), "}"),

    _field_item: ($) => choice($.field, $.repetition, $.group),
    field: ($) => $._item_name,
    repetition: ($) => $._counted,
    _counted: ($) => seq(
      field("count", choice($._item_name, $.parenthesis, $.scanned)), "*", field("element", choice($.field, $.group)),
    ),
    // The items end at the end of the content, or after an item.
    scanned: ($) => seq("(", choice("rest", seq("until", $._expression)), ")"),
    // `rest` and `until` are keywords only in parentheses before a `*`.
    _item_name: ($) => choice($.name, alias(choice("rest", "until"), $.name)),
    // In a list, a repetition may have a name, and a field a type.
    group: ($) => seq("(", list(choice(
      $._field_item, $.typed, alias($._named, $.repetition), alias($._counted_typed, $.repetition),
    )), ")"),
    _named: ($) => seq(field("name", $._item_name), ":", choice($._counted, $._counted_typed)),
    _counted_typed: ($) => seq(
      field("count", choice($._item_name, $.parenthesis, $.scanned)), "*", field("element", $.typed),
    ),
    typed: ($) => seq(field("name", $._item_name), ":", $.type),
    type: ($) => choice(
      $._type_interpretation,
      seq(field("name", $.name), optional(choice($._type_interpretation, $._expression))),
    ),
    _type_interpretation: ($) => choice($.interpretation, alias($._delta, $.interpretation)),
    // In a type, `delta` is `delta 0`.
    _delta: ($) => seq("delta"),

    property: ($) => seq(field("target", $.target), $._property_rest),
    _property_rest: ($) => seq("=", field("value", $._value), ";"),
    target: ($) => seq($.name, ".", $._target_rest),
    _target_rest: ($) => seq(repeat(seq($.name, ".")), field("property", choice($.name, $.string))),

    _value: ($) => choice($.interpretation, $.string, $.array, $._expression, $.word),
    word: ($) => $._value_name,
    array: ($) => seq(choice("bytes", "until"), $.int),
    // `bytes` and `until` are keywords only before a number.
    _value_name: ($) => choice($.name, alias(choice("bytes", "until", "rest"), $.name)),

    interpretation: ($) => choice(
      "none",
      seq(choice("delta", "sectionOffset"), $.int),
      seq(choice("stride", "sectionStride"), $.int, $.int),
      seq(choice("default", "baseOffset"), choice($.int, $.reference)),
      seq("predicted", field("revision", $.int), $.model, $.int),
    ),
    model: ($) => choice($.predictor, seq("(", list($.predictor), ")")),
    predictor: ($) => seq(
      choice(
        seq("lastValue", $.int),
        "stride",
        seq(choice("fcm", "dfcm"), $.int),
        seq("heap", choice(seq("allocated", $.path), "freed", "used")),
      ),
      optional(seq("by", $.path)),
    ),
    path: ($) => seq($.name, repeat(seq(".", $.name))),

    _expression: ($) => choice($._sum, $.comparison),
    comparison: ($) => seq($._sum, choice("==", "!=", "<=", "<", ">=", ">"), $._sum),
    _sum: ($) => choice($.int, $.reference, $.parenthesis, $.binary),
    parenthesis: ($) => seq("(", $._expression, ")"),
    binary: ($) => choice(
      prec.left(2, seq($._sum, choice("*", "/", "%"), $._sum)),
      prec.left(1, seq($._sum, choice("+", "-"), $._sum)),
    ),
    reference: ($) => prec.right(seq($._value_name, repeat1(seq(".", $.name)), optional($.bit_number))),
    bit_number: ($) => /[0-9]+/,

    int: ($) => token(choice(
      /-?0x[0-9a-fA-F][0-9a-fA-F_]*/,
      /-?[0-9][0-9_]*/,
      // The first character is the most significant byte.
      /'[ -&(-\[\]-~]{1,8}'/,
    )),
    string: ($) => token(/"([^"\\\n\r]|\\[nrt\\"])*"/),
    name: ($) => /[A-Za-z_][A-Za-z0-9_]*/,
    comment: ($) => token(choice(/\/\/[^\n]*/, /\/\*[^*]*\*+([^/*][^*]*\*+)*\//)),
  },
});
