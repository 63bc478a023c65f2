//! Checks that the documentation page lists all columns of each table in order, with their descriptions from the
//! schema.

#[test]
fn the_page_has_all_columns() {
    let page = include_str!("../../../../docs/heap-tables.md");
    for table in hatf_arrow::open::<&str>(&[]).unwrap().all() {
        let name = table.name().to_owned();
        let section = page.split("\n## ").find(|section| section.starts_with(&format!("{name}\n"))).unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<_> = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>()).collect();
        let schema = table.schema();
        let expected: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| (format!("`{}`", field.name()), field.metadata()["doc"].clone()))
            .collect();
        let found: Vec<_> = rows.iter().map(|row| (row[1].to_owned(), row[3].to_owned())).collect();
        assert_eq!(found, expected, "{name}");
    }
}
