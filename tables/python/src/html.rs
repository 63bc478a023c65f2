//! Small HTML tables for notebooks.

use metatf_page::markup;

/// An HTML table.
pub(crate) struct Html {
    text: String,
}

impl Html {
    /// Starts a table with column names.
    pub(crate) fn table<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(|name| format!("<th>{}</th>", markup(name))).collect::<String>();
        Self { text: format!("<table>\n<tr>{names}</tr>\n") }
    }

    /// Adds a row.
    pub(crate) fn row<'c>(&mut self, cells: impl IntoIterator<Item = &'c str>) {
        self.text.push_str("<tr>");
        cells.into_iter().for_each(|cell| self.text.push_str(&format!("<td>{}</td>", markup(cell))));
        self.text.push_str("</tr>\n");
    }

    /// Returns the HTML of the table.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</table>");
        self.text
    }
}
